//! Paired experiments on one machine: arms, cells, pairs, runs and statistics.
//!
//! A [`workload::Workload`] runs one load. [`plan`] computes the order of runs, [`engine`] executes
//! them, [`campaign`] records them on disk so that an experiment can be resumed after a reboot,
//! [`analysis`] computes comparisons and warnings, and [`result`] is the format of `result.json`.
//! [`file`](mod@file) reads experiment files.

pub mod acceleration;
pub mod analysis;
pub mod arm;
pub mod campaign;
pub mod draft;
pub mod engine;
pub mod file;
pub mod host;
pub mod observer;
pub mod output;
pub mod plan;
pub mod result;
pub mod server;
pub mod stats;
pub mod tool;
pub mod two_hosts;
pub mod workload;
