//! The registry of knobs.

mod cpu;
mod disk;
mod hugepages;
mod interrupts;
mod kernel;
mod limits;
mod memory;
mod network;
mod nic;
mod services;
mod sockets;
mod steering;
mod thp;

use crate::knob::Knob;

pub use interrupts::Class;
pub use interrupts::class;

pub(crate) use services::IRQBALANCE;

const GROUPS: [&[Knob]; 13] = [
    services::KNOBS,
    nic::KNOBS,
    interrupts::KNOBS,
    steering::KNOBS,
    kernel::KNOBS,
    cpu::KNOBS,
    limits::KNOBS,
    memory::KNOBS,
    thp::KNOBS,
    hugepages::KNOBS,
    network::KNOBS,
    sockets::KNOBS,
    disk::KNOBS,
];

/// All knobs, group by group.
pub fn registry() -> impl Iterator<Item = &'static Knob> {
    GROUPS.iter().copied().flatten()
}

#[must_use]
pub fn knob(id: &str) -> Option<&'static Knob> {
    registry().find(|knob| knob.id == id)
}

/// The knob with the most similar name, for a hint after a typing error.
#[must_use]
pub fn nearest(id: &str) -> Option<&'static str> {
    let with_distance = registry().map(|knob| (strsim::damerau_levenshtein(knob.id, id), knob.id));
    let (distance, nearest) = with_distance.min()?;
    // `swappiness` is as good as `vm.swapiness`.
    let part = || registry().find(|knob| knob.id.rsplit('.').next() == Some(id));
    if distance <= id.len() / 3 {
        return Some(nearest);
    }
    part().map(|knob| knob.id)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_knob_says_what_it_is_for() {
        let mut ids = BTreeSet::new();
        for knob in registry() {
            assert!(ids.insert(knob.id), "{} twice", knob.id);
            for text in [
                knob.purpose,
                knob.reason,
                knob.source,
                knob.effect,
                knob.default,
            ] {
                assert!(!text.is_empty(), "{}", knob.id);
                assert!(!text.contains('|') && !text.contains('\n'), "{}", knob.id);
            }
        }
    }

    #[test]
    fn a_typing_error_gets_a_hint() {
        for (typed, expected) in [
            ("vm.swapiness", Some("vm.swappiness")),
            ("swappiness", Some("vm.swappiness")),
            ("thp.enable", Some("thp.enabled")),
            ("colour", None),
        ] {
            assert_eq!(nearest(typed), expected, "{typed}");
        }
    }
}
