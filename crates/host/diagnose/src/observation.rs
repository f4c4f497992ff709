//! What was measured. A part is present only if its source was given.

pub mod change;
pub mod counters;
pub mod load;
pub mod metrics;
pub mod network;
pub mod process;

use change::Change;
use counters::Counters;
use load::Load;
use metrics::Metrics;
use network::Network;
use process::{Busy, Process};
use saiga_topology::latency::Latency;

/// The input of all rules.
#[derive(Debug, Default)]
pub struct Observation {
    /// Clients, throughput and response time over time, at one or several hops.
    pub load: Load,
    /// The host's metrics over time.
    pub metrics: Metrics,
    pub network: Option<Network>,
    /// The server under observation.
    pub process: Option<Process>,
    /// The busiest processes that are neither the server nor its clients.
    pub busy: Vec<Busy>,
    /// A change that an experiment compared.
    pub change: Option<Change>,
    /// Latencies of the machine's memory.
    pub latency: Option<Latency>,
    /// Hardware counters under two placements, or none.
    pub counters: Vec<Counters>,
    /// The largest step of the wall clock during the observation, in seconds; `None` if no source
    /// shows the clock.
    pub clock_step_s: Option<f64>,
    /// Sources that could not be read, and why.
    pub gaps: Vec<Gap>,
}

/// A source that could not be read, or only in part.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Gap {
    /// The source: a file, a table of the kernel.
    pub source: String,
    /// Why, and what to do.
    pub reason: String,
}
