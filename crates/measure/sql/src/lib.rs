//! The SQL workloads: MariaDB and PostgreSQL servers that Saiga starts, with sysbench and pgbench
//! as load.
//!
//! [`SqlWorkload`] implements the engine's workload; [`cells`] contains the default and the full
//! plan. The workloads measure the path between client and server: the tables are small and in
//! memory, and no operation waits for a disk. They are loaded once and kept from run to run: reads
//! do not change them, writes of sysbench keep their size, and pgbench removes the rows that its
//! previous run added. Server and client may be on two hosts (`saiga_hosts`). Deliberately absent:
//! how connections are accelerated.

pub mod cells;
mod events;
mod load;
mod mariadb;
mod postgres;
mod run;
mod target;
mod workload;

pub use load::{SqlLoad, Test};
pub use target::SqlTarget;
pub use workload::SqlWorkload;
