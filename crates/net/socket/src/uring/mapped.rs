//! Rings that a program makes by `syscall(2)`: it maps their memory itself, so we map it as well.
//!
//! The mapping keeps the ring alive, so it goes when the descriptor does; a forked child has
//! none, and the rings of its parent are unseen ones to it.

#![expect(
    unsafe_code,
    reason = "reads the memory that a ring shares with the kernel"
)]

use super::{cannot_be_seen, made};
use crate::lock::Lock;
use core::cell::UnsafeCell;
use core::ffi::c_void;
use core::sync::atomic::{AtomicU32, Ordering};
use saiga_channel::sys::{self, Fd, Sys};
use syscalls::Sysno;

/// `struct io_uring_params` (`include/uapi/linux/io_uring.h`), as far as it matters here.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct Setup {
    entries: u32,
    completions: u32,
    flags: u32,
    others: [u32; 7],
    head_at: u32,
    tail_at: u32,
    mask_at: u32,
    entries_at: u32,
    flags_at: u32,
    dropped_at: u32,
    array_at: u32,
    reserved: [u32; 3],
    completion_offsets: [u64; 5],
}

const _: () = {
    assert!(size_of::<Setup>() == 120);
    assert!(core::mem::offset_of!(Setup, head_at) == 40);
    assert!(core::mem::offset_of!(Setup, array_at) == 64);
};

/// IORING_SETUP_SQE128: requests of 128 bytes.
const LARGE_REQUESTS: u32 = 1 << 10;
/// IORING_SETUP_NO_SQARRAY: requests are taken in the order in which they lie.
const NO_ARRAY: u32 = 1 << 16;
/// Flags under which requests come by a call, from memory that can be mapped: all up to
/// IORING_SETUP_DEFER_TASKRUN but for IORING_SETUP_SQPOLL.
const PLAIN_FLAGS: u32 = 0x3ffd | NO_ARRAY;
/// IORING_OFF_SQES.
const REQUESTS_OFFSET: usize = 0x1000_0000;

static RINGS: Rings = Rings(UnsafeCell::new([None; 16]));
static LOCK: Lock = Lock::new();

struct Rings(UnsafeCell<[Option<Ring>; 16]>);

// SAFETY: looked at under LOCK only.
unsafe impl Sync for Rings {}

#[derive(Clone, Copy)]
struct Ring {
    fd: Fd,
    setup: Setup,
    words: Mapping,
    requests: Mapping,
}

#[derive(Clone, Copy)]
struct Mapping {
    at: *mut c_void,
    bytes: usize,
}

/// Lends the records; `None` in a signal handler inside another loan.
fn with_rings<T>(lend: impl FnOnce(&mut [Option<Ring>; 16]) -> T) -> Option<T> {
    let _guard = LOCK.lock()?;
    // SAFETY: under LOCK, and `lend` is never called from within another loan.
    Some(lend(unsafe { &mut *RINGS.0.get() }))
}

/// `io_uring_setup(2)` has made a ring.
pub fn made_by_number(fd: Fd, setup: &Setup) {
    let plain = setup.flags & !PLAIN_FLAGS == 0;
    if plain && Ring::map(fd, setup).is_ok_and(keep) {
        made(fd);
    } else {
        cannot_be_seen();
    }
}

/// Notes a ring. False, and it is unmapped, when there are too many.
fn keep(ring: Ring) -> bool {
    let kept = with_rings(|rings| {
        let free = rings.iter_mut().find(|slot| slot.is_none());
        free.map(|slot| *slot = Some(ring)).is_some()
    });
    if kept != Some(true) {
        ring.unmap();
    }
    kept == Some(true)
}

/// `io_uring_enter(2)` is about to take what is pending: shows the address of each request.
pub fn entering(fd: Fd, mut show: impl FnMut(*const u8)) {
    let found = with_rings(|rings| rings.iter().flatten().find(|ring| ring.fd == fd).copied());
    if let Some(ring) = found.flatten() {
        ring.pending().for_each(&mut show);
    }
}

/// The ring's descriptor is about to be closed.
pub(super) fn unmap(fd: Fd) {
    let gone = with_rings(|rings| {
        let slot = rings
            .iter_mut()
            .find(|slot| slot.is_some_and(|r| r.fd == fd))?;
        slot.take()
    });
    if let Some(ring) = gone.flatten() {
        ring.unmap();
    }
}

/// Drops the records and tells their numbers.
pub(super) fn forget_all(mut tell: impl FnMut(Fd)) {
    with_rings(|rings| {
        for ring in rings.iter_mut().filter_map(Option::take) {
            tell(ring.fd);
        }
    });
}

impl Ring {
    fn map(fd: Fd, setup: &Setup) -> Sys<Ring> {
        let words = [setup.head_at, setup.tail_at, setup.mask_at].map(|at| at as usize + 4);
        let array = setup.array_at as usize + setup.entries as usize * 4;
        let words_end = words.into_iter().fold(array, usize::max);
        let words = Mapping::new(fd, 0, words_end)?;
        let bytes = setup.entries as usize * request_bytes(setup);
        let requests = Mapping::new(fd, REQUESTS_OFFSET, bytes).inspect_err(|_| words.unmap())?;
        Ok(Ring {
            fd,
            setup: *setup,
            words,
            requests,
        })
    }

    fn unmap(&self) {
        self.words.unmap();
        self.requests.unmap();
    }

    fn word(&self, at: usize) -> u32 {
        let at: *const AtomicU32 = self.words.at.wrapping_byte_add(at).cast_const().cast();
        // SAFETY: the mapping covers the word, which the kernel has aligned.
        unsafe { &*at }.load(Ordering::Acquire)
    }

    /// The addresses of the requests that the kernel has not taken yet.
    fn pending(&self) -> impl Iterator<Item = *const u8> {
        let setup = &self.setup;
        let mask = self.word(setup.mask_at as usize);
        let head = self.word(setup.head_at as usize);
        let count = self.word(setup.tail_at as usize).wrapping_sub(head);
        (0..count.min(setup.entries)).filter_map(move |nth| {
            let place = head.wrapping_add(nth) & mask & (setup.entries - 1);
            let index = if setup.flags & NO_ARRAY == 0 {
                self.word(setup.array_at as usize + place as usize * 4)
            } else {
                place
            };
            let inside = index < setup.entries; // The kernel drops others.
            let offset = index as usize * request_bytes(setup);
            inside.then(|| {
                self.requests
                    .at
                    .wrapping_byte_add(offset)
                    .cast_const()
                    .cast()
            })
        })
    }
}

fn request_bytes(setup: &Setup) -> usize {
    if setup.flags & LARGE_REQUESTS == 0 {
        64
    } else {
        128
    }
}

impl Mapping {
    /// Maps a part of a ring; a child of ours does not get it.
    fn new(fd: Fd, offset: usize, bytes: usize) -> Sys<Mapping> {
        let (read, shared) = (sys::reg(libc::PROT_READ), sys::reg(libc::MAP_SHARED));
        // SAFETY: a new mapping at a place that the kernel chooses touches no existing memory.
        let at = unsafe { sys::call(Sysno::mmap, [0, bytes, read, shared, sys::reg(fd), offset]) }?;
        let advice = sys::reg(libc::MADV_DONTFORK);
        // SAFETY: the range is the mapping just made.
        let kept = unsafe { sys::call(Sysno::madvise, [at, bytes, advice, 0, 0, 0]) };
        let mapping = Mapping {
            at: core::ptr::with_exposed_provenance_mut(at),
            bytes,
        };
        kept.inspect_err(|_| mapping.unmap())?;
        Ok(mapping)
    }

    fn unmap(&self) {
        // SAFETY: a whole mapping of ours, of which no record remains.
        unsafe { sys::unmap(self.at, self.bytes) };
    }
}
