//! Closed units without order, for policies with random draws.

use super::Unit;

/// A set of units with random draws.
#[derive(Debug)]
pub(super) struct Pool {
    members: Vec<u32>,
    /// The index of each unit in `members`; undefined for other units.
    slot: Vec<usize>,
}

impl Pool {
    pub(super) fn new(units: u32) -> Self {
        Self {
            members: Vec::with_capacity(units as usize),
            slot: vec![0; units as usize],
        }
    }

    pub(super) fn heap_bytes(&self) -> usize {
        self.members.capacity() * size_of::<u32>() + self.slot.capacity() * size_of::<usize>()
    }

    pub(super) fn insert(&mut self, unit: u32) {
        self.slot[unit as usize] = self.members.len();
        self.members.push(unit);
    }

    pub(super) fn remove(&mut self, unit: u32) {
        let slot = self.slot[unit as usize];
        self.members.swap_remove(slot);
        if let Some(&moved) = self.members.get(slot) {
            self.slot[moved as usize] = slot;
        }
    }

    /// Returns the emptiest of some units drawn at random, with replacement.
    ///
    /// If all drawn units are full of valid pages, returns the emptiest of all units, so that
    /// collection always ends.
    pub(super) fn draw(
        &self,
        samples: u32,
        units: &[Unit],
        full: u32,
        rng: &mut fastrand::Rng,
    ) -> Option<u32> {
        let valid = |unit: &u32| units[*unit as usize].valid;
        let drawn = (0..samples).filter_map(|_| {
            let count = self.members.len();
            (count > 0).then(|| self.members[rng.usize(..count)])
        });
        let best = drawn.min_by_key(valid)?;
        if valid(&best) < full {
            return Some(best);
        }
        self.members.iter().copied().min_by_key(valid)
    }

    pub(super) fn members(&self) -> &[u32] {
        &self.members
    }
}
