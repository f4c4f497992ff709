//! Sessions with PostgreSQL and openGauss: against real servers where they can be had, against
//! scripted ones where not.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod bytes;
#[path = "../support/dribble.rs"]
mod dribble;
mod faults;
mod login;
mod opengauss;
#[path = "../support/papers.rs"]
mod papers;
mod resume;
mod scripted;
mod secure;
#[path = "../support/postgres.rs"]
mod server;
mod statements;
mod tables;
