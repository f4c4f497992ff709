//! Closed units in order of valid pages, maintained with one swap per lost page.
//!
//! All units are in one ring, the emptiest first. A unit that loses a page is swapped with the
//! first unit of its count, and the border between the counts moves after it: constant time, no
//! lists. Counts only fall, because pages of a closed unit are never written again.

/// The ranking. Positions only increase, and are masked to indices of the ring.
#[derive(Debug)]
pub(super) struct Ranking {
    ring: Vec<u32>,
    mask: u64,
    /// The position of each unit; undefined for units that are not in the ranking.
    position: Vec<u64>,
    /// `border[v]`: the first position of a unit with `v` valid pages or more. Values below `first`
    /// are stale and mean `first`.
    border: Vec<u64>,
    first: u64,
    end: u64,
    full: u32,
}

impl Ranking {
    pub(super) fn new(units: u32, unit_pages: u32) -> Self {
        let size = u64::from(units).next_power_of_two();
        Self {
            ring: vec![0; units.next_power_of_two() as usize],
            mask: size - 1,
            position: vec![0; units as usize],
            border: vec![0; unit_pages as usize + 1],
            first: 0,
            end: 0,
            full: unit_pages,
        }
    }

    pub(super) fn heap_bytes(&self) -> usize {
        (self.position.capacity() + self.border.capacity()) * size_of::<u64>()
            + self.ring.capacity() * size_of::<u32>()
    }

    /// Adds a unit with `valid` pages.
    pub(super) fn insert(&mut self, unit: u32, valid: u32) {
        self.put(unit, self.end);
        self.end += 1;
        for left in (valid..self.full).rev() {
            self.lost_page(unit, left);
        }
    }

    /// Updates a unit that now has `valid` pages, one less than before.
    #[inline]
    pub(super) fn lost_page(&mut self, unit: u32, valid: u32) {
        let from = self.position[unit as usize];
        let border = &mut self.border[valid as usize + 1];
        let to = (*border).max(self.first);
        *border = to + 1;
        let other = self.at(to);
        self.put(other, from);
        self.put(unit, to);
    }

    /// Returns some bits of the data of a unit that loses a page, to load them into the caches.
    #[inline]
    pub(super) fn peek(&self, unit: usize) -> u32 {
        self.position.get(unit).map_or(0, |at| self.at(*at))
    }

    /// Returns the first unit, which has the fewest valid pages.
    pub(super) fn first(&self) -> Option<u32> {
        (self.first != self.end).then(|| self.at(self.first))
    }

    /// Removes and returns, of the units with as few valid pages as the first (`valid`), the one
    /// that reached this count last.
    ///
    /// The unit that reached it first would be better: it is the coldest, and the others would lose
    /// more pages. But no device is known to do so, and it makes separate streams look up to a
    /// percent better than lists whose newest entry is taken.
    pub(super) fn take_emptiest(&mut self, valid: u32) -> Option<u32> {
        let first = self.first()?;
        let next = match self.border.get(valid as usize + 1) {
            Some(border) => (*border).max(self.first),
            None => self.end,
        };
        let last = self.at(next - 1);
        self.put(first, next - 1);
        self.put(last, self.first);
        self.first += 1;
        Some(last)
    }

    /// Returns the units, the emptiest first.
    pub(super) fn members(&self) -> Vec<u32> {
        (self.first..self.end).map(|at| self.at(at)).collect()
    }

    fn at(&self, position: u64) -> u32 {
        self.ring[self.slot(position)]
    }

    #[inline]
    fn put(&mut self, unit: u32, position: u64) {
        let slot = self.slot(position);
        self.ring[slot] = unit;
        self.position[unit as usize] = position;
    }

    #[inline]
    fn slot(&self, position: u64) -> usize {
        #[expect(
            clippy::cast_possible_truncation,
            reason = "masked to the ring's length"
        )]
        let slot = (position & self.mask) as usize;
        slot
    }
}
