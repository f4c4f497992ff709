//! Tests of sessions with a real MySQL server, in `make soak`: the tests of `main.rs` except those
//! of MariaDB's authentication methods.

mod batches;
mod cases;
mod conflicts;
mod loads;
mod log_in_sha2;
mod lost;
mod rows;
mod tables;

#[path = "../support/mariadb.rs"]
mod mariadb;

const KIND: mariadb::Kind = mariadb::Kind::MySql;
