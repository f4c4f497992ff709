//! Maps addresses of the trace to files, from one scan.

use std::ops::Range;

/// A range of addresses and the number of its file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct OwnedRange {
    pub(crate) start: u64,
    pub(crate) end: u64,
    pub(crate) file: u32,
    /// Whether data were written to it.
    pub(crate) is_written: bool,
}

/// All owned ranges in order of addresses, without overlap.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Map(Vec<OwnedRange>);

/// A part of a range and its owner, if there is one.
pub(crate) type Piece = (Range<u64>, Option<u32>);

impl Map {
    /// Creates a map from ranges in any order.
    pub(crate) fn new(mut owned: Vec<OwnedRange>) -> Self {
        owned.sort_unstable();
        let mut ranges: Vec<OwnedRange> = Vec::with_capacity(owned.len());
        for mut next in owned {
            if let Some(last) = ranges.last() {
                // A shared range belongs to the range that begins first; of two with the same
                // range, to the file with the lower number.
                next.start = next.start.max(last.end);
            }
            if next.start < next.end {
                ranges.push(next);
            }
        }
        Self(ranges)
    }

    pub(crate) fn ranges(&self) -> &[OwnedRange] {
        &self.0
    }

    /// Divides a range into pieces with and without an owner, in order.
    fn pieces(&self, range: Range<u64>, on_piece: &mut dyn FnMut(Piece)) {
        let first = self.0.partition_point(|owned| owned.end <= range.start);
        let mut at = range.start;
        for owned in self.0.get(first..).unwrap_or_default() {
            if owned.start >= range.end {
                break;
            }
            if owned.start > at {
                on_piece((at..owned.start, None));
                at = owned.start;
            }
            let end = owned.end.min(range.end);
            on_piece((at..end, Some(owned.file)));
            at = end;
        }
        if at < range.end {
            on_piece((at..range.end, None));
        }
    }
}

/// Divides a range into pieces by the first map with an owner; adjacent pieces of one owner are
/// joined.
pub(crate) fn owners(range: Range<u64>, maps: &[&Map]) -> Vec<Piece> {
    let mut pieces = vec![(range, None)];
    for map in maps {
        let mut better = Vec::with_capacity(pieces.len());
        for (range, owner) in pieces {
            match owner {
                Some(_) => join(&mut better, (range, owner)),
                None => map.pieces(range, &mut |piece| join(&mut better, piece)),
            }
        }
        pieces = better;
    }
    pieces
}

fn join(pieces: &mut Vec<Piece>, (range, owner): Piece) {
    match pieces.last_mut() {
        Some((last, same)) if *same == owner && last.end == range.start => last.end = range.end,
        _ => pieces.push((range, owner)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn owned(start: u64, end: u64, file: u32) -> OwnedRange {
        OwnedRange {
            start,
            end,
            file,
            is_written: true,
        }
    }

    #[test]
    fn the_first_map_with_an_owner_decides() {
        let new = Map::new(vec![
            owned(100, 200, 1),
            owned(200, 300, 1),
            owned(350, 400, 2),
        ]);
        let old = Map::new(vec![owned(0, 150, 7), owned(310, 360, 8)]);
        let found = owners(50..400, &[&new, &old]);
        let expected = vec![
            (50..100, Some(7)),
            (100..300, Some(1)),
            (300..310, None),
            (310..350, Some(8)),
            (350..400, Some(2)),
        ];
        assert_eq!(found, expected);
        assert_eq!(owners(500..510, &[&new, &old]), [(500..510, None)]);
        assert_eq!(owners(120..130, &[]), [(120..130, None)]);
    }

    #[test]
    fn a_shared_range_has_one_owner() {
        let map = Map::new(vec![owned(0, 100, 2), owned(0, 100, 1), owned(50, 120, 3)]);
        assert_eq!(map.ranges(), [owned(0, 100, 1), owned(100, 120, 3)]);
    }

    proptest! {
        /// Compares with a search for each byte.
        #[test]
        fn every_byte_has_the_owner_of_a_naive_search(
            maps in prop::collection::vec(prop::collection::vec((0..60_u64, 1..20_u64, 0..4_u32), 0..8), 0..3),
            start in 0..40_u64,
            length in 1..40_u64,
        ) {
            let maps: Vec<Map> = maps.into_iter().map(|rows| {
                Map::new(rows.into_iter().map(|(at, length, file)| owned(at, at + length, file)).collect())
            }).collect();
            let all: Vec<&Map> = maps.iter().collect();
            let pieces = owners(start..start + length, &all);
            let mut at = start;
            for (range, owner) in pieces {
                prop_assert_eq!(range.start, at);
                at = range.end;
                for byte in range {
                    let naive = maps.iter().find_map(|map| {
                        map.ranges().iter().find(|it| (it.start..it.end).contains(&byte)).map(|it| it.file)
                    });
                    prop_assert_eq!(owner, naive);
                }
            }
            prop_assert_eq!(at, start + length);
        }
    }
}
