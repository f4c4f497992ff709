//! Sessions of MySQL's protocol against MySQL itself, in `make soak`: all of `main.rs` but the
//! log-ins that are MariaDB's own.

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
