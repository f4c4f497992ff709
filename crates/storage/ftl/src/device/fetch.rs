//! Reads ahead, so that many cache misses are waited for at once instead of one by one.
//!
//! Nothing here changes anything or has a result. (There is no prefetch in safe Rust.)

use std::hint::black_box;

use super::Device;

/// Pages that it pays to announce at a time: what they need fits into the first cache.
pub(crate) const AHEAD: usize = 128;

impl Device {
    /// The host will soon write or discard these pages, about [`AHEAD`] of them.
    pub(crate) fn expect(&self, pages: &[u32]) {
        let entry = |page: &u32| self.place.get(*page as usize).copied().unwrap_or(0);
        black_box(pages.iter().map(entry).fold(0, u32::wrapping_add));
        let shift = self.layout.shift;
        let mut sum = 0;
        for &page in pages {
            // Pages that are nowhere are beyond the end of everything.
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

/// Pages that follow one another: the first of each cache line.
#[inline]
pub(super) fn run(pages: &[u32]) {
    black_box(pages.iter().step_by(16).fold(0, |sum, page| sum ^ page));
}
