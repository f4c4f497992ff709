//! Memory on one NUMA node with a cycle of offsets in it.
#![expect(
    unsafe_code,
    reason = "mmap(2), mbind(2), and reads at offsets in that memory"
)]

use std::io;
use std::ptr;
use std::time::{Duration, Instant};

/// Distance of two slots: more than any cache line, and more than the pair of lines that some
/// prefetchers fetch.
pub(super) const SLOT_BYTES: usize = 256;
pub(super) const HUGE_BYTES: usize = 2 << 20;
/// `MPOL_BIND` of `include/uapi/linux/mempolicy.h`.
const MPOL_BIND: libc::c_int = 2;
/// Words of a mask of 4096 nodes, more than any kernel supports.
const MASK_WORDS: usize = 64;

/// A private mapping, aligned to 2 MiB.
#[derive(Debug)]
pub(super) struct Memory {
    mapping: *mut u8,
    mapped_bytes: usize,
    start: *mut u8,
    bytes: usize,
}

/// Where pages come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pages {
    /// The pool of huge pages of 2 MiB.
    Pool,
    /// Transparent huge pages if the kernel has some, else base pages.
    Usual,
}

impl Memory {
    /// Maps memory, a multiple of 2 MiB. Pages are not placed yet.
    pub(super) fn map(bytes: usize, pages: Pages) -> io::Result<Self> {
        let (flags, mapped_bytes) = match pages {
            Pages::Pool => (libc::MAP_HUGETLB | libc::MAP_HUGE_2MB, bytes),
            Pages::Usual => (0, bytes + HUGE_BYTES),
        };
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | flags;
        // SAFETY: a new anonymous mapping at an address of the kernel's choice; it replaces none.
        let mapping =
            unsafe { libc::mmap(ptr::null_mut(), mapped_bytes, protection, flags, -1, 0) };
        if mapping == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let mapping = mapping.cast::<u8>();
        let start = mapping.wrapping_add(mapping.align_offset(HUGE_BYTES));
        let memory = Self {
            mapping,
            mapped_bytes,
            start,
            bytes,
        };
        if pages == Pages::Usual {
            // SAFETY: the range is part of the mapping above; the advice changes no contents.
            // An error means a kernel without transparent huge pages.
            unsafe { libc::madvise(start.cast(), bytes, libc::MADV_HUGEPAGE) };
        }
        Ok(memory)
    }

    /// Binds pages that are placed later to a node.
    pub(super) fn bind(&self, node: u32) -> io::Result<()> {
        let mut mask = [0_u64; MASK_WORDS];
        let word = mask
            .get_mut(node as usize / 64)
            .ok_or(io::ErrorKind::InvalidInput)?;
        *word = 1 << (node % 64);
        // SAFETY: the range is this mapping, and the mask has the given number of bits. The kernel
        // takes one bit less than the number says.
        let result = unsafe {
            libc::syscall(
                libc::SYS_mbind,
                self.start,
                self.bytes,
                MPOL_BIND,
                mask.as_ptr(),
                MASK_WORDS * 64 + 1,
                0,
            )
        };
        if result == 0 {
            Ok(())
        } else {
            Err(io::Error::last_os_error())
        }
    }

    /// Places all pages. A pool without pages on the node is an error here; touching the memory
    /// would end this process by SIGBUS.
    pub(super) fn populate(&self) -> io::Result<()> {
        // SAFETY: the range is this mapping, which is writable.
        let result =
            unsafe { libc::madvise(self.start.cast(), self.bytes, libc::MADV_POPULATE_WRITE) };
        if result == 0 {
            Ok(())
        } else {
            Err(io::Error::last_os_error())
        }
    }

    pub(super) fn slots(&self) -> usize {
        self.bytes / SLOT_BYTES
    }

    /// The address of the first slot.
    pub(super) fn address(&self) -> usize {
        self.start.addr()
    }

    /// Writes into each slot the offset of the next one: `next[i]` follows slot `i`.
    ///
    /// # Panics
    /// `next` does not have one number below `slots()` for each slot.
    pub(super) fn write(&mut self, next: &[u32]) {
        assert_eq!(next.len(), self.slots());
        for (slot, next) in next.iter().enumerate() {
            let next = *next as usize;
            assert!(next < self.slots());
            let place = self.start.wrapping_add(slot * SLOT_BYTES).cast::<usize>();
            // SAFETY: the slot is inside the mapping, aligned to 256 bytes, and this value is the
            // only one that refers to the mapping.
            unsafe { place.write(next * SLOT_BYTES) };
        }
    }

    /// Follows the offsets for a number of steps from the slot at `offset`; returns the time and
    /// the last offset.
    ///
    /// # Panics
    /// `offset` is not one of a slot.
    pub(super) fn chase(&self, offset: usize, steps: u32) -> (Duration, usize) {
        assert!(offset.is_multiple_of(SLOT_BYTES) && offset < self.bytes);
        let mut at = offset;
        let begin = Instant::now();
        for _ in 0..steps {
            let place = self.start.wrapping_add(at).cast::<usize>();
            // SAFETY: `at` is the offset of a slot: the first one was checked above, and `write`
            // stores no others. Fresh pages are zero, which is the first slot.
            at = unsafe { place.read_volatile() };
        }
        (begin.elapsed(), at)
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: the mapping was made by `map`, and no reference into it outlives this value.
        unsafe { libc::munmap(self.mapping.cast(), self.mapped_bytes) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::latency::measure::cycle;

    #[test]
    fn a_chase_visits_all_slots_and_returns() {
        let mut memory = Memory::map(HUGE_BYTES, Pages::Usual).unwrap();
        assert!(memory.address().is_multiple_of(HUGE_BYTES));
        let next = cycle(memory.slots(), 7);
        memory.write(&next);
        let mut at = 0;
        let mut seen = vec![false; memory.slots()];
        for _ in 0..memory.slots() {
            seen[at / SLOT_BYTES] = true;
            at = memory.chase(at, 1).1;
        }
        assert_eq!(at, 0);
        assert!(seen.iter().all(|seen| *seen));
        let (_, end) = memory.chase(0, u32::try_from(memory.slots()).unwrap());
        assert_eq!(end, 0);
    }
}
