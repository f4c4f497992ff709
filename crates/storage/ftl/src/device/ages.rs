//! Closed units in order of closing, with removal from the middle.

const NONE: u32 = u32::MAX;

/// A doubly linked list of units. Its ends are linked to an extra node, the last one.
#[derive(Debug)]
pub(super) struct Ages {
    older: Vec<u32>,
    newer: Vec<u32>,
    ends: u32,
}

impl Ages {
    pub(super) fn new(units: u32) -> Self {
        let mut list = Self {
            older: vec![NONE; units as usize + 1],
            newer: vec![NONE; units as usize + 1],
            ends: units,
        };
        list.link(units, units);
        list
    }

    pub(super) fn heap_bytes(&self) -> usize {
        (self.older.capacity() + self.newer.capacity()) * size_of::<u32>()
    }

    /// Appends a unit.
    pub(super) fn insert(&mut self, unit: u32) {
        self.link(self.older[self.ends as usize], unit);
        self.link(unit, self.ends);
    }

    /// Removes a unit at any position.
    pub(super) fn remove(&mut self, unit: u32) {
        self.link(self.older[unit as usize], self.newer[unit as usize]);
    }

    /// Removes and returns the unit that was closed first.
    pub(super) fn take_oldest(&mut self) -> Option<u32> {
        let unit = self.newer_than(self.ends)?;
        self.remove(unit);
        Some(unit)
    }

    /// Returns the units, the oldest first.
    pub(super) fn members(&self) -> Vec<u32> {
        std::iter::successors(self.newer_than(self.ends), |unit| self.newer_than(*unit)).collect()
    }

    /// Returns the unit that was closed after `unit`; after `ends`, the first.
    fn newer_than(&self, unit: u32) -> Option<u32> {
        Some(self.newer[unit as usize]).filter(|unit| *unit != self.ends)
    }

    fn link(&mut self, older: u32, newer: u32) {
        self.newer[older as usize] = newer;
        self.older[newer as usize] = older;
    }
}
