//! The process's open offers: each holds a descriptor, so there are only so many.
//!
//! An offer has no term of its own: the other end has shown that it is Saiga's and comes at
//! its own pace. When all places are taken, a new offer ends the oldest, once that one has had
//! its time; whoever loses its offer makes another one later.

use crate::clock;
use crate::lock::Lock;
use crate::sock::Socket;
use core::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

/// Offers at a time: half of the descriptor numbers that are ours where few are allowed.
const PLACES: usize = 64;
/// An offer that is younger than this keeps its place.
const TERM_NS: u64 = 1_000_000_000;

struct Place {
    holder: AtomicPtr<Socket>,
    since_ns: AtomicU64,
}

static OPEN: [Place; PLACES] = [const {
    Place {
        holder: AtomicPtr::new(core::ptr::null_mut()),
        since_ns: AtomicU64::new(0),
    }
}; PLACES];

/// Takes a place for an offer, if need be that of the oldest, which `end` ends. False when
/// there is none; `end` says whether it could.
pub(crate) fn take(socket: &'static Socket, end: impl FnOnce(&'static Socket) -> bool) -> bool {
    static TAKING: Lock = Lock::new();
    let Some(_turn) = TAKING.try_lock() else {
        return false;
    };
    let now = clock::coarse_ns();
    let age = |place: &Place| now.saturating_sub(place.since_ns.load(Ordering::Relaxed));
    let free = OPEN
        .iter()
        .find(|place| place.holder.load(Ordering::Acquire).is_null());
    let place = free.or_else(|| OPEN.iter().max_by_key(|place| age(place)));
    let Some(place) = place else { return false };
    if let Some(holder) = Socket::at(place.holder.load(Ordering::Acquire))
        && (age(place) < TERM_NS || !end(holder))
    {
        return false;
    }
    place.since_ns.store(now, Ordering::Relaxed);
    let new = core::ptr::from_ref(socket).cast_mut();
    place.holder.store(new, Ordering::Release);
    true
}

/// Gives the place of an offer that ends back; a socket without one may say so, too.
pub(crate) fn give_back(socket: &Socket) {
    let gone = core::ptr::from_ref(socket).cast_mut();
    for place in &OPEN {
        if place.holder.load(Ordering::Relaxed) == gone {
            let none = core::ptr::null_mut();
            // Only the holder's end and a new one change it, and the latter may have come first.
            let _ = place
                .holder
                .compare_exchange(gone, none, Ordering::AcqRel, Ordering::Relaxed);
        }
    }
}
