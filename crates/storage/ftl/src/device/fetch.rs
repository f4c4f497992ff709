//! Reads ahead, so that many cache misses are served at once instead of one by one.
//!
//! Has no effect on results; safe Rust has no prefetch instruction.

use std::hint::black_box;

use super::Device;

/// Number of pages to announce at a time: their data fit into the first-level cache.
pub(crate) const AHEAD: usize = 128;

impl Device {
    /// Announces about [`AHEAD`] pages that the host will write or discard soon.
    pub(crate) fn expect(&self, pages: &[u32]) {
        let entry = |page: &u32| self.place.get(*page as usize).copied().unwrap_or(0);
        black_box(pages.iter().map(entry).fold(0, u32::wrapping_add));
        let shift = self.layout.shift;
        let mut sum = 0;
        for &page in pages {
            // Unmapped pages are beyond the end of all arrays.
            let place = self.place.get(page as usize).copied().unwrap_or(u32::MAX);
            sum ^= self.live.peek(place);
            let number = (place >> shift) as usize;
            if let Some(unit) = self.units.get(number) {
                sum ^= self.closed[usize::from(unit.account)].peek(number);
            }
        }
        black_box(sum);
    }
}

/// Loads adjacent pages, one of each cache line.
#[inline]
pub(super) fn run(pages: &[u32]) {
    black_box(pages.iter().step_by(16).fold(0, |sum, page| sum ^ page));
}
