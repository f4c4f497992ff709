//! A reader and the part of it that is looked at.

use std::io::{self, ErrorKind, Read};

/// Size of the buffer, and so the largest record: libpcap's largest packet has 256 KiB.
pub(super) const CAPACITY: usize = 1 << 20;

pub(super) struct Input<R> {
    reader: R,
    buffer: Box<[u8]>,
    start: usize,
    end: usize,
}

impl<R: Read> Input<R> {
    pub(super) fn new(reader: R) -> Self {
        Self {
            reader,
            buffer: vec![0; CAPACITY].into_boxed_slice(),
            start: 0,
            end: 0,
        }
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.buffer[self.start..self.end]
    }

    /// Reads until there are `count` bytes. Returns whether there are.
    pub(super) fn fill(&mut self, count: usize) -> io::Result<bool> {
        if self.end - self.start >= count {
            return Ok(true);
        }
        debug_assert!(count <= CAPACITY);
        self.buffer.copy_within(self.start..self.end, 0);
        self.end -= self.start;
        self.start = 0;
        while self.end < count {
            match self.reader.read(&mut self.buffer[self.end..]) {
                Ok(0) => return Ok(false),
                Ok(n) => self.end += n,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(true)
    }

    pub(super) fn consume(&mut self, count: usize) {
        self.start = self.end.min(self.start + count);
    }

    /// Goes past `count` bytes, which may be more than the buffer holds. Returns whether they were
    /// there.
    pub(super) fn skip(&mut self, count: usize) -> io::Result<bool> {
        let mut left = count;
        while left > 0 {
            if self.start == self.end && !self.fill(1)? {
                return Ok(false);
            }
            let part = left.min(self.end - self.start);
            self.consume(part);
            left -= part;
        }
        Ok(true)
    }
}
