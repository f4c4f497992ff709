//! Reserved address space that is made accessible step by step.
//!
//! A writable range counts as data of the process: under vm.overcommit_memory=2 it is charged in
//! full, RLIMIT_DATA bounds it, a core dump contains it and mlockall(2) makes it resident, even if
//! no byte of it is ever touched. None of this applies to a range without access.

#![expect(unsafe_code, reason = "makes a reserved range accessible")]

use core::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};
use saiga_channel::sys;

/// Bytes made accessible at once.
const STEP: usize = 64 << 10;

/// A range of zeroed private memory whose first bytes are accessible. All-zero memory is an
/// empty range, as entries of a pool must be.
#[derive(Debug)]
pub(crate) struct Reserve {
    at: AtomicPtr<u8>,
    /// Size of the range in bytes.
    bytes: AtomicUsize,
    /// Accessible bytes; they only grow.
    open: AtomicUsize,
}

impl Reserve {
    pub(crate) const fn new() -> Self {
        Self {
            at: AtomicPtr::new(core::ptr::null_mut()),
            bytes: AtomicUsize::new(0),
            open: AtomicUsize::new(0),
        }
    }

    /// Reserves `bytes` if nothing is reserved yet; false without address space. Two threads must
    /// not call this at the same time.
    pub(crate) fn begin(&self, bytes: usize) -> bool {
        if !self.at.load(Ordering::Relaxed).is_null() {
            return true;
        }
        let Ok(at) = sys::reserve(bytes) else {
            return false;
        };
        self.bytes.store(bytes, Ordering::Relaxed);
        self.at.store(at.cast(), Ordering::Release);
        true
    }

    /// Address of the first byte; null before [`begin`](Self::begin).
    pub(crate) fn at(&self) -> *mut u8 {
        self.at.load(Ordering::Acquire)
    }

    /// Number of accessible bytes.
    #[inline]
    pub(crate) fn open(&self) -> usize {
        self.open.load(Ordering::Acquire)
    }

    /// Makes the first `bytes` accessible; false when memory is short or the range ends before.
    pub(crate) fn reach(&self, bytes: usize) -> bool {
        let (open, all) = (self.open(), self.bytes.load(Ordering::Relaxed));
        if bytes <= open {
            return true;
        }
        if bytes > all {
            return false;
        }
        let end = bytes.next_multiple_of(STEP).min(all);
        // SAFETY: `open` is below `all`, the size of the range.
        let from = unsafe { self.at().add(open) };
        // Threads that come here at the same time make overlapping parts accessible.
        // SAFETY: `from` and the bytes behind it, up to `end`, lie in the reserved range.
        let opened = unsafe { sys::make_accessible(from.cast(), end - open) };
        if opened.is_ok() {
            self.open.fetch_max(end, Ordering::AcqRel);
        }
        opened.is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_become_accessible_in_steps_and_not_beyond_the_end() {
        let range = Reserve::new();
        assert!(!range.reach(1), "nothing is reserved");
        assert!(
            range.begin(STEP + 4096) && range.begin(1),
            "a second begin does nothing"
        );
        assert_eq!(range.open(), 0);
        assert!(range.reach(1));
        assert_eq!(range.open(), STEP);
        assert!(range.reach(STEP + 1));
        assert_eq!(range.open(), STEP + 4096);
        assert!(!range.reach(STEP + 4097));
        // SAFETY: the offset lies in the range.
        let last = unsafe { range.at().add(STEP + 4095) };
        // SAFETY: the byte was just made accessible, and the range is this test's.
        unsafe { last.write(1) };
    }
}
