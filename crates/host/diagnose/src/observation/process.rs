//! The server under observation: limits of its cgroup, and where its memory and its code are.

use std::collections::BTreeMap;
use std::path::PathBuf;

/// Limits, waits and placement of a process tree.
#[derive(Debug, Clone, Default)]
pub struct Process {
    pub pid: u32,
    /// Name of the program.
    pub name: String,
    /// CPUs on which the process may run.
    pub cpus: Vec<usize>,
    /// NUMA nodes of `cpus`.
    pub nodes: Vec<u32>,
    /// The thread with the most CPU time during the observation.
    pub busiest_thread: Option<Thread>,
    /// Threads that wait for a CPU, on average over the observation (`man 5 proc`, schedstat).
    pub cpu_waits: Option<f64>,
    /// Bandwidth control of the cgroup during the observation (`cpu.stat`), if there is a limit.
    pub throttling: Option<Throttling>,
    /// Share of the observation in which some task of the cgroup, or of the host without a cgroup
    /// of its own, waited for memory (`memory.pressure`).
    pub memory_stall: Option<f64>,
    /// Volumes with files that the server has open for writing.
    pub volumes: Vec<Volume>,
    /// Resident memory by node in bytes.
    pub memory_bytes: BTreeMap<u32, u64>,
    /// Code of the program and its libraries in the page cache, by node in bytes.
    pub text_bytes: BTreeMap<u32, u64>,
}

/// A thread of the server.
#[derive(Debug, Clone, PartialEq)]
pub struct Thread {
    pub name: String,
    /// Share of the observation in which the thread ran, between 0 and 1.
    pub busy: f64,
}

/// A volume to which the server writes.
#[derive(Debug, Clone, PartialEq)]
pub struct Volume {
    /// Directory of one of the files.
    pub directory: PathBuf,
    pub total_bytes: u64,
    /// Bytes that unprivileged processes can still use.
    pub free_bytes: u64,
    /// Bytes per second that were used up during the observation; negative if space became free.
    pub filled_bytes_s: f64,
    /// Length of the observation in seconds.
    pub seen_s: f64,
}

/// CPU time of processes with the same name.
#[derive(Debug, Clone, PartialEq)]
pub struct Busy {
    pub name: String,
    /// CPUs in use on average.
    pub cpus: f64,
}

/// Bandwidth control of a cgroup: differences of `cpu.stat` over the observation.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Throttling {
    /// CPUs that the quota allows: quota divided by period.
    pub cpus: f64,
    /// `nr_periods`.
    pub periods: u64,
    /// `nr_throttled`.
    pub throttled: u64,
}

impl Process {
    /// Share of the bytes on the nodes of the process's CPUs; `None` without bytes or nodes.
    #[must_use]
    pub fn local_share(&self, bytes: &BTreeMap<u32, u64>) -> Option<f64> {
        let total: u64 = bytes.values().sum();
        let here = bytes.iter().filter(|(node, _)| self.nodes.contains(node));
        let local: u64 = here.map(|(_, bytes)| bytes).sum();
        (total > 0 && !self.nodes.is_empty()).then(|| local as f64 / total as f64)
    }
}
