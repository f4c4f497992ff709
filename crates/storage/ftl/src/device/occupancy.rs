//! Who holds how many units now, and how well they are filled.

use super::{Device, State};
use crate::layout::Role;

/// What one frontier holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Occupancy {
    /// The frontier.
    pub role: Role,
    /// Units that it filled or is filling.
    pub units: u32,
    /// Valid pages in them.
    pub valid_pages: u64,
}

impl Device {
    /// What each frontier holds now.
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

    /// Pages of an open unit that have still to be written; none of any other.
    pub(super) fn unwritten(&self, number: u32) -> u32 {
        let unit = self.units[number as usize];
        if unit.state != State::Open {
            return 0;
        }
        let frontier = self.frontiers[usize::from(unit.owner)];
        frontier.end - frontier.next
    }
}
