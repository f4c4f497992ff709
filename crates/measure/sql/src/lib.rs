//! The SQL workloads: private MariaDB and PostgreSQL servers under test, sysbench and
//! pgbench as load.
//!
//! [`SqlWorkload`] plugs into the experiment engine; [`Private`] makes servers for TPC-C; [`cells`] holds the default and the
//! full plan. What is measured is the path between client and server: small tables that
//! stay in memory, and nothing that waits for a disk. Deliberately absent: any server that
//! we did not start, and any knowledge of how a connection is accelerated.

pub mod cells;
mod engine;
mod events;
mod load;
mod mariadb;
mod postgres;
mod private;
mod programs;
mod run;
mod server;
mod site;
mod workload;

pub use engine::Engine;
pub use load::{SqlLoad, Test};
pub use private::{Loading, Private, TPCC_SQL};
pub use workload::{SqlTarget, SqlWorkload};
