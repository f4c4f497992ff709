//! Moves the live pages of a victim in batches.
//!
//! The mapping is larger than the caches, and moved pages are scattered in it. With only stores in
//! a row, the processor waits for many cache misses at once.

use super::{Device, fetch};

/// Capacity of a batch: a power of two.
const ROOM: usize = 512;
/// Most pages added by one call.
const STEP: usize = 64;

/// A batch of moved pages and their classes.
#[derive(Debug)]
pub(super) struct MoveBatch {
    pages: [u32; ROOM],
    classes: [u8; ROOM],
    len: usize,
    /// Whether there are several classes; otherwise all are 0 and need not be copied.
    has_classes: bool,
}

impl MoveBatch {
    pub(super) fn new(classes: usize) -> Self {
        Self {
            pages: [0; ROOM],
            classes: [0; ROOM],
            len: 0,
            has_classes: classes > 1,
        }
    }

    /// Adds those of up to 64 pages whose bits are set. Branches on single bits would often be
    /// mispredicted; instead, each page is stored, and overwritten by the next one if it is dead.
    fn add(&mut self, bits: u64, pages: &[u32], classes: &[u8]) {
        let mut len = self.len;
        let mut left = bits;
        for &page in pages {
            self.pages[len % ROOM] = page;
            len += (left & 1) as usize;
            left >>= 1;
        }
        if self.has_classes {
            let mut len = self.len;
            let mut left = bits;
            for &class in classes {
                self.classes[len % ROOM] = class;
                len += (left & 1) as usize;
                left >>= 1;
            }
        }
        self.len = len;
    }

    fn has_room(&self) -> bool {
        self.len + STEP < ROOM
    }
}

impl Device {
    /// Writes the live pages of a unit at a frontier, which may open further units.
    pub(super) fn move_live(&mut self, unit: u32, frontier: usize) {
        let count = self.live.word_pages() as usize;
        let mut first = (unit as usize) << self.layout.shift;
        fetch::run(&self.page[first..first + self.config.unit_pages as usize]);
        for word in 0..self.live.words_per_unit() {
            let places = first..first + count;
            let bits = self.live.word(unit, word);
            self.moving
                .add(bits, &self.page[places.clone()], &self.class[places]);
            first += count;
            if !self.moving.has_room() {
                self.write_batch(frontier);
            }
        }
        self.write_batch(frontier);
    }

    /// Writes the batch at a frontier and empties it.
    fn write_batch(&mut self, frontier: usize) {
        let end = self.moving.len;
        let mut begin = 0;
        while begin < end {
            if !self.frontiers[frontier].has_room() {
                self.open(frontier);
            }
            let open = &mut self.frontiers[frontier];
            let first = open.next;
            let left = u32::try_from(end - begin).unwrap_or(u32::MAX);
            open.next += left.min(open.end - first);
            let places = first as usize..open.next as usize;
            let count = places.len();
            let pages = &self.moving.pages[begin..begin + count];
            if self.moving.has_classes {
                let classes = &self.moving.classes[begin..begin + count];
                self.class[places.clone()].copy_from_slice(classes);
            }
            self.page[places].copy_from_slice(pages);
            for (place, &page) in (first..).zip(pages) {
                self.place[page as usize] = place;
            }
            if !open.has_room() {
                self.close(frontier);
            }
            begin += count;
        }
        self.moving.len = 0;
    }
}
