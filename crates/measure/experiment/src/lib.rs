//! Paired experiments on one machine: arms, cells, pairs, runs and statistics.
//!
//! A [`workload::Workload`] knows how to run one load; [`plan`] decides what runs when,
//! [`engine`] does it, [`analysis`] draws the conclusions, [`result`] is what stays.

pub mod analysis;
pub mod cores;
pub mod engine;
pub mod host;
pub mod interrupt;
pub mod output;
pub mod plan;
pub mod process;
pub mod result;
pub mod stats;
pub mod workload;
