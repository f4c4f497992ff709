//! Sessions of MySQL's protocol against a real MariaDB.

mod batches;
mod cases;
mod conflicts;
mod loads;
mod log_in;
mod lost;
mod rows;
mod secure;
mod tables;

#[path = "../support/dribble.rs"]
mod dribble;
#[path = "../support/mariadb.rs"]
mod mariadb;
#[path = "../support/papers.rs"]
mod papers;

/// `mysql9.rs` has most of it with MySQL.
const KIND: mariadb::Kind = mariadb::Kind::MariaDb;
