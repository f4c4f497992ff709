//! The processes that used most CPU time during an observation, without the server and its clients.

use std::collections::{BTreeMap, BTreeSet};

use saiga_process::proc::{self, Stat};

use crate::observation::process::Busy;

/// Processes to name.
const NAMED: usize = 3;
/// CPUs below which a process is not named.
const LEAST_CPUS: f64 = 0.05;

/// CPU time of all visible processes.
#[derive(Debug)]
pub(super) struct Processes {
    /// Ticks by PID and start time.
    ticks: BTreeMap<(u32, u64), u64>,
}

impl Processes {
    pub(super) fn read() -> Self {
        let stats = proc::pids().unwrap_or_default().into_iter();
        let stats = stats.filter_map(|pid| Stat::of(pid).ok());
        let ticks = stats.map(|one| ((one.pid, one.start_ticks), one.own_ticks));
        Self {
            ticks: ticks.collect(),
        }
    }

    /// The busiest processes since the reading, by name. `known` and their descendants, this
    /// process and the kernel's threads are left out. Processes that have ended are not seen.
    pub(super) fn busiest(&self, known: &BTreeSet<u32>, seconds: f64) -> Vec<Busy> {
        let mut known = known.clone();
        known.insert(std::process::id());
        let mut cpus: BTreeMap<String, f64> = BTreeMap::new();
        let per_second = rustix::param::clock_ticks_per_second() as f64;
        // A parent has a lower PID than its children, but for a wrap of the numbers.
        for pid in proc::pids().unwrap_or_default() {
            let Ok(stat) = Stat::of(pid) else { continue };
            if known.contains(&stat.parent) {
                known.insert(pid);
            }
            if known.contains(&pid) || stat.is_kernel_thread {
                continue;
            }
            let before = self
                .ticks
                .get(&(pid, stat.start_ticks))
                .copied()
                .unwrap_or(0);
            let used = stat.own_ticks.saturating_sub(before) as f64 / per_second / seconds;
            *cpus.entry(stat.name).or_default() += used;
        }
        let mut busiest: Vec<Busy> = cpus
            .into_iter()
            .filter(|(_, cpus)| *cpus >= LEAST_CPUS)
            .map(|(name, cpus)| Busy { name, cpus })
            .collect();
        busiest.sort_by(|a, b| b.cpus.total_cmp(&a.cpus));
        busiest.truncate(NAMED);
        busiest
    }
}
