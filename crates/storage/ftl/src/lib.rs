//! Simulates a page-mapped flash translation layer and its write amplification.
//!
//! A [`Device`] takes writes of logical pages and counts the pages that garbage collection moves.
//! [`workload`] has synthetic writers, and [`steady`] runs them to the steady state; [`trace`]
//! reads block writes with file names, and [`replay`] simulates them under rule sets. [`theory`]
//! has closed forms. docs/ftl.md describes the model and its validation.
//!
//! Deliberately absent: files, clocks, threads; latencies and wear. Random choices have a seed.

#![forbid(unsafe_code)]

pub mod config;
pub mod counters;
mod device;
mod layout;
pub mod replay;
pub mod steady;
pub mod theory;
pub mod trace;
pub mod workload;

pub use config::{Config, ConfigError, Counting, GcFrontier, Isolation, Policy, Quota};
pub use counters::Counters;
pub use device::{Broken, Device, Occupancy};
pub use layout::Role;
