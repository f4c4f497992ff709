//! The scratch arrays of a poll or select: on the stack when small, else in mapped memory that is
//! kept from call to call.

#![expect(unsafe_code, reason = "mapped arrays")]

use super::wait_slots::Claim;
use crate::pool::{Pool, Record};
use core::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};
use libc::pollfd;
use saiga_channel::sys::{self, Errno, Sys};

/// Descriptors that a call can have without mapped memory.
pub(super) const SMALL: usize = 64;
/// Threads that can be in large polls at once.
const RECORDS: usize = 65_536;

static POOL: Pool<Mapped, RECORDS> = Pool::new();

/// An entry without a descriptor, which poll(2) skips.
const NO_FD: pollfd = pollfd {
    fd: -1,
    events: 0,
    revents: 0,
};

/// Mapped memory for the arrays of one large poll.
#[derive(Debug)]
pub(crate) struct Mapped {
    at: AtomicPtr<u8>,
    bytes: AtomicUsize,
    next_free: AtomicPtr<Mapped>,
}

impl Record for Mapped {
    fn next_free(&self) -> &AtomicPtr<Self> {
        &self.next_free
    }
}

impl Mapped {
    /// The memory, enlarged if necessary; mapped memory is a whole number of pages.
    fn of(&self, bytes: usize) -> Sys<*mut u8> {
        let (at, has) = (&self.at, self.bytes.load(Ordering::Relaxed));
        let now = at.load(Ordering::Relaxed);
        if has >= bytes {
            return Ok(now);
        }
        let larger = sys::map(-1, bytes)?.cast();
        if !now.is_null() {
            // SAFETY: mapped here for `has` bytes; the previous borrower of the record is done.
            unsafe { sys::unmap(now.cast(), has) };
        }
        at.store(larger, Ordering::Relaxed);
        self.bytes.store(bytes, Ordering::Relaxed);
        Ok(larger)
    }
}

/// Calls `fill` with an array of `len` records.
///
/// # Errors
/// ENOMEM for many descriptors; else what `fill` returns.
pub fn with_records<T>(len: usize, fill: impl FnOnce(&mut [pollfd]) -> Sys<T>) -> Sys<T> {
    let mut few = [NO_FD; SMALL];
    if let Some(list) = few.get_mut(..len) {
        return fill(list);
    }
    let record = POOL.take().ok_or(Errno(libc::ENOMEM))?;
    let result = record.of(len * size_of::<pollfd>()).and_then(|at| {
        // SAFETY: mapped for `len` records, ours while the record is; any bytes are valid.
        fill(unsafe { core::slice::from_raw_parts_mut(at.cast(), len) })
    });
    POOL.put(record);
    result
}

/// The arrays of one call; mapped memory is returned to the pool when dropped.
pub(super) struct Scratch {
    small: ([pollfd; SMALL + 1], [Claim; SMALL]),
    large: Option<(&'static Mapped, *mut u8)>,
    len: usize,
}

impl Scratch {
    /// Arrays for `len` descriptors.
    ///
    /// # Errors
    /// ENOMEM for many descriptors.
    pub(super) fn new(len: usize) -> Sys<Scratch> {
        let mut scratch = Scratch {
            small: ([NO_FD; SMALL + 1], [Claim::NONE; SMALL]),
            large: None,
            len,
        };
        if len > SMALL {
            let record = POOL.take().ok_or(Errno(libc::ENOMEM))?;
            match record.of(Self::claims_at(len) + len * size_of::<Claim>()) {
                Ok(at) => scratch.large = Some((record, at)),
                Err(e) => {
                    POOL.put(record);
                    return Err(e);
                }
            }
            scratch.clear_claims();
        }
        Ok(scratch)
    }

    /// Clears the claims: mapped memory still has those of another call.
    fn clear_claims(&self) {
        let Some((_, at)) = self.large else { return };
        for i in 0..self.len {
            let offset = Self::claims_at(self.len) + i * size_of::<Claim>();
            // SAFETY: within the mapping, see `new`.
            let claim = unsafe { at.add(offset) }.cast::<Claim>();
            // SAFETY: as above, and aligned.
            unsafe { claim.write(Claim::NONE) };
        }
    }

    /// Offset of the claims in mapped memory for `len` descriptors.
    const fn claims_at(len: usize) -> usize {
        ((len + 1) * size_of::<pollfd>()).next_multiple_of(align_of::<Claim>())
    }

    /// The array for the kernel, one entry longer than the descriptors, and the claims.
    pub(super) fn arrays(&mut self) -> (&mut [pollfd], &mut [Claim]) {
        let Some((_, at)) = self.large else {
            let (asked, claims) = &mut self.small;
            return (&mut asked[..=self.len], &mut claims[..self.len]);
        };
        // SAFETY: within the mapping, see `new`.
        let claims = unsafe { at.add(Self::claims_at(self.len)) };
        // SAFETY: mapped for one more than `len`, ours while the record is; any bytes are valid.
        let asked = unsafe { core::slice::from_raw_parts_mut(at.cast(), self.len + 1) };
        // SAFETY: behind the former and aligned; `new` has filled it before it is read.
        let claims = unsafe { core::slice::from_raw_parts_mut(claims.cast(), self.len) };
        (asked, claims)
    }
}

impl Scratch {
    /// The mapped memory of the arrays, if they are not on the stack.
    pub(super) fn memory(&self) -> Option<&'static Mapped> {
        self.large.map(|(memory, _)| memory)
    }
}

impl Scratch {
    /// Forgets mapped memory that was released as abandoned.
    pub(super) fn disown(&mut self) {
        self.large = None;
    }
}

/// Returns memory that an abandoned frame had borrowed.
pub(crate) fn put_back(memory: &'static Mapped) {
    POOL.put(memory);
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if let Some((record, _)) = self.large.take() {
            POOL.put(record);
        }
    }
}
