//! Samples the host during a run: CPUs, disks, networks and processes, once a second.
//!
//! [`Sampler::start`] takes a [`Config`] and a [`Sink`]. Each row is appended to a [`series`] file
//! and is available as a [`Snapshot`] for a [`dashboard`]; [`Sampler::stop`] returns the
//! [`summary`] of the measured interval. docs/host-metrics.md lists all metrics.
//!
//! Deliberately absent: connections to databases (the counters come from a
//! [`status::StatusSource`]), changes to the host, and charts for the report.

pub mod benchmarksql;
pub mod config;
pub mod dashboard;
mod deadline;
mod engine;
mod number;
mod rate;
mod sampler;
pub mod series;
mod sketch;
pub mod snapshot;
mod source;
pub mod status;
pub mod summary;
mod table;
mod throttle;

pub use config::{BenchmarkSqlSink, Config, Device, Group, Roots, Sink};
pub use sampler::{Sampler, StartError};
pub use snapshot::Snapshot;
pub use source::filesystem::Usage;
