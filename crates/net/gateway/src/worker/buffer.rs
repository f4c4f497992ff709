//! The bytes of one direction of a conversation, in a ring.
//!
//! A ring has memory only while it has bytes, or bytes that came before those in front of them. So
//! idle connections cost none, whatever their windows are. A ring begins small and grows as it
//! fills, as far as the [`Budget`] allows. Its next memory is as large as the last one had to be.
//! Some memory of rings that have ended is kept. What was used last is used first: it is still in
//! the cache.

use std::collections::VecDeque;
use std::sync::Arc;

use super::budget::{Budget, Mailbox};

/// The memory of a worker's rings of one direction.
#[derive(Debug)]
pub(crate) struct Pool {
    /// Bytes of the largest ring.
    capacity: u32,
    budget: Budget,
    mailbox: Arc<Mailbox>,
    /// Keys of conversations that wait for memory, and of some that have ended since.
    waiting: VecDeque<u32>,
    free: Vec<Box<[u8]>>,
    free_bytes: usize,
    /// Bytes of the memory that rings have.
    lent_bytes: u64,
}

/// The memory of a worker's rings.
#[derive(Debug)]
pub(crate) struct Pools {
    /// From clients to servers.
    pub(crate) inbound: Pool,
    /// From servers to clients.
    pub(crate) outbound: Pool,
}

/// Bytes that are kept without a ring, beside the budget: one ring of the largest size.
const MOST_FREE_BYTES: usize = 4 << 20;
/// The next size of a ring.
const GROWTH: u32 = 4;

impl Pool {
    /// A pool for rings of at most `capacity` bytes.
    pub(crate) const fn new(capacity: u32, budget: Budget, mailbox: Arc<Mailbox>) -> Self {
        Self {
            capacity,
            budget,
            mailbox,
            waiting: VecDeque::new(),
            free: Vec::new(),
            free_bytes: 0,
            lent_bytes: 0,
        }
    }

    /// Bytes of the largest ring.
    pub(crate) const fn capacity(&self) -> u32 {
        self.capacity
    }

    /// Bytes of the memory that rings have.
    pub(crate) const fn lent_bytes(&self) -> u64 {
        self.lent_bytes
    }

    /// Bytes of the smallest ring.
    pub(crate) fn least(&self) -> u32 {
        self.budget.least().min(self.capacity)
    }

    /// Queues a conversation for a ring of the smallest size.
    pub(crate) fn wait(&mut self, key: u32) {
        self.waiting.push_back(key);
        self.budget.wait(&self.mailbox);
    }

    /// The number of rings that conversations may have which wait.
    pub(crate) fn granted(&self) -> u32 {
        self.mailbox.take()
    }

    /// The next conversation that waits.
    pub(crate) fn next_waiting(&mut self) -> Option<u32> {
        self.waiting.pop_front()
    }

    /// A granted ring that no conversation needs.
    pub(crate) fn give_grant_back(&self) {
        self.budget.give(self.least());
    }

    /// The size of a ring for `bytes` bytes.
    fn size_for(&self, bytes: u32) -> u32 {
        let mut size = self.least();
        while size < bytes && size < self.capacity {
            size = size.saturating_mul(GROWTH).min(self.capacity);
        }
        size
    }

    /// Memory of `size` bytes for a ring that has `own` bytes, if the budget has it.
    fn take(&mut self, size: u32, own: u32) -> Option<Box<[u8]>> {
        let is_taken = self.budget.take(size - own, own);
        is_taken.then(|| self.memory(size))
    }

    /// Memory that the budget has given already.
    fn memory(&mut self, size: u32) -> Box<[u8]> {
        self.lent_bytes += u64::from(size);
        let size = size as usize;
        let kept = self.free.iter().rposition(|memory| memory.len() == size);
        let Some(kept) = kept else {
            return vec![0; size].into();
        };
        self.free_bytes -= size;
        self.free.remove(kept)
    }

    /// Takes the memory of a ring that has ended or become small.
    fn give(&mut self, memory: Box<[u8]>) {
        self.budget.give(bytes(memory.len()));
        self.keep(memory);
    }

    fn keep(&mut self, memory: Box<[u8]>) {
        self.lent_bytes -= memory.len() as u64;
        if self.free_bytes + memory.len() <= MOST_FREE_BYTES {
            self.free_bytes += memory.len();
            self.free.push(memory);
        }
    }
}

/// A ring of bytes. All calls get the same pool.
#[derive(Debug, Default)]
pub(crate) struct Buffer {
    /// Empty, or of a size of the pool.
    bytes: Box<[u8]>,
    /// Place of the first byte.
    front: u32,
    length: u32,
    /// Bytes behind the front up to the end of what was placed; at least `length`.
    placed: u32,
    /// The most that `placed` has been with this memory.
    most: u32,
    /// Bytes that the next memory should have; 0 for the smallest size.
    next: u32,
}

impl Buffer {
    pub(crate) const fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// Number of bytes.
    pub(crate) const fn len(&self) -> u32 {
        self.length
    }

    /// Bytes of memory.
    pub(crate) fn size(&self) -> u32 {
        bytes(self.bytes.len())
    }

    /// Grows to `end` bytes if the pool has memory. Returns the bytes of the ring.
    pub(crate) fn reserve(&mut self, end: u32, pool: &mut Pool) -> u32 {
        if end > self.size() {
            self.grow(end, pool);
        }
        self.size()
    }

    fn grow(&mut self, end: u32, pool: &mut Pool) {
        let own = self.size();
        let needed = pool.size_for(end);
        let usual = if own == 0 { self.next } else { 0 };
        // Rather less than nothing.
        for size in [needed.max(usual), needed, pool.least()] {
            if size > own
                && let Some(memory) = pool.take(size, own)
            {
                return self.move_to(memory, pool);
            }
        }
    }

    /// Uses memory that was granted to a conversation that waited.
    pub(crate) fn grant(&mut self, pool: &mut Pool) {
        let memory = pool.memory(pool.least());
        self.move_to(memory, pool);
    }

    /// Copies all bytes to larger memory, which the budget counts already.
    fn move_to(&mut self, mut memory: Box<[u8]>, pool: &mut Pool) {
        let placed = self.placed as usize;
        let from = self.index(0);
        let first = placed.min(self.bytes.len() - from);
        memory[..first].copy_from_slice(&self.bytes[from..from + first]);
        memory[first..placed].copy_from_slice(&self.bytes[..placed - first]);
        self.front = 0;
        let old = std::mem::replace(&mut self.bytes, memory);
        if !old.is_empty() {
            pool.keep(old);
        }
    }

    /// Copies `bytes` to a place `at` bytes behind the first one. The bytes in front of them may be
    /// missing until [`Self::extend`] is called.
    ///
    /// # Panics
    /// If the bytes do not fit into the ring: [`Self::reserve`] has said what does.
    pub(crate) fn place(&mut self, at: u32, bytes: &[u8]) {
        let end = at as usize + bytes.len();
        assert!(end <= self.bytes.len(), "bytes beyond the ring");
        let from = self.index(at);
        let first = bytes.len().min(self.bytes.len() - from);
        self.bytes[from..from + first].copy_from_slice(&bytes[..first]);
        self.bytes[..bytes.len() - first].copy_from_slice(&bytes[first..]);
        self.placed = self.placed.max(u32::try_from(end).unwrap_or(u32::MAX));
        self.most = self.most.max(self.placed);
    }

    /// The next `count` bytes are complete.
    pub(crate) fn extend(&mut self, count: u32) {
        self.length += count;
        self.placed = self.placed.max(self.length);
        self.most = self.most.max(self.placed);
    }

    /// The first bytes, up to the end of the memory: all of them, or the part before the ring's
    /// end.
    pub(crate) fn front(&self) -> &[u8] {
        let from = self.index(0);
        let to = self.bytes.len().min(from + self.length as usize);
        &self.bytes[from..to]
    }

    /// Room behind the last byte, up to the end of the memory; [`Self::extend`] says how much of it
    /// was filled. Empty if the ring is full and cannot grow, or the pool has no memory.
    pub(crate) fn room(&mut self, pool: &mut Pool) -> &mut [u8] {
        if self.length == self.size() && self.length < pool.capacity() {
            self.reserve(self.length + 1, pool);
        }
        let from = self.index(self.length);
        let free = self.bytes.len() - self.length as usize;
        let to = self.bytes.len().min(from + free);
        &mut self.bytes[from..to]
    }

    /// Fills `into` with bytes from `at` bytes behind the first one on.
    ///
    /// # Panics
    /// If the ring does not have these bytes.
    pub(crate) fn copy(&self, at: u32, into: &mut [u8]) {
        assert!(
            at as usize + into.len() <= self.length as usize,
            "bytes that were not written"
        );
        let from = self.index(at);
        let first = into.len().min(self.bytes.len() - from);
        let (one, other) = into.split_at_mut(first);
        one.copy_from_slice(&self.bytes[from..from + first]);
        other.copy_from_slice(&self.bytes[..other.len()]);
    }

    /// Removes the first `count` bytes.
    pub(crate) fn consume(&mut self, count: u32, pool: &mut Pool) {
        let count = count.min(self.length);
        self.length -= count;
        self.placed -= count;
        if self.placed == 0 {
            self.give_back(pool);
        } else if !self.bytes.is_empty() {
            self.front = u32::try_from(self.index(count)).unwrap_or(0);
        }
    }

    /// Forgets all bytes.
    pub(crate) fn give_back(&mut self, pool: &mut Pool) {
        let size = self.size();
        let smaller = size / GROWTH;
        let next = match self.most {
            0 => self.next, // Nothing has come: that tells nothing.
            most if most <= smaller => smaller.max(pool.least()),
            _ => size,
        };
        let old = std::mem::take(self);
        self.next = next;
        if !old.bytes.is_empty() {
            pool.give(old.bytes);
        }
    }

    /// Place of a byte in the memory.
    fn index(&self, at: u32) -> usize {
        let place = self.front as usize + at as usize;
        if place >= self.bytes.len() && !self.bytes.is_empty() {
            place - self.bytes.len()
        } else {
            place.min(self.bytes.len())
        }
    }
}

/// Bytes of memory, which the sizes of rings limit.
fn bytes(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests;
