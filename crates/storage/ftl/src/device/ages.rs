//! Closed units in the order in which they were closed, with removal from the middle.

const NONE: u32 = u32::MAX;

/// A doubly linked list through all units; its ends meet in an extra node, the last one.
#[derive(Debug)]
pub(super) struct Ages {
    older: Vec<u32>,
    newer: Vec<u32>,
    ends: u32,
}

impl Ages {
    /// An empty list.
    pub(super) fn new(units: u32) -> Self {
        let mut list = Self {
            older: vec![NONE; units as usize + 1],
            newer: vec![NONE; units as usize + 1],
            ends: units,
        };
        list.link(units, units);
        list
    }

    /// Bytes on the heap.
    pub(super) fn heap_bytes(&self) -> usize {
        (self.older.capacity() + self.newer.capacity()) * size_of::<u32>()
    }

    /// A unit is closed.
    pub(super) fn insert(&mut self, unit: u32) {
        self.link(self.older[self.ends as usize], unit);
        self.link(unit, self.ends);
    }

    /// A unit leaves, wherever it stands.
    pub(super) fn remove(&mut self, unit: u32) {
        self.link(self.older[unit as usize], self.newer[unit as usize]);
    }

    /// Takes the unit that was closed first.
    pub(super) fn take_oldest(&mut self) -> Option<u32> {
        let unit = self.newer_than(self.ends)?;
        self.remove(unit);
        Some(unit)
    }

    /// The units, the oldest first.
    pub(super) fn members(&self) -> Vec<u32> {
        std::iter::successors(self.newer_than(self.ends), |unit| self.newer_than(*unit)).collect()
    }

    /// The unit that was closed next after this one; after `ends`, the first.
    fn newer_than(&self, unit: u32) -> Option<u32> {
        Some(self.newer[unit as usize]).filter(|unit| *unit != self.ends)
    }

    fn link(&mut self, older: u32, newer: u32) {
        self.newer[older as usize] = newer;
        self.older[newer as usize] = older;
    }
}
