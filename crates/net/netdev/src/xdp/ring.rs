//! One end of a ring between this process and the kernel.
//!
//! Kernel: Documentation/networking/af_xdp.rst, net/xdp/xsk_queue.h. Each ring has one producer and
//! one consumer. Both count slots from 0, modulo 2^32; the number of slots is a power of two. An
//! end writes its own count only, and reads that of the other:
//!
//! - The producer fills a slot, then stores its count with release; the consumer loads that count
//!   with acquire, then reads the slot. So the consumer sees the whole slot.
//! - The consumer reads a slot, then stores its count with release; the producer loads that count
//!   with acquire, then fills the slot again. So a slot does not change while it is read.

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};
use std::sync::atomic::{AtomicU32, AtomicU64, fence};

use crate::mapping::Mapping;

/// `XDP_RING_NEED_WAKEUP`: the kernel does not look at the ring until it is called.
const NEEDS_WAKEUP: u32 = 1;

/// Where the parts of a ring are in its memory, in bytes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Layout {
    pub(super) producer: usize,
    pub(super) consumer: usize,
    pub(super) flags: usize,
    pub(super) slots: usize,
    /// Number of slots: a power of two.
    pub(super) count: u32,
}

/// A ring whose slots have `W` times eight bytes.
#[derive(Debug)]
struct Ring<const W: usize> {
    memory: Mapping,
    layout: Layout,
}

impl<const W: usize> Ring<W> {
    /// `None` if the memory does not contain all parts.
    fn new(memory: Mapping, layout: Layout) -> Option<Self> {
        let count = layout.count as usize;
        let parts = [layout.producer, layout.consumer, layout.flags];
        let is_valid = layout.count.is_power_of_two()
            && parts.iter().all(|part| memory.word(*part).is_some())
            && memory.double_words(layout.slots, W * count).is_some();
        is_valid.then_some(Self { memory, layout })
    }

    fn word(&self, offset: usize) -> &AtomicU32 {
        // Checked by `new`; the alternative would be an index beyond the memory.
        self.memory.word(offset).unwrap_or(&NOWHERE)
    }

    /// The slot for a count. The mask keeps every count within the ring.
    fn slot(&self, count: u32) -> &[AtomicU64] {
        let index = (count & (self.layout.count - 1)) as usize;
        let offset = self.layout.slots + index * W * size_of::<u64>();
        self.memory.double_words(offset, W).unwrap_or_default()
    }

    /// How far `ahead` is ahead of `behind`; 0 if that is impossible, so that a count that makes no
    /// sense stops the ring.
    fn distance(&self, ahead: u32, behind: u32) -> u32 {
        let distance = ahead.wrapping_sub(behind);
        if distance <= self.layout.count {
            distance
        } else {
            0
        }
    }
}

/// A word that no ring has.
static NOWHERE: AtomicU32 = AtomicU32::new(0);

/// The end that fills slots.
#[derive(Debug)]
pub(super) struct Producer<const W: usize> {
    ring: Ring<W>,
    /// Slots that were filled.
    filled: u32,
    /// The count of the consumer when it was last read.
    consumed: u32,
}

impl<const W: usize> Producer<W> {
    /// `None` if the memory does not contain all parts.
    pub(super) fn new(memory: Mapping, layout: Layout) -> Option<Self> {
        let ring = Ring::new(memory, layout)?;
        let filled = ring.word(layout.producer).load(Relaxed);
        let consumed = ring.word(layout.consumer).load(Acquire);
        Some(Self {
            ring,
            filled,
            consumed,
        })
    }

    /// The number of free slots, which is exact if it is less than `wanted`.
    pub(super) fn free(&mut self, wanted: u32) -> u32 {
        let free = self.ring.layout.count - self.used_before();
        if free >= wanted {
            return free;
        }
        self.ring.layout.count - self.used()
    }

    /// The number of slots that the consumer has not taken yet.
    pub(super) fn used(&mut self) -> u32 {
        let layout = self.ring.layout;
        self.consumed = self.ring.word(layout.consumer).load(Acquire);
        self.used_before()
    }

    fn used_before(&self) -> u32 {
        let distance = self.filled.wrapping_sub(self.consumed);
        // A consumer that is ahead makes no sense: the ring then counts as full.
        distance.min(self.ring.layout.count)
    }

    /// Fills the next slot, if it is free. The consumer sees the slot after [`Self::publish`].
    pub(super) fn push(&mut self, value: [u64; W]) -> bool {
        if self.free(1) == 0 {
            return false;
        }
        for (word, value) in self.ring.slot(self.filled).iter().zip(value) {
            word.store(value, Relaxed);
        }
        self.filled = self.filled.wrapping_add(1);
        true
    }

    /// Shows the filled slots to the consumer.
    pub(super) fn publish(&mut self) {
        let layout = self.ring.layout;
        self.ring.word(layout.producer).store(self.filled, Release);
    }

    /// Whether the kernel must be called before it looks at the published slots.
    ///
    /// The kernel sets the flag, then looks at the ring a last time. The fence keeps the load of
    /// the flag behind the store of the count, so that one of both sees the other.
    pub(super) fn needs_wakeup(&self) -> bool {
        fence(SeqCst);
        let flags = self.ring.word(self.ring.layout.flags).load(Relaxed);
        flags & NEEDS_WAKEUP != 0
    }
}

/// The end that takes slots.
#[derive(Debug)]
pub(super) struct Consumer<const W: usize> {
    ring: Ring<W>,
    /// Slots that were taken.
    taken: u32,
}

impl<const W: usize> Consumer<W> {
    /// `None` if the memory does not contain all parts.
    pub(super) fn new(memory: Mapping, layout: Layout) -> Option<Self> {
        let ring = Ring::new(memory, layout)?;
        let taken = ring.word(layout.consumer).load(Relaxed);
        Some(Self { ring, taken })
    }

    /// The number of slots that [`Self::pop`] can take.
    pub(super) fn available(&self) -> u32 {
        let filled = self.ring.word(self.ring.layout.producer).load(Acquire);
        self.ring.distance(filled, self.taken)
    }

    /// Takes the next slot, which must be one of [`Self::available`]. The producer can fill it
    /// again after [`Self::release`].
    pub(super) fn pop(&mut self) -> [u64; W] {
        let mut value = [0; W];
        for (to, word) in value.iter_mut().zip(self.ring.slot(self.taken)) {
            *to = word.load(Relaxed);
        }
        self.taken = self.taken.wrapping_add(1);
        value
    }

    /// Gives the taken slots back to the producer.
    pub(super) fn release(&mut self) {
        let layout = self.ring.layout;
        self.ring.word(layout.consumer).store(self.taken, Release);
    }
}

#[cfg(test)]
mod tests;
