//! The receive side's sequence space: what has arrived, and which selective acknowledgements tell
//! the peer.
//!
//! Spec: RFC 9293 §3.10.7.4 (in order), RFC 2018 §4 and RFC 2883 §4 (acknowledgements). Takes the
//! range of each acceptable segment, cut to the window; tells the caller which of its bytes are
//! new. The bytes stay with the caller: a byte that has arrived is never replaced, so overlapping
//! segments with different bytes cannot change what was acknowledged.

#[cfg(test)]
mod tests;

use alloc::boxed::Box;
use alloc::vec::Vec;

use saiga_wire::SeqNum;
use saiga_wire::tcp::{SackBlock, SackBlocks};

/// Most ranges above a hole, in 16 KiB. Further ranges are not kept: the peer sends them again. A
/// slow start that overshoots a long and fast path loses every second of some 2,000 segments.
const MOST_RANGES: usize = 1024;

/// A range that has arrived above a hole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Island {
    block: SackBlock,
    /// Grows with each segment that touched the range: the last one is reported first.
    touched: u32,
}

/// What has arrived.
#[derive(Debug, Clone)]
pub(crate) struct Assembly {
    /// `RCV.NXT`.
    nxt: SeqNum,
    /// What there is to report beside `nxt`; most connections have nothing most of the time.
    news: Option<Box<News>>,
}

/// What selective acknowledgements report.
#[derive(Debug, Clone, Default)]
struct News {
    /// Ranges above `RCV.NXT`, in order, with holes between them.
    islands: Vec<Island>,
    clock: u32,
    /// The range that arrived twice with the last segment.
    duplicate: Option<SackBlock>,
}

/// What a segment has changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Inserted {
    /// Bytes by which `RCV.NXT` moved.
    pub(crate) advanced: u32,
    /// Whether the segment lies above a hole, or has filled one: it is acknowledged at once (RFC
    /// 5681 §4.2).
    pub(crate) is_out_of_order: bool,
}

impl Assembly {
    pub(crate) fn new(nxt: SeqNum) -> Self {
        Self { nxt, news: None }
    }

    /// `RCV.NXT`.
    pub(crate) fn nxt(&self) -> SeqNum {
        self.nxt
    }

    /// Forgets what has arrived from `end` on, which is not below `RCV.NXT`.
    pub(crate) fn cut(&mut self, end: SeqNum) {
        let Some(news) = &mut self.news else {
            return;
        };
        news.islands.retain(|island| island.block.left.before(end));
        if let Some(last) = news.islands.last_mut() {
            last.block.right = last.block.right.earlier_of(end);
        }
        self.forget_nothing();
    }

    /// Whether there is something to report in selective acknowledgements.
    pub(crate) fn has_sack(&self) -> bool {
        self.news.is_some()
    }

    /// The end of what has arrived above a hole.
    pub(crate) fn last(&self) -> Option<SeqNum> {
        let last = self.news.as_ref()?.islands.last()?;
        Some(last.block.right)
    }

    /// Takes a range that is not empty; tells `place` the parts that are new, in order.
    pub(crate) fn insert(
        &mut self,
        start: SeqNum,
        end: SeqNum,
        mut place: impl FnMut(SackBlock),
    ) -> Inserted {
        if start == self.nxt && self.news.is_none() {
            place(SackBlock {
                left: start,
                right: end,
            });
            self.nxt = end;
            return Inserted {
                advanced: end - start,
                is_out_of_order: false,
            };
        }
        let block = SackBlock {
            left: start,
            right: end,
        };
        let news = self.news.get_or_insert_default();
        let inserted = news.insert(&mut self.nxt, block, &mut place);
        self.forget_nothing();
        inserted
    }

    /// A segment that lies before the window altogether: its range is a duplicate.
    pub(crate) fn on_old(&mut self, start: SeqNum, end: SeqNum) {
        let news = self.news.get_or_insert_default();
        news.duplicate = None;
        news.note_duplicate(start, end);
        self.forget_nothing();
    }

    /// The selective acknowledgements for the next segment, at most `room` blocks. A duplicate is
    /// reported once.
    pub(crate) fn sack(&mut self, room: usize) -> SackBlocks {
        let Some(news) = &mut self.news else {
            return SackBlocks::NONE;
        };
        let blocks = news.sack(room);
        self.forget_nothing();
        blocks
    }

    /// Frees the memory of news that there are not.
    fn forget_nothing(&mut self) {
        let is_empty = |news: &mut Box<News>| news.islands.is_empty() && news.duplicate.is_none();
        self.news.take_if(is_empty);
    }
}

impl News {
    /// Takes a block. `nxt` moves over what is complete.
    fn insert(
        &mut self,
        nxt: &mut SeqNum,
        block: SackBlock,
        place: &mut impl FnMut(SackBlock),
    ) -> Inserted {
        let before = *nxt;
        self.duplicate = None;
        if block.left.before(before) {
            self.note_duplicate(block.left, block.right.earlier_of(before));
        }
        let left = block.left.later_of(before);
        if !left.before(block.right) {
            return Inserted::default();
        }
        let had_hole = !self.islands.is_empty();
        let block = SackBlock { left, ..block };
        if left != before && !self.has_room(block) {
            return Inserted {
                advanced: 0,
                is_out_of_order: true,
            };
        }
        self.add(block, place);
        if let Some(first) = self.islands.first()
            && first.block.left.at_or_before(before)
        {
            *nxt = first.block.right;
            self.islands.remove(0);
        }
        Inserted {
            advanced: *nxt - before,
            is_out_of_order: had_hole || !self.islands.is_empty(),
        }
    }

    /// Whether a block can be kept: it touches a range, or there is room for one more.
    fn has_room(&self, block: SackBlock) -> bool {
        let touches = |island: &Island| {
            !island.block.right.before(block.left) && !island.block.left.after(block.right)
        };
        self.islands.len() < MOST_RANGES || self.islands.iter().any(touches)
    }

    /// Adds a block above `nxt` and joins it with the ranges that it touches.
    fn add(&mut self, block: SackBlock, place: &mut impl FnMut(SackBlock)) {
        let first = self
            .islands
            .partition_point(|island| island.block.right.before(block.left));
        let mut joined = block;
        let mut from = block.left;
        let mut after = first;
        while let Some(island) = self.islands.get(after).copied() {
            if island.block.left.after(block.right) {
                break;
            }
            if from.before(island.block.left) {
                place(SackBlock {
                    left: from,
                    right: island.block.left,
                });
            }
            let known_from = island.block.left.later_of(block.left);
            self.note_duplicate(known_from, island.block.right.earlier_of(block.right));
            from = from.later_of(island.block.right);
            joined.left = joined.left.earlier_of(island.block.left);
            joined.right = joined.right.later_of(island.block.right);
            after += 1;
        }
        if from.before(block.right) {
            place(SackBlock {
                left: from,
                right: block.right,
            });
        }
        self.clock = self.clock.wrapping_add(1);
        let island = Island {
            block: joined,
            touched: self.clock,
        };
        self.islands.splice(first..after, [island]);
    }

    /// Remembers the first range of a segment that has arrived before.
    fn note_duplicate(&mut self, start: SeqNum, end: SeqNum) {
        if self.duplicate.is_none() && start.before(end) {
            self.duplicate = Some(SackBlock {
                left: start,
                right: end,
            });
        }
    }

    /// The duplicate first (RFC 2883 §4), then the range of the last segment, then those before it
    /// (RFC 2018 §4).
    fn sack(&mut self, room: usize) -> SackBlocks {
        let mut sack = SackBlocks::NONE;
        let room = room.min(SackBlocks::MAX);
        if room == 0 {
            return sack;
        }
        if let Some(duplicate) = self.duplicate.take() {
            sack.push(duplicate);
        }
        let recency = |island: &Island| self.clock.wrapping_sub(island.touched);
        let mut newer = None;
        while sack.len() < room {
            let older = self
                .islands
                .iter()
                .filter(|island| newer < Some(recency(island)));
            let Some(next) = older.min_by_key(|island| recency(island)) else {
                break;
            };
            newer = Some(recency(next));
            sack.push(next.block);
        }
        sack
    }
}
