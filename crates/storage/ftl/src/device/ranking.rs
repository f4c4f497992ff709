//! Closed units in order of their valid pages, kept with one swap per lost page.
//!
//! All units stand in one ring, the emptiest first. A unit that loses a page changes places with
//! the first unit of its count, and the border between the counts moves behind it: constant
//! time, no lists. Counts only fall, for pages of a closed unit are never written again.

/// The order. Positions count from the beginning of time and are masked into the ring.
#[derive(Debug)]
pub(super) struct Ranking {
    ring: Vec<u32>,
    mask: u64,
    /// Where each unit stands; meaningless for units that are not here.
    position: Vec<u64>,
    /// `border[v]`: the first position of a unit with `v` valid pages or more. Those below
    /// `first` are stale and mean `first`.
    border: Vec<u64>,
    first: u64,
    end: u64,
    full: u32,
}

impl Ranking {
    /// An empty ranking of units with `unit_pages` pages.
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

    /// Bytes on the heap.
    pub(super) fn heap_bytes(&self) -> usize {
        (self.position.capacity() + self.border.capacity()) * size_of::<u64>()
            + self.ring.capacity() * size_of::<u32>()
    }

    /// A unit with `valid` pages is closed.
    pub(super) fn insert(&mut self, unit: u32, valid: u32) {
        self.put(unit, self.end);
        self.end += 1;
        for left in (valid..self.full).rev() {
            self.lost_page(unit, left);
        }
    }

    /// A unit has `valid` pages left, one less than before.
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

    /// Something of what a unit that loses a page will need, to have it in the caches.
    #[inline]
    pub(super) fn peek(&self, unit: usize) -> u32 {
        self.position.get(unit).map_or(0, |at| self.at(*at))
    }

    /// The unit at the beginning: none has fewer valid pages.
    pub(super) fn first(&self) -> Option<u32> {
        (self.first != self.end).then(|| self.at(self.first))
    }

    /// Takes, of the units that have as few valid pages as the first, the one that came to this
    /// count last; `valid` is that count.
    ///
    /// The one that came first would be the better choice: it is the coldest, so the others can
    /// be left to lose more pages. But no device is known to choose so, and it makes separate
    /// streams look up to a percent better than lists whose newest entry is taken.
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

    /// The units, the emptiest first.
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
