//! A part of the addresses, for recordings that would be too long: one granule of each stratum is
//! kept.
//!
//! What is kept is numbered without gaps, so that what followed each other still does: rings stay
//! rings, a request stays one row, and a file keeps its share of the writes.

use std::ops::Range;

/// Of so many granules that follow each other one is kept, drawn by a hash of their place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sampling {
    one_in: u32,
    granule_bytes: u64,
}

impl Sampling {
    /// Bytes of a granule of new recordings: a page of InnoDB, the largest that databases write by
    /// default.
    const GRANULE_BYTES: u64 = 16 << 10;
    /// The smallest share is one part in this many.
    pub const MOST: u32 = 1 << 10;

    /// One granule in `one_in`; `None` beyond [`MOST`](Self::MOST) and for 0.
    #[must_use]
    pub fn new(one_in: u32) -> Option<Self> {
        Self::of(one_in, Self::GRANULE_BYTES)
    }

    pub(super) fn of(one_in: u32, granule_bytes: u64) -> Option<Self> {
        let is_fit = (1..=Self::MOST).contains(&one_in)
            && granule_bytes.is_power_of_two()
            && (super::SECTOR_BYTES..=1 << 30).contains(&granule_bytes);
        is_fit.then_some(Self {
            one_in,
            granule_bytes,
        })
    }

    /// How many bytes of the whole each byte of the sample stands for.
    #[must_use]
    pub fn one_in(self) -> u32 {
        self.one_in
    }

    /// Bytes that are kept, or not, together.
    #[must_use]
    pub fn granule_bytes(self) -> u64 {
        self.granule_bytes
    }

    /// Where the part of a range that is kept lies in the sample; empty when none is.
    #[must_use]
    pub fn range(self, range: &Range<u64>) -> Range<u64> {
        self.kept_before(range.start)..self.kept_before(range.end)
    }

    /// How many bytes are kept of those before an address.
    fn kept_before(self, address: u64) -> u64 {
        let stratum_bytes = self.granule_bytes * u64::from(self.one_in);
        let (stratum, place) = (address / stratum_bytes, address % stratum_bytes);
        let kept = mix(stratum) % u64::from(self.one_in) * self.granule_bytes;
        stratum * self.granule_bytes + place.saturating_sub(kept).min(self.granule_bytes)
    }
}

/// The finaliser of SplitMix64: what it makes of neighbours has nothing in common.
pub(crate) fn mix(number: u64) -> u64 {
    let mut hash = number.wrapping_add(0x9E37_79B9_7F4A_7C15);
    hash = (hash ^ (hash >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    hash = (hash ^ (hash >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    hash ^ (hash >> 31)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn one_granule_of_each_stratum_is_kept_and_whole() {
        let sampling = Sampling::new(10).unwrap();
        let granule = sampling.granule_bytes();
        let kept = |number: u64| {
            let found = sampling.range(&(number * granule..(number + 1) * granule));
            found.end - found.start
        };
        let mut places = Vec::new();
        for stratum in 0..1000 {
            let kept: Vec<u64> = (stratum * 10..stratum * 10 + 10).map(kept).collect();
            places.push(kept.iter().position(|bytes| *bytes > 0).unwrap());
            assert_eq!(kept.iter().sum::<u64>(), granule, "{kept:?}");
        }
        // Every place of a stratum about as often: a tenth of the strata each.
        for place in 0..10 {
            let count = places.iter().filter(|one| **one == place).count();
            assert!((60..140).contains(&count), "{place}: {count}");
        }
    }

    #[test]
    fn the_whole_is_a_sample_and_none_is_not() {
        let whole = Sampling::new(1).unwrap();
        assert_eq!(whole.range(&(512..1 << 40)), 512..1 << 40);
        assert_eq!(
            [Sampling::new(0), Sampling::new(Sampling::MOST + 1)],
            [None; 2]
        );
        assert_eq!([Sampling::of(2, 3000), Sampling::of(2, 256)], [None; 2]);
    }

    proptest! {
        /// Against a look at each sector.
        #[test]
        fn a_range_becomes_the_sectors_of_it_that_are_kept(
            one_in in 1..9_u32,
            start in 0..2000_u64,
            sectors in 0..2000_u64,
        ) {
            let sampling = Sampling::of(one_in, 4096).unwrap();
            let kept = |sector: u64| {
                let (stratum, place) = (sector / 8 / u64::from(one_in), sector / 8 % u64::from(one_in));
                mix(stratum) % u64::from(one_in) == place
            };
            let count = |sectors: Range<u64>| 512 * sectors.filter(|sector| kept(*sector)).count() as u64;
            let found = sampling.range(&(start * 512..(start + sectors) * 512));
            prop_assert_eq!(found, count(0..start)..count(0..start + sectors));
        }
    }
}
