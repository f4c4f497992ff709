//! The load driver: terminals that perform transactions, and the measurement of their run.
//!
//! [`Terminals::connect`] opens all connections. [`Terminals::run`] starts the terminals, collects
//! a sample of each transaction and returns the [`Measurement`]. Each terminal is a thread with its
//! own session, home district and random number generator. Deliberately absent: SQL statements
//! (`transactions`), result files and reports (`results`).

pub mod assignment;
pub mod clock;
pub mod connection;
mod coordinator;
mod cpu;
mod delivery;
mod executor;
pub mod pacing;
pub mod sample;
mod shared;
mod terminal;
mod terminals;

use std::time::Duration;

pub use assignment::Share;
pub use coordinator::{Measurement, Observer, Progress, RunEnd};
pub use delivery::DeliveryResult;
pub use pacing::{Arrivals, Pace};
pub use terminals::{StartError, Terminals};

use crate::spec::deck::Mix;
use crate::spec::nurand::Constants;

/// The settings of a run: size, length, pace, mix and limits.
#[derive(Debug, Clone, PartialEq)]
pub struct Setup {
    /// Number of warehouses that the run uses.
    pub warehouses: u32,
    /// Number of terminals of all load hosts; at most ten for each warehouse.
    pub terminals: u32,
    /// The part of the terminals that this host runs.
    pub share: Share,
    pub length: Length,
    pub ramp_up: RampUp,
    pub pace: Pace,
    pub mix: Mix,
    /// Whether each terminal keeps its home warehouse (§2.4.1.1).
    pub fixed_warehouse: bool,
    pub delivery: DeliveryMode,
    /// NURand constants of the run (C-Run).
    pub constants: Constants,
    /// Seed of all inputs and schedules; the same on every load host.
    pub seed: u64,
    /// Attempts at a transaction after the first one. Only conflicts are retried.
    pub max_retries: u16,
    /// Time limit, after the end of the run, for transactions in progress and queued deliveries.
    pub drain: Duration,
    /// Longest time without a completed transaction while connections are down or have no answer.
    /// After this time the run ends.
    pub give_up: Duration,
}

/// Length of the measured interval.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Length {
    Lasting(Duration),
    /// Until every terminal has performed this many transactions.
    PerTerminal(u32),
}

/// Length of the ramp-up, which precedes the measured interval.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RampUp {
    Lasting(Duration),
    /// Until the throughput has settled (MSER-5), but not longer than `at_most`.
    UntilSteady {
        at_most: Duration,
    },
}

/// How Delivery transactions are executed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeliveryMode {
    /// The terminal performs its deliveries and waits for them, as in BenchmarkSQL 5. This deviates
    /// from §2.7.2.
    Inline,
    /// Terminals put deliveries into a queue; `workers` threads, each with its own connection,
    /// perform them.
    Queued { workers: u32 },
}

#[cfg(test)]
mod fake;
#[cfg(test)]
mod tests;
