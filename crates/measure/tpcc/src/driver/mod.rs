//! The driver: terminals that perform transactions, and what they measure.
//!
//! [`Crew::connect`] opens all connections; [`Crew::run`] lets the terminals work and keeps the
//! books. Every terminal is a thread with a session, a place and random numbers of its own.
//! Deliberately absent: any statement (`transactions`), files and words (`results`).

pub mod clock;
mod conduct;
pub mod connection;
mod cpu;
mod crew;
mod delivery;
mod hands;
pub mod pacing;
pub mod places;
pub mod sample;
mod shared;
mod terminal;

use std::time::Duration;

pub use conduct::{End, Measured, Now, Watch};
pub use crew::{Crew, StartError};
pub use delivery::Delivered;
pub use pacing::{Arrivals, Pace};
pub use places::Share;

use crate::spec::deck::Mix;
use crate::spec::nurand::Constants;

/// What a run does.
#[derive(Debug, Clone, PartialEq)]
pub struct Setup {
    /// Warehouses of the database.
    pub warehouses: u32,
    /// Terminals over all hosts; at most ten for each warehouse.
    pub terminals: u32,
    /// Those of this host.
    pub share: Share,
    /// How long it is measured.
    pub length: Length,
    /// What comes before.
    pub ramp_up: RampUp,
    /// How transactions follow each other.
    pub pace: Pace,
    /// The mix of transactions.
    pub mix: Mix,
    /// Each terminal stays at its warehouse (§2.4.1.1).
    pub fixed_warehouse: bool,
    /// Who carries out deliveries.
    pub delivery: Delivery,
    /// NURand's constants of the run.
    pub constants: Constants,
    /// From which all inputs follow.
    pub seed: u64,
    /// Attempts at a transaction after the first one, each after a conflict.
    pub max_retries: u16,
    /// How long transactions that are under way, or queued, may take after the end.
    pub drain: Duration,
    /// The run ends when nothing was done for so long and connections are down, or have no answer.
    pub give_up: Duration,
}

/// How long a run is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Length {
    /// So long.
    Lasting(Duration),
    /// Until every terminal has done so many transactions.
    PerTerminal(u32),
}

/// What comes before the measured interval.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RampUp {
    /// So much time.
    Lasting(Duration),
    /// Until the throughput has settled, but no longer than this.
    UntilSteady {
        /// The longest.
        at_most: Duration,
    },
}

/// Who carries out deliveries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Delivery {
    /// The terminal, which waits for it, as BenchmarkSQL 5 does: a deviation from §2.7.2.
    Inline,
    /// Connections of their own, so many of them; terminals go on.
    Queued {
        /// How many.
        workers: u32,
    },
}

#[cfg(test)]
mod fake;
#[cfg(test)]
mod tests;
