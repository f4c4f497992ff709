//! Mapped memory: shared with the kernel (AF_XDP) or with another process (memif), or this
//! process's own.
#![expect(
    unsafe_code,
    reason = "mmap(2), and memory that the kernel or another process reads and writes"
)]

use std::io;
use std::os::fd::BorrowedFd;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU16, AtomicU32, AtomicU64};

use rustix::mm::{MapFlags, ProtFlags};

/// Size of a huge page. Other sizes are not asked for.
const HUGE_PAGE: usize = 2 << 20;

/// Mapped memory, until it is dropped.
#[derive(Debug)]
pub(crate) struct Mapping {
    start: NonNull<u8>,
    bytes: usize,
}

// SAFETY: only this value points to the memory, and its methods give out atomics or are unsafe.
unsafe impl Send for Mapping {}

impl Mapping {
    /// Maps `bytes` bytes of a descriptor from `offset` on, for reading and writing.
    pub(crate) fn of(fd: BorrowedFd<'_>, bytes: usize, offset: u64) -> io::Result<Self> {
        let flags = MapFlags::SHARED | MapFlags::POPULATE;
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: the kernel chooses the address, so the call replaces no mapping.
        let start = unsafe {
            rustix::mm::mmap(std::ptr::null_mut(), bytes, protection, flags, fd, offset)
        }?;
        Self::at(start.cast(), bytes)
    }

    /// Maps at least `bytes` bytes of zeros, which are in memory at once: from the NUMA node of the
    /// calling thread.
    pub(crate) fn anonymous(bytes: usize) -> io::Result<Self> {
        Self::map_anonymous(bytes, MapFlags::empty())
    }

    /// As [`Self::anonymous`], in huge pages. Fails if there are not enough of them.
    pub(crate) fn huge(bytes: usize) -> io::Result<Self> {
        let flags = MapFlags::HUGETLB | MapFlags::HUGE_2MB;
        Self::map_anonymous(bytes.next_multiple_of(HUGE_PAGE), flags)
    }

    fn map_anonymous(bytes: usize, flags: MapFlags) -> io::Result<Self> {
        let flags = flags | MapFlags::PRIVATE | MapFlags::POPULATE;
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: the kernel chooses the address, so the call replaces no mapping.
        let start =
            unsafe { rustix::mm::mmap_anonymous(std::ptr::null_mut(), bytes, protection, flags) }?;
        Self::at(start.cast(), bytes)
    }

    fn at(start: *mut u8, bytes: usize) -> io::Result<Self> {
        let start = NonNull::new(start).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Self { start, bytes })
    }

    /// The address of the first byte, for the kernel.
    pub(crate) fn address(&self) -> u64 {
        self.start.as_ptr() as u64
    }

    /// The two bytes at `offset`; `None` if they are not in the memory or not aligned.
    pub(crate) fn half_word(&self, offset: usize) -> Option<&AtomicU16> {
        let place = self.place::<AtomicU16>(offset, 1)?;
        // SAFETY: as for `word`.
        Some(unsafe { place.as_ref() })
    }

    /// The four bytes at `offset`; `None` if they are not in the memory or not aligned.
    pub(crate) fn word(&self, offset: usize) -> Option<&AtomicU32> {
        let place = self.place::<AtomicU32>(offset, 1)?;
        // SAFETY: the bytes are mapped as long as `self`, and aligned. Every value is valid, and
        // all accesses to the rings are atomic, here and at the other end.
        Some(unsafe { place.as_ref() })
    }

    /// `count` times eight bytes from `offset` on; `None` if they are not in the memory or not
    /// aligned.
    pub(crate) fn double_words(&self, offset: usize, count: usize) -> Option<&[AtomicU64]> {
        let place = self.place::<AtomicU64>(offset, count)?;
        // SAFETY: as for `word`.
        Some(unsafe { std::slice::from_raw_parts(place.as_ptr(), count) })
    }

    /// `count` bytes from `offset` on; `None` if they are not in the memory.
    ///
    /// # Safety
    /// Nothing writes the bytes while the slice lives: neither the kernel nor this process.
    pub(crate) unsafe fn bytes(&self, offset: usize, count: usize) -> Option<&[u8]> {
        let place = self.place::<u8>(offset, count)?;
        // SAFETY: the bytes are mapped as long as `self`, and the caller keeps them unchanged.
        Some(unsafe { std::slice::from_raw_parts(place.as_ptr(), count) })
    }

    /// As [`Self::bytes`], for writing.
    ///
    /// # Safety
    /// Nothing else reads or writes the bytes while the slice lives.
    pub(crate) unsafe fn bytes_mut(&mut self, offset: usize, count: usize) -> Option<&mut [u8]> {
        let place = self.place::<u8>(offset, count)?;
        // SAFETY: the bytes are mapped as long as `self`, and the caller keeps others away.
        Some(unsafe { std::slice::from_raw_parts_mut(place.as_ptr(), count) })
    }

    /// Copies the bytes from `offset` on to `to`, and returns whether they are in the memory.
    /// Another process may write them at the same time: the copy then has some of its bytes.
    #[must_use]
    pub(crate) fn copy_out(&self, offset: usize, to: &mut [u8]) -> bool {
        let place = self.place::<u8>(offset, to.len());
        if let Some(place) = place {
            // SAFETY: the bytes are mapped as long as `self`, and `to` is memory of this process. A
            // process that writes at the same time garbles bytes that it has published, which its
            // protocol forbids; the copy is checked like any input.
            unsafe { std::ptr::copy_nonoverlapping(place.as_ptr(), to.as_mut_ptr(), to.len()) };
        }
        place.is_some()
    }

    /// Copies `from` to the bytes from `offset` on, and returns whether they are in the memory.
    #[must_use]
    pub(crate) fn copy_in(&self, offset: usize, from: &[u8]) -> bool {
        let place = self.place::<u8>(offset, from.len());
        if let Some(place) = place {
            // SAFETY: as for `copy_out`: the bytes are not published yet.
            unsafe { std::ptr::copy_nonoverlapping(from.as_ptr(), place.as_ptr(), from.len()) };
        }
        place.is_some()
    }

    /// The place of `count` values of `T` from `offset` on, if it is in the memory and aligned.
    fn place<T>(&self, offset: usize, count: usize) -> Option<NonNull<T>> {
        let end = size_of::<T>().checked_mul(count)?.checked_add(offset)?;
        if end > self.bytes {
            return None;
        }
        // SAFETY: the offset is at most the length of the mapping.
        let place = unsafe { self.start.add(offset) }.cast::<T>();
        place.is_aligned().then_some(place)
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the memory was mapped with this length, and only this value points there.
        let _unmapped = unsafe { rustix::mm::munmap(self.start.as_ptr().cast(), self.bytes) };
    }
}
