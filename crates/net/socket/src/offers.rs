//! The process's open offers. Each holds a descriptor, so their number is bounded.
//!
//! An offer has no timeout: the other end has shown that it uses Saiga and connects at its own
//! pace. When the table is full, a new offer replaces the oldest one if that is at least a second
//! old; the replaced connection makes another offer later.

use crate::lock::Lock;
use crate::sock::Socket;
use crate::{clock, process, rt};
use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering};

/// Entries of the table, whatever the limit of descriptors.
const ENTRIES: usize = 4096;
/// An offer younger than this is not replaced.
const MIN_AGE_NS: u64 = 1_000_000_000;

struct Entry {
    holder: AtomicPtr<Socket>,
    since_ns: AtomicU64,
}

static OPEN: [Entry; ENTRIES] = [const {
    Entry {
        holder: AtomicPtr::new(core::ptr::null_mut()),
        since_ns: AtomicU64::new(0),
    }
}; ENTRIES];
/// Index behind the last taken entry: the oldest offers follow from here.
static NEXT: AtomicU32 = AtomicU32::new(0);

/// Takes an entry for an offer, if necessary that of an old offer, which `end` ends. False when
/// there is none; `end` returns whether it could end the offer.
pub(crate) fn take(socket: &'static Socket, end: impl Fn(&'static Socket) -> bool) -> bool {
    static TAKING: Lock = Lock::new();
    let Some(_turn) = TAKING.try_lock() else {
        return false;
    };
    let now = clock::coarse_ns();
    let allowed = allowance();
    let first = NEXT.load(Ordering::Relaxed) as usize;
    let holder = |at: usize| Socket::at(OPEN[at].holder.load(Ordering::Acquire));
    let in_order = || (0..allowed).map(|i| (first + i) % allowed);
    let is_old = |at: &usize| {
        let since = OPEN[*at].since_ns.load(Ordering::Relaxed);
        now.saturating_sub(since) >= MIN_AGE_NS
    };
    let free = in_order().find(|at| holder(*at).is_none());
    let old = || {
        in_order()
            .filter(is_old)
            .find(|at| holder(*at).is_none_or(&end))
    };
    let Some(at) = free.or_else(old) else {
        return false;
    };
    let number = u32::try_from(at).unwrap_or(0);
    NEXT.store(number + 1, Ordering::Relaxed);
    socket.offer_entry.store(number, Ordering::Relaxed);
    OPEN[at].since_ns.store(now, Ordering::Relaxed);
    let new = core::ptr::from_ref(socket).cast_mut();
    OPEN[at].holder.store(new, Ordering::Release);
    true
}

/// Half of the descriptor numbers at and above the library's lowest one.
fn allowance() -> usize {
    let numbers = usize::try_from(process::descriptor_limit()).unwrap_or(usize::MAX);
    (numbers.saturating_sub(rt::floor()) / 2).clamp(1, ENTRIES)
}

/// Frees the entry of an offer that ends; does nothing for a socket without one.
pub(crate) fn give_back(socket: &Socket) {
    let entry = OPEN.get(socket.offer_entry.load(Ordering::Relaxed) as usize);
    if let Some(Entry { holder, .. }) = entry {
        let (me, none) = (
            core::ptr::from_ref(socket).cast_mut(),
            core::ptr::null_mut(),
        );
        // The entry may belong to another offer by now.
        let _ = holder.compare_exchange(me, none, Ordering::AcqRel, Ordering::Relaxed);
    }
}
