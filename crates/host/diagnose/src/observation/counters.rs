//! Hardware counters of the server under one placement.

use std::collections::BTreeMap;

/// Events that count accesses, by the events that count their misses.
const ACCESSES: [(&str, &[&str]); 5] = [
    ("cache-misses", &["cache-references"]),
    ("branch-misses", &["branches", "branch-instructions"]),
    ("L1-icache-load-misses", &["L1-icache-loads"]),
    ("L1-dcache-load-misses", &["L1-dcache-loads"]),
    ("LLC-load-misses", &["LLC-loads"]),
];

/// Counts of events by their names in perf(1), without modifiers and the name of the PMU.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Counters {
    /// Name of the placement.
    pub name: String,
    /// Above 0.
    pub instructions: f64,
    /// Above 0.
    pub cycles: f64,
    /// All other events.
    pub events: BTreeMap<String, f64>,
}

impl Counters {
    /// Instructions per cycle.
    #[must_use]
    pub fn ipc(&self) -> f64 {
        self.instructions / self.cycles
    }

    /// Misses of each kind: a share of the accesses if these were counted, or else a number per
    /// instruction. ARM names misses refills.
    pub fn miss_rates(&self) -> impl Iterator<Item = (&str, f64)> {
        let misses = self.events.iter().filter(|(name, _)| is_miss(name));
        misses.map(|(name, count)| (name.as_str(), count / self.accesses(name)))
    }

    /// Accesses of which `miss` counts the misses, or the instructions.
    fn accesses(&self, miss: &str) -> f64 {
        let known = ACCESSES.iter().find(|(name, _)| *name == miss);
        let names = known.map_or(&[][..], |(_, names)| names);
        let counted = names.iter().find_map(|name| self.events.get(*name));
        counted.copied().unwrap_or(self.instructions)
    }
}

fn is_miss(event: &str) -> bool {
    event.contains("miss") || event.contains("refill")
}
