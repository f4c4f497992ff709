//! Closed units in no order, for policies that draw from them.

use super::Unit;

/// The units.
#[derive(Debug)]
pub(super) struct Pool {
    members: Vec<u32>,
    /// Where each unit stands among the members; meaningless for others.
    slot: Vec<usize>,
}

impl Pool {
    /// An empty pool.
    pub(super) fn new(units: u32) -> Self {
        Self {
            members: Vec::with_capacity(units as usize),
            slot: vec![0; units as usize],
        }
    }

    /// Bytes on the heap.
    pub(super) fn heap_bytes(&self) -> usize {
        self.members.capacity() * size_of::<u32>() + self.slot.capacity() * size_of::<usize>()
    }

    /// A unit is closed.
    pub(super) fn insert(&mut self, unit: u32) {
        self.slot[unit as usize] = self.members.len();
        self.members.push(unit);
    }

    /// A unit leaves.
    pub(super) fn remove(&mut self, unit: u32) {
        let slot = self.slot[unit as usize];
        self.members.swap_remove(slot);
        if let Some(&moved) = self.members.get(slot) {
            self.slot[moved as usize] = slot;
        }
    }

    /// The emptiest of some units drawn at random, with replacement.
    ///
    /// When all that are drawn are full of valid pages, moving one would gain nothing: then it is
    /// the emptiest of all, so that collecting always comes to an end.
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

    /// The units, in no order.
    pub(super) fn members(&self) -> &[u32] {
        &self.members
    }
}
