//! Memory latency from CPUs to NUMA nodes, measured by a chase of pointers.
//!
//! A thread on one CPU follows a random cycle of pointers in memory of one node, so that neither
//! the prefetcher nor a cache can help. The times are compared with the firmware's distances.
//!
//! Deliberately absent: bandwidth, and latency under load.

mod compare;
mod measure;
mod memory;

pub use compare::{Comparison, compare};
pub use measure::{LatencyError, Options, measure};

use serde::{Deserialize, Serialize};

/// Latencies from some CPUs to all nodes with memory.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Latency {
    /// Size of the memory in which pointers are followed.
    pub bytes: u64,
    /// Size of the pages, such as `2 MiB huge pages`.
    pub pages: String,
    /// Columns: the nodes that hold the memory.
    pub nodes: Vec<u32>,
    pub rows: Vec<Row>,
    /// What limits the meaning of the numbers, in sentences.
    pub notes: Vec<String>,
}

/// The latencies from one CPU.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Row {
    pub cpu: u32,
    /// The node of the CPU.
    pub node: u32,
    /// One for each of [`Latency::nodes`]; `None` if memory cannot be placed there.
    pub cells: Vec<Option<Samples>>,
}

/// Nanoseconds per access, one number for each repetition.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Samples {
    pub ns: Vec<f64>,
}

impl Samples {
    /// The smallest number, which interrupts and other threads disturbed least.
    #[must_use]
    pub fn least(&self) -> f64 {
        self.ns.iter().copied().fold(f64::INFINITY, f64::min)
    }

    #[must_use]
    pub fn median(&self) -> f64 {
        let mut sorted = self.ns.clone();
        sorted.sort_by(f64::total_cmp);
        sorted
            .get(sorted.len() / 2)
            .copied()
            .unwrap_or(f64::INFINITY)
    }

    #[must_use]
    pub fn greatest(&self) -> f64 {
        self.ns.iter().copied().fold(0.0, f64::max)
    }
}
