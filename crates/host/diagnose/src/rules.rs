//! All rules. Each file is one kind of bottleneck.

mod counted;
mod cpu;
mod database;
mod disk;
mod generator;
mod hops;
mod placement;
mod pool;
mod ports;
mod saturation;
mod softirq;
mod starvation;
mod tail;
#[cfg(test)]
pub(crate) mod testing;

use crate::rule::Rule;

/// The rules in the order in which their judgements are printed.
pub const ALL: [Rule; 23] = [
    saturation::RULE,
    generator::RULE,
    starvation::RULE,
    hops::RULE,
    tail::RULE,
    cpu::RULE,
    cpu::ONE_THREAD,
    counted::THROTTLING,
    counted::STEAL,
    softirq::RULE,
    counted::SWAP,
    counted::MEMORY_PRESSURE,
    placement::MEMORY,
    placement::TEXT,
    disk::RULE,
    disk::FLUSH,
    database::LOCKS,
    database::CACHE,
    ports::RULE,
    pool::RULE,
    counted::BACKLOG,
    counted::RETRANSMISSION,
    counted::CONNECTION_TRACKING,
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_of_lower_case() {
        let mut names: Vec<&str> = ALL.iter().map(|rule| rule.name).collect();
        let is_plain = |name: &str| name.chars().all(|c| c.is_ascii_lowercase() || c == '-');
        assert!(names.iter().all(|name| is_plain(name)));
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), ALL.len());
    }
}
