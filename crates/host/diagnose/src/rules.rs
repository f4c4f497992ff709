//! All rules. Each file is one kind of bottleneck.

mod change;
mod clock;
mod connections;
mod counted;
mod cpu;
mod database;
mod disk;
mod generator;
mod hops;
mod miss_cost;
mod numa;
mod placement;
mod pool;
mod ports;
mod replica;
mod saturation;
mod segments;
mod softirq;
mod space;
mod starvation;
mod status;
mod tail;
#[cfg(test)]
pub(crate) mod testing;

use crate::rule::Rule;

/// The rules in the order in which their judgements are printed.
pub const ALL: [Rule; 37] = [
    change::RULE,
    change::CONFOUNDED,
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
    numa::RULE,
    miss_cost::RULE,
    placement::MEMORY,
    placement::TEXT,
    disk::RULE,
    disk::FLUSH,
    space::RULE,
    database::LOCKS,
    database::CACHE,
    replica::RULE,
    status::DELAYED_FSYNC,
    status::MAX_CONNECTIONS,
    status::HANDSHAKES,
    connections::SHORT,
    connections::LOOKUPS,
    segments::NAGLE,
    segments::SMALL,
    ports::RULE,
    pool::RULE,
    counted::BACKLOG,
    counted::RETRANSMISSION,
    counted::CONNECTION_TRACKING,
    clock::RULE,
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
