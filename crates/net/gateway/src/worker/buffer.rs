//! The bytes of one direction of a conversation, in a ring.
//!
//! A ring has memory only while it has bytes, or bytes that came before those in front of them. So
//! idle connections cost none, whatever their windows are. The memory comes from a pool, which
//! gives what was used last, and is still in the cache, first.

/// Memory that rings give back and take again.
#[derive(Debug)]
pub(crate) struct Pool {
    /// Bytes of each ring.
    capacity: u32,
    free: Vec<Box<[u8]>>,
    /// Rings that have memory.
    lent: u64,
}

/// Most rings without a user that keep their memory.
const MOST_FREE: usize = 64;

impl Pool {
    pub(crate) const fn new(capacity: u32) -> Self {
        Self {
            capacity,
            free: Vec::new(),
            lent: 0,
        }
    }

    /// Bytes of each ring.
    pub(crate) const fn capacity(&self) -> u32 {
        self.capacity
    }

    /// Bytes of the memory that rings have.
    pub(crate) fn lent_bytes(&self) -> u64 {
        self.lent * u64::from(self.capacity)
    }

    fn take(&mut self) -> Box<[u8]> {
        self.lent += 1;
        let free = self.free.pop();
        free.unwrap_or_else(|| vec![0; self.capacity as usize].into())
    }

    fn give(&mut self, memory: Box<[u8]>) {
        if memory.is_empty() {
            return;
        }
        self.lent -= 1;
        if self.free.len() < MOST_FREE {
            self.free.push(memory);
        }
    }
}

/// A ring of bytes. All calls get the same pool.
#[derive(Debug, Default)]
pub(crate) struct Buffer {
    /// Empty, or of the pool's capacity.
    bytes: Box<[u8]>,
    /// Place of the first byte.
    front: u32,
    length: u32,
    /// Bytes behind the front up to the end of what was placed; at least `length`.
    placed: u32,
}

impl Buffer {
    pub(crate) const fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// Number of bytes.
    pub(crate) const fn len(&self) -> u32 {
        self.length
    }

    /// Copies `bytes` to a place `at` bytes behind the first one. The bytes in front of them may be
    /// missing until [`Self::extend`] is called.
    ///
    /// # Panics
    /// If the bytes do not fit into the ring: the stack keeps to the window that it announced.
    pub(crate) fn place(&mut self, at: u32, bytes: &[u8], pool: &mut Pool) {
        self.make_memory(pool);
        let end = at as usize + bytes.len();
        assert!(end <= self.bytes.len(), "bytes beyond the window");
        let from = self.index(at);
        let first = bytes.len().min(self.bytes.len() - from);
        self.bytes[from..from + first].copy_from_slice(&bytes[..first]);
        self.bytes[..bytes.len() - first].copy_from_slice(&bytes[first..]);
        self.placed = self.placed.max(u32::try_from(end).unwrap_or(u32::MAX));
    }

    /// The next `count` bytes are complete.
    pub(crate) fn extend(&mut self, count: u32) {
        self.length += count;
        self.placed = self.placed.max(self.length);
    }

    /// The first bytes, up to the end of the memory: all of them, or the part before the ring's
    /// end.
    pub(crate) fn front(&self) -> &[u8] {
        let from = self.index(0);
        let to = self.bytes.len().min(from + self.length as usize);
        &self.bytes[from..to]
    }

    /// Room behind the last byte, up to the end of the memory; [`Self::extend`] says how much of it
    /// was filled.
    pub(crate) fn room(&mut self, pool: &mut Pool) -> &mut [u8] {
        self.make_memory(pool);
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
        pool.give(core::mem::take(self).bytes);
    }

    fn make_memory(&mut self, pool: &mut Pool) {
        if self.bytes.is_empty() {
            self.bytes = pool.take();
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

#[cfg(test)]
mod tests {
    use super::*;

    /// The ring against a queue, with random pieces.
    #[test]
    fn bytes_come_out_as_they_went_in() {
        let mut random = fastrand::Rng::with_seed(1);
        let (mut buffer, mut pool) = (Buffer::default(), Pool::new(1000));
        let mut model = std::collections::VecDeque::new();
        let mut next = 0_u8;
        for step in 0..100_000 {
            if random.bool() {
                let room = buffer.room(&mut pool);
                let count = random.usize(..=room.len());
                for byte in &mut room[..count] {
                    *byte = next;
                    model.push_back(next);
                    next = next.wrapping_add(1);
                }
                buffer.extend(u32::try_from(count).unwrap());
            } else {
                let count = random.usize(..=buffer.front().len());
                let out: Vec<u8> = model.drain(..count).collect();
                assert_eq!(buffer.front()[..count], out, "step {step}");
                buffer.consume(u32::try_from(count).unwrap(), &mut pool);
            }
            let mut all = vec![0; model.len()];
            buffer.copy(0, &mut all);
            assert_eq!(all, model.make_contiguous(), "step {step}");
            assert_eq!(buffer.length as usize, model.len());
        }
    }

    #[test]
    fn bytes_that_come_early_wait_for_those_before_them() {
        let (mut buffer, mut pool) = (Buffer::default(), Pool::new(10));
        buffer.place(0, b"abcdef", &mut pool);
        buffer.extend(6);
        buffer.consume(6, &mut pool);
        assert!(buffer.bytes.is_empty(), "an empty ring has no memory");
        assert_eq!(pool.lent_bytes(), 0);
        buffer.place(3, b"ghij", &mut pool);
        assert!(buffer.is_empty());
        assert_eq!(pool.lent_bytes(), 10);
        buffer.place(0, b"def", &mut pool);
        buffer.extend(7);
        assert_eq!(buffer.front(), b"defghij");
        buffer.consume(4, &mut pool);
        // Around the end of the memory, and before the rest.
        buffer.place(5, b"56789", &mut pool);
        buffer.place(3, b"34", &mut pool);
        buffer.extend(7);
        let mut all = [0; 10];
        buffer.copy(0, &mut all);
        assert_eq!(&all, b"hij3456789");
    }

    #[test]
    fn early_bytes_survive_the_end_of_those_before_them() {
        let (mut buffer, mut pool) = (Buffer::default(), Pool::new(10));
        buffer.place(0, b"ab", &mut pool);
        buffer.place(4, b"ef", &mut pool);
        buffer.extend(2);
        buffer.consume(2, &mut pool);
        buffer.place(0, b"cd", &mut pool);
        buffer.extend(4);
        assert_eq!(buffer.front(), b"cdef");
    }

    #[test]
    #[should_panic(expected = "beyond the window")]
    fn bytes_beyond_the_window_are_a_fault_of_the_stack() {
        Buffer::default().place(5, b"123456", &mut Pool::new(10));
    }
}
