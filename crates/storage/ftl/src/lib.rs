//! A page-mapped flash translation layer, simulated: what would write amplification be?
//!
//! A [`Device`] takes logical pages and counts what garbage collection moves. [`workload`] has
//! synthetic writers and [`steady`] drives them to the steady state; [`trace`] reads block writes
//! with file identity, and [`replay`] asks how rule sets would have placed them. [`theory`] has
//! what is known in closed form. docs/ftl.md describes the model and how it was validated.
//!
//! Deliberately absent: files, clocks, threads; latencies and wear. Randomness has a seed.

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
