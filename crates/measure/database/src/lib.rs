//! Private MariaDB and PostgreSQL servers: programs, data directory, settings, start, readiness and
//! end.
//!
//! [`Installation`] creates a data directory in a folder of its own; [`Server`] runs on it. No
//! operation waits for a disk. Deliberately absent: tables and load, and servers that other
//! programs started.

mod engine;
mod installation;
mod mariadb;
mod postgres;
mod programs;
mod server;

pub use engine::{Engine, Program};
pub use installation::{Endpoint, Installation, Sizes};
pub use programs::{Programs, find};
pub use server::{Listen, Server};
