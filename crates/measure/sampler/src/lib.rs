//! The host beside a run: what CPUs, disks, networks and processes did, once a second.
//!
//! [`Sampler::start`] takes a [`Config`] and a [`Sink`]; rows go to a [`series`] file as they
//! come, the newest one is a [`Snapshot`] for a [`dashboard`], and [`Sampler::stop`] answers
//! with the [`summary`] of the measured interval. docs/host-metrics.md names every metric.
//!
//! Deliberately absent: connections to databases (a [`status::StatusSource`] brings their
//! counters), changes to the host, drawing for the report.

pub mod benchmarksql;
pub mod config;
pub mod dashboard;
mod deadline;
mod engine;
mod number;
mod pace;
mod rate;
mod sampler;
pub mod series;
mod sketch;
pub mod snapshot;
mod source;
pub mod status;
pub mod summary;
mod table;

pub use config::{BenchmarkSqlSink, Config, Device, Group, Roots, Sink};
pub use sampler::{Sampler, StartError};
pub use snapshot::Snapshot;
pub use source::filesystem::Fill;
