//! The SQL workloads: MariaDB and PostgreSQL servers that Saiga starts, with sysbench and pgbench
//! as load.
//!
//! [`SqlWorkload`] implements the engine's workload; [`PrivateServer`] prepares servers for TPC-C;
//! [`cells`] contains the default and the full plan. The workloads measure the path between client
//! and server: the tables are small and in memory, and no operation waits for a disk. Deliberately
//! absent: servers that other programs started, and how connections are accelerated.

pub mod cells;
mod engine;
mod events;
mod installation;
mod load;
mod mariadb;
mod postgres;
mod private_server;
mod programs;
mod run;
mod server;
mod workload;

pub use engine::Engine;
pub use load::{SqlLoad, Test};
pub use private_server::{LoadingServer, PrivateServer, TPCC_SQL};
pub use workload::{SqlTarget, SqlWorkload};
