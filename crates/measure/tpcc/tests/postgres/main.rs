//! Sessions with PostgreSQL and openGauss: against real servers where they can be had, against
//! scripted ones where not.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod bytes;
mod faults;
mod login;
mod opengauss;
mod resume;
mod scripted;
#[path = "../support/postgres.rs"]
mod server;
mod statements;
mod tables;
