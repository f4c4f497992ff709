//! Samples addresses for recordings that would be too long: keeps one granule of each stratum.
//!
//! Kept granules are numbered without gaps, so that sequences are preserved: rings stay rings, a
//! request stays one row, and a file keeps its share of the writes.

use std::ops::Range;

/// A sampling that keeps one of `one_in` consecutive granules, drawn by a hash of their position.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sampling {
    one_in: u32,
    granule_bytes: u64,
}

impl Sampling {
    /// The granule of new recordings: a page of InnoDB, the largest default page size of databases.
    const GRANULE_BYTES: u64 = 16 << 10;
    /// The smallest share is 1 / `MOST`.
    pub const MOST: u32 = 1 << 10;

    /// Creates a sampling of one granule in `one_in`; `None` for 0 and above [`MOST`](Self::MOST).
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

    /// Returns the number of bytes that each byte of the sample represents.
    #[must_use]
    pub fn one_in(self) -> u32 {
        self.one_in
    }

    /// Returns the size of a granule, which is kept or dropped as a whole.
    #[must_use]
    pub fn granule_bytes(self) -> u64 {
        self.granule_bytes
    }

    /// Maps the kept part of a range to addresses of the sample; empty if no byte is kept.
    #[must_use]
    pub fn range(self, range: &Range<u64>) -> Range<u64> {
        self.kept_before(range.start)..self.kept_before(range.end)
    }

    /// Returns the number of kept bytes before an address.
    fn kept_before(self, address: u64) -> u64 {
        let stratum_bytes = self.granule_bytes * u64::from(self.one_in);
        let (stratum, place) = (address / stratum_bytes, address % stratum_bytes);
        let kept = mix(stratum) % u64::from(self.one_in) * self.granule_bytes;
        stratum * self.granule_bytes + place.saturating_sub(kept).min(self.granule_bytes)
    }
}

/// The finaliser of SplitMix64: maps adjacent numbers to independent ones.
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
        // Every position is kept in about a tenth of the strata.
        for place in 0..10 {
            let count = places.iter().filter(|one| **one == place).count();
            assert!((60..140).contains(&count), "{place}: {count}");
        }
    }

    #[test]
    fn a_sample_may_be_all_but_not_nothing() {
        let whole = Sampling::new(1).unwrap();
        assert_eq!(whole.range(&(512..1 << 40)), 512..1 << 40);
        assert_eq!(
            [Sampling::new(0), Sampling::new(Sampling::MOST + 1)],
            [None; 2]
        );
        assert_eq!([Sampling::of(2, 3000), Sampling::of(2, 256)], [None; 2]);
    }

    proptest! {
        /// Compares with a check of each sector.
        #[test]
        fn a_range_is_mapped_to_its_kept_sectors(
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
