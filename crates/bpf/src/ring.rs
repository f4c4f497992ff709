//! The memory of a BPF ring, from which this process takes records.
//!
//! Kernel: kernel/bpf/ringbuf.c. Positions and lengths in a ring are checked before they are used.
#![expect(unsafe_code, reason = "rings are memory shared with the kernel")]

use std::os::fd::AsFd as _;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering, fence};

use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags};

use crate::map::{Map, MapKind};

/// Bytes of a record's header (`struct bpf_ringbuf_hdr`): its length, and the offset of its page.
const HEADER: usize = 8;
/// `BPF_RINGBUF_BUSY_BIT` of the length: the record is still being written.
const IS_BUSY: u32 = 1 << 31;
/// `BPF_RINGBUF_DISCARD_BIT` of the length: the writer discarded the record.
const IS_DISCARDED: u32 = 1 << 30;

/// The result of [`Ring::take`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// The ring is empty, or the next record is still being written.
    Nothing,
    /// The next record had been discarded by its writer.
    Discarded,
    /// The next record was copied.
    Record,
    /// The next record has this length, which is not that of the program's records.
    Invalid(u32),
}

/// The mapped memory of a ring: a page with the consumer's position, which this process writes, a
/// page with the producer's position, and the data, mapped twice in a row so that no record wraps.
#[derive(Debug)]
pub struct Ring {
    map: Map<0, 0>,
    /// The page with the consumer's position.
    consumer: NonNull<u8>,
    /// The page with the producer's position, followed by the data.
    producer: NonNull<u8>,
    page: usize,
    bytes: usize,
}

// SAFETY: only this value points to the mapped memory.
unsafe impl Send for Ring {}

impl Ring {
    /// Creates a ring of `bytes`, a power of two, or of a page if that is larger.
    ///
    /// # Errors
    /// As [`Map::new`], and those of mmap(2).
    pub fn new(bytes: u32) -> Result<Self, Errno> {
        let page = rustix::param::page_size();
        let bytes = usize::try_from(bytes).map_err(|_| Errno::TOOBIG)?.max(page);
        let entries = u32::try_from(bytes).map_err(|_| Errno::TOOBIG)?;
        let map = Map::new(MapKind::Ring, entries)?;
        let whole = bytes
            .checked_mul(2)
            .and_then(|both| both.checked_add(page))
            .ok_or(Errno::TOOBIG)?;
        let consumer = map_memory(&map, page, ProtFlags::READ | ProtFlags::WRITE, 0)?;
        let producer = map_memory(&map, whole, ProtFlags::READ, page);
        if producer.is_err() {
            // SAFETY: this function mapped the page with this length, and no other pointer exists.
            let _ = unsafe { rustix::mm::munmap(consumer.as_ptr().cast(), page) };
        }
        Ok(Self {
            map,
            consumer,
            producer: producer?,
            page,
            bytes,
        })
    }

    /// Returns the ring's descriptor, which instructions refer to.
    #[must_use]
    pub fn number(&self) -> i32 {
        self.map.number()
    }

    /// Returns the largest number of records of `bytes` that the ring holds.
    #[must_use]
    pub fn capacity(&self, bytes: usize) -> usize {
        self.bytes / (bytes.next_multiple_of(8) + HEADER)
    }

    /// Returns the position on a page: an `unsigned long` at its start.
    fn position(page: &NonNull<u8>) -> &AtomicUsize {
        // SAFETY: a page is aligned and stays mapped as long as the ring; the kernel and this
        // process access the position only atomically.
        unsafe { AtomicUsize::from_ptr(page.as_ptr().cast()) }
    }

    /// Removes the next record and copies it to `into`, whose length must be that of all records.
    pub fn take(&self, into: &mut [u8]) -> Next {
        let consumer = Self::position(&self.consumer);
        let start = consumer.load(Ordering::Relaxed);
        // Atomic loads from read-only memory must be relaxed (std::sync::atomic); the fence makes
        // this load an acquire.
        let end = Self::position(&self.producer).load(Ordering::Relaxed);
        fence(Ordering::Acquire);
        let available = end.wrapping_sub(start);
        if available < HEADER {
            return Next::Nothing;
        }
        // Positions only grow; records start at multiples of eight.
        let offset = (start % self.bytes) & !7;
        // SAFETY: the offset is within the first mapping of the data, which follows the page.
        let header = unsafe { self.producer.add(self.page + offset) };
        // SAFETY: the header is mapped, and aligned to 8; the kernel writes the length atomically.
        let header = unsafe { AtomicU32::from_ptr(header.as_ptr().cast()) };
        let length = header.load(Ordering::Relaxed);
        fence(Ordering::Acquire);
        if length & IS_BUSY != 0 {
            return Next::Nothing;
        }
        let bytes = (length & !IS_DISCARDED) as usize;
        let whole = bytes.next_multiple_of(8) + HEADER;
        if bytes != into.len() || whole > available || whole > self.bytes {
            return Next::Invalid(length);
        }
        if length & IS_DISCARDED == 0 {
            // SAFETY: offset < self.bytes and whole <= self.bytes, so the record ends within the
            // second mapping of the data.
            let from = unsafe { self.producer.add(self.page + offset + HEADER) };
            // SAFETY: `bytes` bytes are mapped there, and the kernel does not write them again
            // until the consumer's position is behind them; `into` has the same length.
            unsafe { std::ptr::copy_nonoverlapping(from.as_ptr(), into.as_mut_ptr(), bytes) };
        }
        consumer.store(start.wrapping_add(whole), Ordering::Release);
        if length & IS_DISCARDED == 0 {
            Next::Record
        } else {
            Next::Discarded
        }
    }
}

fn map_memory(
    map: &Map<0, 0>,
    bytes: usize,
    protection: ProtFlags,
    offset: usize,
) -> Result<NonNull<u8>, Errno> {
    // SAFETY: the kernel chooses the address, so the call replaces no mapping.
    let memory = unsafe {
        rustix::mm::mmap(
            std::ptr::null_mut(),
            bytes,
            protection,
            MapFlags::SHARED,
            map.as_fd(),
            offset as u64,
        )
    }?;
    NonNull::new(memory.cast()).ok_or(Errno::NOMEM)
}

impl Drop for Ring {
    fn drop(&mut self) {
        for (memory, bytes) in [
            (self.consumer, self.page),
            (self.producer, self.page + 2 * self.bytes),
        ] {
            // SAFETY: the memory was mapped with this length, and only this value points there.
            let _ = unsafe { rustix::mm::munmap(memory.as_ptr().cast(), bytes) };
        }
    }
}
