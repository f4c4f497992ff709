//! Tests of sessions that use MySQL's protocol with a real MariaDB server.

mod batches;
mod cases;
mod conflicts;
mod loads;
mod log_in;
mod lost;
mod rows;
mod secure;
mod tables;

#[path = "../support/certificates.rs"]
mod certificates;
#[path = "../support/dribble.rs"]
mod dribble;
#[path = "../support/mariadb.rs"]
mod mariadb;

/// `mysql9.rs` runs most of these tests with MySQL instead.
const KIND: mariadb::Kind = mariadb::Kind::MariaDb;
