//! The assembly against a naive one that knows each byte, and the examples of RFC 2018 and 2883.

use std::collections::BTreeSet;
use std::vec;
use std::vec::Vec;

use proptest::prelude::*;

use super::*;

fn block(start: u32, end: u32) -> SackBlock {
    SackBlock {
        left: SeqNum(start),
        right: SeqNum(end),
    }
}

/// An assembly that expects byte 5000, and takes segments of 500 bytes.
struct Receiver {
    assembly: Assembly,
    placed: Vec<(u32, u32)>,
}

impl Receiver {
    fn new(nxt: u32) -> Self {
        Self {
            assembly: Assembly::new(SeqNum(nxt)),
            placed: Vec::new(),
        }
    }

    fn take(&mut self, start: u32, end: u32) -> Inserted {
        let placed = &mut self.placed;
        self.assembly.insert(SeqNum(start), SeqNum(end), |part| {
            placed.push((part.left.0, part.right.0));
        })
    }

    /// `RCV.NXT` and the blocks.
    fn acknowledged(&mut self) -> (u32, Vec<(u32, u32)>) {
        let sack = self.assembly.sack(4);
        let blocks = sack
            .as_slice()
            .iter()
            .map(|one| (one.left.0, one.right.0))
            .collect();
        (self.assembly.nxt().0, blocks)
    }
}

#[test]
fn segments_in_order_advance() {
    let mut receiver = Receiver::new(5000);
    let inserted = receiver.take(5000, 5500);
    assert_eq!((inserted.advanced, inserted.is_out_of_order), (500, false));
    assert_eq!(receiver.acknowledged(), (5500, vec![]));
}

/// RFC 2018 §4, case 2: the first segment is dropped.
#[test]
fn a_lost_first_segment_leaves_one_growing_block() {
    let mut receiver = Receiver::new(5000);
    for end in [6000, 6500, 7000] {
        let inserted = receiver.take(end - 500, end);
        assert_eq!((inserted.advanced, inserted.is_out_of_order), (0, true));
        assert_eq!(receiver.acknowledged(), (5000, vec![(5500, end)]));
    }
    // The hole is filled: this segment is acknowledged at once, too.
    let inserted = receiver.take(5000, 5500);
    assert_eq!((inserted.advanced, inserted.is_out_of_order), (2000, true));
    assert_eq!(receiver.acknowledged(), (7000, vec![]));
}

/// RFC 2018 §4, case 3: the second, fourth, sixth and eighth segments are dropped, then the fourth
/// arrives and the second.
#[test]
fn the_last_touched_block_is_first() {
    let mut receiver = Receiver::new(5000);
    for start in [5000, 6000, 7000, 8000] {
        receiver.take(start, start + 500);
    }
    let all = vec![(8000, 8500), (7000, 7500), (6000, 6500)];
    assert_eq!(receiver.acknowledged(), (5500, all));
    receiver.take(6500, 7000);
    let joined = vec![(6000, 7500), (8000, 8500)];
    assert_eq!(receiver.acknowledged(), (5500, joined));
    receiver.take(5500, 6000);
    assert_eq!(receiver.acknowledged(), (7500, vec![(8000, 8500)]));
}

/// RFC 2883 §4.1 to §4.3: duplicates below the acknowledgement, above a hole, and in part.
#[test]
fn a_duplicate_is_the_first_block_once() {
    let mut receiver = Receiver::new(4000);
    receiver.take(3000, 3500);
    assert_eq!(receiver.acknowledged(), (4000, vec![(3000, 3500)]));
    assert_eq!(receiver.acknowledged(), (4000, vec![]));
    receiver.take(4500, 5000);
    receiver.take(4500, 5500);
    let both = vec![(4500, 5000), (4500, 5500)];
    assert_eq!(receiver.acknowledged(), (4000, both));
    receiver.take(3500, 4500);
    assert_eq!(receiver.acknowledged(), (5500, vec![(3500, 4000)]));
    receiver.assembly.on_old(SeqNum(1000), SeqNum(2000));
    assert_eq!(receiver.acknowledged(), (5500, vec![(1000, 2000)]));
}

/// RFC 2883 §4 rule 1.
#[test]
fn a_duplicate_is_forgotten_when_another_segment_comes() {
    let mut receiver = Receiver::new(4000);
    receiver.take(3000, 3500);
    receiver.take(4500, 5000);
    assert_eq!(receiver.acknowledged(), (4000, vec![(4500, 5000)]));
}

#[test]
fn only_new_bytes_are_placed() {
    let mut receiver = Receiver::new(0);
    receiver.take(100, 200);
    receiver.take(300, 400);
    receiver.take(50, 450);
    let expected = [(100, 200), (300, 400), (50, 100), (200, 300), (400, 450)];
    assert_eq!(receiver.placed, expected);
    assert_eq!(receiver.acknowledged(), (0, vec![(100, 200), (50, 450)]));
}

#[test]
fn fewer_blocks_are_reported_where_options_leave_less_room() {
    let mut receiver = Receiver::new(0);
    for start in [100, 300, 500, 700, 900] {
        receiver.take(start, start + 100);
    }
    receiver.take(900, 950);
    let blocks: Vec<SackBlock> = receiver.assembly.sack(2).as_slice().to_vec();
    assert_eq!(blocks, [block(900, 950), block(900, 1000)]);
    assert_eq!(receiver.assembly.sack(3).len(), 3);
    assert_eq!(receiver.assembly.sack(0).len(), 0);
}

/// Segments of one byte cannot make the list grow without end.
#[test]
fn the_number_of_ranges_is_limited() {
    let mut receiver = Receiver::new(0);
    for number in 1..2000 {
        receiver.take(number * 2, number * 2 + 1);
    }
    assert_eq!(
        receiver.assembly.news.as_ref().unwrap().islands.len(),
        MOST_RANGES
    );
    assert_eq!(receiver.placed.len(), MOST_RANGES);
    // What fills the hole before all of them is taken all the same.
    assert_eq!(receiver.take(0, 2).advanced, 3);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]
    #[test]
    fn every_byte_is_placed_once_and_acknowledged_in_order(
        segments in prop::collection::vec((0_u32..200, 1_u32..40), 1..60),
        base in prop_oneof![Just(0_u32), Just(u32::MAX - 100)],
    ) {
        let mut assembly = Assembly::new(SeqNum(base));
        let mut known = BTreeSet::new();
        for (start, length) in segments {
            let mut new = Vec::new();
            let from = SeqNum(base) + start;
            assembly.insert(from, from + length, |part| {
                let first = part.left - SeqNum(base);
                new.extend(first..first + (part.right - part.left));
            });
            let arrived: Vec<u32> = (start..start + length).filter(|byte| !known.contains(byte)).collect();
            prop_assert_eq!(&new, &arrived);
            known.extend(arrived);
            let next = (0..).find(|byte| !known.contains(byte)).unwrap();
            prop_assert_eq!(assembly.nxt() - SeqNum(base), next);
            let blocks: Vec<SackBlock> = assembly.sack(4).as_slice().to_vec();
            for one in &blocks {
                let inside = one.left - SeqNum(base)..one.right - SeqNum(base);
                prop_assert!(inside.clone().all(|byte| known.contains(&byte)), "{:?}", inside);
            }
        }
    }
}
