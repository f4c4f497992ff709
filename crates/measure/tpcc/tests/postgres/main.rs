//! Tests of sessions with PostgreSQL and openGauss. The servers are real, or scripted where no real
//! server is available.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../support/certificates.rs"]
mod certificates;
#[path = "../support/dribble.rs"]
mod dribble;
mod faults;
mod fuzz;
mod login;
mod opengauss;
mod resume;
mod scripted;
mod secure;
#[path = "../support/postgres.rs"]
mod server;
mod statements;
mod tables;
