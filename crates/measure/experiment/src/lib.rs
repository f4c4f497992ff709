//! Paired experiments on one machine: arms, cells, pairs, runs and statistics.
//!
//! A [`workload::Workload`] knows how to run one load; [`plan`] decides what runs when,
//! [`engine`] does it, [`campaign`] lets it survive a reboot, [`analysis`] draws the
//! conclusions, [`result`] is what stays.

pub mod acceleration;
pub mod account;
pub mod analysis;
pub mod arm;
pub mod beside;
pub mod campaign;
pub mod cores;
pub mod cpu;
pub mod engine;
pub mod file;
mod group;
pub mod host;
pub mod interrupt;
pub mod log;
pub mod memory;
pub mod numbers;
pub mod output;
pub mod plan;
pub mod port;
pub mod process;
pub mod result;
pub mod secret;
pub mod server;
pub mod stats;
pub mod tool;
pub mod tree;
pub mod version;
pub mod workload;
