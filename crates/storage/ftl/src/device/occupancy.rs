//! The units and valid pages of each frontier, and the mixing of classes within units.

use super::{Device, State};
use crate::layout::Role;

/// The units of one frontier.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Occupancy {
    pub role: Role,
    /// Units that were filled or are being filled by the frontier.
    pub units: u32,
    /// Valid pages in these units.
    pub valid_pages: u64,
}

impl Device {
    /// Returns the units of each frontier.
    #[must_use]
    pub fn occupancy(&self) -> Vec<Occupancy> {
        let empty = |&role: &Role| Occupancy {
            role,
            units: 0,
            valid_pages: 0,
        };
        let mut held: Vec<Occupancy> = self.layout.roles.iter().map(empty).collect();
        for (number, unit) in (0..).zip(&self.units) {
            if unit.state != State::Free {
                let holder = &mut held[usize::from(unit.owner)];
                holder.units += 1;
                holder.valid_pages += u64::from(unit.valid - self.unwritten(number));
            }
        }
        held
    }

    /// Returns the mixing of classes within units in bits: the entropy of the classes of a unit's
    /// valid pages, averaged over all valid pages. 0 if no unit has pages of two classes; at most
    /// log2 of the number of classes.
    #[must_use]
    pub fn mixing_bits(&self) -> f64 {
        let classes = self.config.classes.len();
        if classes == 1 {
            return 0.0;
        }
        let (mut bits, mut all) = (0.0, 0_u64);
        let mut counts = vec![0; classes];
        for (number, unit) in (0..).zip(&self.units) {
            if unit.state == State::Free {
                continue;
            }
            let first = number << self.layout.shift;
            let end = first + self.config.unit_pages - self.unwritten(number);
            for place in (first..end).filter(|place| self.live.is_live(*place)) {
                counts[usize::from(self.class[place as usize])] += 1;
            }
            bits += entropy_bits(&counts);
            all += counts.iter().sum::<u64>();
            counts.fill(0);
        }
        if all == 0 { 0.0 } else { bits / all as f64 }
    }

    /// Returns the unwritten pages of an open unit; 0 for other units.
    pub(super) fn unwritten(&self, number: u32) -> u32 {
        let unit = self.units[number as usize];
        if unit.state != State::Open {
            return 0;
        }
        let frontier = self.frontiers[usize::from(unit.owner)];
        frontier.end - frontier.next
    }
}

/// Returns the entropy of the counts in bits, multiplied by their sum.
fn entropy_bits(counts: &[u64]) -> f64 {
    let all: u64 = counts.iter().sum();
    let part = |count: &u64| *count as f64 * (all as f64 / *count as f64).log2();
    counts.iter().filter(|count| **count > 0).map(part).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entropy_is_that_of_the_shares() {
        for (counts, expected) in [
            (&[0, 0][..], 0.0),
            (&[7, 0], 0.0),
            (&[4, 4], 8.0),
            (&[2, 2, 2, 2], 16.0),
            // 4 * log2(4/3) * 3/4 + 4 * 2 * 1/4.
            (&[3, 1], 3.245_112_497_836_531_4),
        ] {
            let found = entropy_bits(counts);
            assert!((found - expected).abs() < 1e-12, "{counts:?}: {found}");
        }
    }
}
