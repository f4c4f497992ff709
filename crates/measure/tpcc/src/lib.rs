//! The TPC-C benchmark with BenchmarkSQL 5's schema and props files: population, load,
//! transactions, driver, checks and results.

pub mod build;
pub mod check;
pub mod consistency;
pub mod counters;
pub mod db;
pub mod destroy;
pub mod driver;
pub mod latency;
pub mod population;
pub mod props;
pub mod results;
pub mod script;
pub mod server_clock;
pub mod spec;
pub mod state;
pub mod table;
pub mod target;
pub mod transactions;
