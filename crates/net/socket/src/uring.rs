//! Connections that the program's io_uring rings use.
//!
//! The kernel reads requests from memory without any hook, but a call of liburing submits them, and
//! the hooks show this module each request before that. A connection that a request names is
//! downgraded first, for good. A database that uses rings for its files keeps its channels. A ring
//! whose requests cannot be seen (not made by liburing's shared library, or served by a thread of
//! the kernel) keeps every connection of the process on TCP, and downgrades upgraded ones.

mod descriptors;
mod request;

pub use request::{registering, submitting};

use crate::epoll_wait::latch;
use crate::table::Entry;
use crate::{api, clock, rt, table};
use core::cell::Cell;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use saiga_channel::sys::Fd;
use saiga_status::Reason;

const NUMBERS: usize = 1 << 20;
/// One bit for each descriptor that is a ring whose requests are seen.
static SEEN: [AtomicU64; NUMBERS / 64] = [const { AtomicU64::new(0) }; NUMBERS / 64];
/// Whether there was a ring whose requests cannot be seen: nothing is upgraded any more.
static UNSEEN: AtomicBool = AtomicBool::new(false);
/// Whether the latest search found a ring that was made without the hooks.
static FOUND: AtomicBool = AtomicBool::new(false);
/// When the next search is due (CLOCK_MONOTONIC, ns).
static NEXT_NS: AtomicU64 = AtomicU64::new(0);
/// Pause between two searches, and its minimal length in durations of a search.
const PAUSE_NS: u64 = 1_000_000_000;
const PAUSE_LOOKS: u64 = 100;

thread_local! {
    /// Whether liburing is making a ring; it may do so by `syscall(2)`.
    static BY_LIBURING: Cell<bool> = const { Cell::new(false) };
}

fn bit(fd: Fd) -> Option<(&'static AtomicU64, u64)> {
    let number = usize::try_from(fd).ok()?;
    Some((SEEN.get(number / 64)?, 1 << (number % 64)))
}

/// Records a ring whose requests the hooks will see.
pub fn made(ring: Fd) {
    if let Some((word, bit)) = bit(ring) {
        word.fetch_or(bit, Ordering::Relaxed);
    }
}

/// Runs a function of liburing that makes a ring.
pub fn by_liburing<T>(make: impl FnOnce() -> T) -> T {
    BY_LIBURING.set(true);
    let made = make();
    BY_LIBURING.set(false);
    made
}

/// Handles a ring made by `syscall(2)`. Its requests are not seen unless liburing made the call.
pub fn made_by_number() {
    if !BY_LIBURING.get() {
        note_unseen_ring();
    }
}

/// Whether the descriptor is a ring whose requests are seen.
fn is_seen(ring: Fd) -> bool {
    bit(ring).is_some_and(|(word, bit)| word.load(Ordering::Relaxed) & bit != 0)
}

/// Clears the record of a descriptor that is about to be closed, if it is such a ring.
pub fn ended(ring: Fd) {
    if is_seen(ring)
        && rt::in_own_process()
        && let Some((word, bit)) = bit(ring)
    {
        word.fetch_and(!bit, Ordering::Relaxed);
    }
}

/// Downgrades a socket that a request names: the kernel serves the request without the library.
fn names(fd: Fd) {
    match table::get(fd) {
        Entry::Socket(_) => {
            if let Some(handle) = api::lookup(fd) {
                handle.stay_on_tcp(fd, Reason::IoUring);
            }
        }
        // The request polls the set: its bell must ring for events that only the library knows.
        Entry::Epoll(set) => latch(set),
        Entry::Unknown | Entry::Hidden => {}
    }
}

/// Handles a ring that is made or used in a way that hides its requests.
fn note_unseen_ring() {
    UNSEEN.store(true, Ordering::SeqCst);
    downgrade_all();
}

fn downgrade_all() {
    for fd in api::known(0, Fd::MAX) {
        if let Some(handle) = api::lookup(fd) {
            handle.stay_on_tcp(fd, Reason::IoUring);
        }
    }
}

/// Whether a ring that cannot be seen keeps connections on TCP, as of the latest search.
pub(crate) fn is_in_the_way() -> bool {
    UNSEEN.load(Ordering::Relaxed) || FOUND.load(Ordering::Relaxed)
}

/// Searches for rings made without the hooks, once a second at most, and downgrades every
/// connection if there is one. The caller must not hold a lock.
pub(crate) fn look_again() {
    let (now, due) = (clock::monotonic_ns(), NEXT_NS.load(Ordering::Relaxed));
    if now < due {
        return;
    }
    let mine = NEXT_NS.compare_exchange(due, now + PAUSE_NS, Ordering::Relaxed, Ordering::Relaxed);
    if mine.is_err() {
        return;
    }
    let found = descriptors::any_unseen_ring();
    FOUND.store(found, Ordering::SeqCst);
    let took = clock::monotonic_ns().saturating_sub(now);
    let pause = PAUSE_NS.max(took * PAUSE_LOOKS);
    NEXT_NS.store(now + pause, Ordering::Relaxed);
    if found {
        downgrade_all();
    }
}
