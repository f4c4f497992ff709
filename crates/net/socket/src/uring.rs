//! io_uring beside us: what a program's rings do with its connections.
//!
//! The kernel takes requests from memory, past every hook, but a call of liburing submits them:
//! the hooks show us each request before that. A connection that a request names goes back to
//! TCP first, and for good. A database that has rings for its files keeps its channels. A ring
//! whose requests cannot be seen (not made by liburing's shared library, or served by a thread
//! of the kernel) keeps every connection of the process on TCP, and takes back those that are not.

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
/// One bit for each descriptor that is a ring whose requests we see.
static SEEN: [AtomicU64; NUMBERS / 64] = [const { AtomicU64::new(0) }; NUMBERS / 64];
/// A ring cannot be seen: nothing is upgraded any more.
static UNSEEN: AtomicBool = AtomicBool::new(false);
/// The latest look found a ring that was made past the hooks.
static FOUND: AtomicBool = AtomicBool::new(false);
/// When the next look is due (CLOCK_MONOTONIC).
static NEXT_NS: AtomicU64 = AtomicU64::new(0);
/// Pause between two looks, and how much longer than a look it is at least.
const PAUSE_NS: u64 = 1_000_000_000;
const PAUSE_LOOKS: u64 = 100;

thread_local! {
    /// liburing is making a ring; it may do so by `syscall(2)`.
    static BY_LIBURING: Cell<bool> = const { Cell::new(false) };
}

fn bit(fd: Fd) -> Option<(&'static AtomicU64, u64)> {
    let number = usize::try_from(fd).ok()?;
    Some((SEEN.get(number / 64)?, 1 << (number % 64)))
}

/// A ring was made whose requests will be shown to us.
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

/// A ring was made by `syscall(2)`. Unless liburing did it, its requests will not be shown.
pub fn made_by_number() {
    if !BY_LIBURING.get() {
        cannot_be_seen();
    }
}

/// Whether the descriptor is a ring whose requests are shown to us.
fn is_seen(ring: Fd) -> bool {
    bit(ring).is_some_and(|(word, bit)| word.load(Ordering::Relaxed) & bit != 0)
}

/// The descriptor is about to be closed, and may be such a ring.
pub fn ended(ring: Fd) {
    if is_seen(ring)
        && rt::in_own_process()
        && let Some((word, bit)) = bit(ring)
    {
        word.fetch_and(!bit, Ordering::Relaxed);
    }
}

/// A request names a descriptor: what the kernel does with it, it does without us.
fn names(fd: Fd) {
    match table::get(fd) {
        Entry::Socket(_) => {
            if let Some(handle) = api::lookup(fd) {
                handle.stay_on_tcp(fd, Reason::IoUring);
            }
        }
        // It is polled: its bell must ring for what only we know.
        Entry::Epoll(set) => latch(set),
        Entry::Unknown | Entry::Hidden => {}
    }
}

/// A ring was made, or is used, in a way that hides its requests from us.
fn cannot_be_seen() {
    UNSEEN.store(true, Ordering::SeqCst);
    take_all_back();
}

fn take_all_back() {
    for fd in api::known(0, Fd::MAX) {
        if let Some(handle) = api::lookup(fd) {
            handle.stay_on_tcp(fd, Reason::IoUring);
        }
    }
}

/// Whether a ring that we cannot see keeps connections on TCP, as of the latest look.
pub(crate) fn is_in_the_way() -> bool {
    UNSEEN.load(Ordering::Relaxed) || FOUND.load(Ordering::Relaxed)
}

/// Looks for rings that were made past the hooks, once a second at most, and takes every
/// connection back if there is one. No lock may be held.
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
        take_all_back();
    }
}
