//! The process's open offers: each holds a descriptor, so there are only so many.
//!
//! An offer has no term of its own: the other end has shown that it is Saiga's and comes at
//! its own pace. When all places are taken, a new offer ends the oldest, once that one has had
//! its time; whoever loses its offer makes another one later.

use crate::lock::Lock;
use crate::sock::Socket;
use crate::{clock, process, rt};
use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering};

/// Offers at a time, whatever the limit of descriptors.
const PLACES: usize = 4096;
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
/// Behind the place that was taken last: the oldest offers are found from here.
static NEXT: AtomicU32 = AtomicU32::new(0);

/// Takes a place for an offer, if need be that of an old one, which `end` ends. False when
/// there is none; `end` says whether it could.
pub(crate) fn take(socket: &'static Socket, end: impl Fn(&'static Socket) -> bool) -> bool {
    static TAKING: Lock = Lock::new();
    let Some(_turn) = TAKING.try_lock() else {
        return false;
    };
    let now = clock::coarse_ns();
    let allowed = allowance();
    let first = NEXT.load(Ordering::Relaxed) as usize;
    let holder = |at: usize| Socket::at(OPEN[at].holder.load(Ordering::Acquire));
    let in_turn = || (0..allowed).map(|i| (first + i) % allowed);
    let is_old = |at: &usize| {
        let since = OPEN[*at].since_ns.load(Ordering::Relaxed);
        now.saturating_sub(since) >= TERM_NS
    };
    let free = in_turn().find(|at| holder(*at).is_none());
    let old = || {
        in_turn()
            .filter(is_old)
            .find(|at| holder(*at).is_none_or(&end))
    };
    let Some(at) = free.or_else(old) else {
        return false;
    };
    let number = u32::try_from(at).unwrap_or(0);
    NEXT.store(number + 1, Ordering::Relaxed);
    socket.place.store(number, Ordering::Relaxed);
    OPEN[at].since_ns.store(now, Ordering::Relaxed);
    let new = core::ptr::from_ref(socket).cast_mut();
    OPEN[at].holder.store(new, Ordering::Release);
    true
}

/// Half of the descriptor numbers at and above our own lowest one.
fn allowance() -> usize {
    let mut limit = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    process::rlimit_nofile(&mut limit);
    let numbers = usize::try_from(limit.rlim_cur).unwrap_or(usize::MAX);
    (numbers.saturating_sub(rt::floor()) / 2).clamp(1, PLACES)
}

/// Gives the place of an offer that ends back; a socket without one may say so, too.
pub(crate) fn give_back(socket: &Socket) {
    let place = OPEN.get(socket.place.load(Ordering::Relaxed) as usize);
    if let Some(Place { holder, .. }) = place {
        let (me, none) = (
            core::ptr::from_ref(socket).cast_mut(),
            core::ptr::null_mut(),
        );
        // The place may be another offer's by now.
        let _ = holder.compare_exchange(me, none, Ordering::AcqRel, Ordering::Relaxed);
    }
}
