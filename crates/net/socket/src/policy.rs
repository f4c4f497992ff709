//! How a waiting side waits: yield, spin, or sleep at once.
//!
//! Measured rules (docs/waiting.md): a peer on our own CPU cannot run while we spin,
//! so we yield at most twice; a peer elsewhere answers within a wake-up's cost or
//! not soon, so we spin about that long; a gap in the time counter means that a
//! stranger took the CPU, and then nobody spins for a while; a process never has as
//! many spinners as CPUs.

use crate::{clock, rt, thread};
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use saiga_channel::sys;

/// A gap in the counter longer than this means that another program ran here.
const STRANGER_US: u64 = 300;
/// How long spinning is off after that.
const SULK_US: u64 = 20_000;
/// Gives a peer on the same CPU the chance to answer.
const YIELDS: u32 = 2;

/// Counter value until which nobody in this process spins.
static SULK_UNTIL: AtomicU64 = AtomicU64::new(0);
static SPINNERS: AtomicU32 = AtomicU32::new(0);
static CPUS: AtomicU32 = AtomicU32::new(0);

/// Notes how many CPUs the process may use.
pub(crate) fn set_cpus(n: u32) {
    CPUS.store(n, Ordering::Relaxed);
}

/// A forked child has no spinners.
pub(crate) fn forked() {
    SPINNERS.store(0, Ordering::Relaxed);
}

/// Waits a short while without sleeping, for `news`. `peer_cpu` is where the peer ran when it
/// last told us something. True when there is news.
pub(crate) fn linger(peer_cpu: u32, news: impl Fn() -> bool) -> bool {
    let limit = rt::spin_us();
    let start = clock::ticks();
    if limit == 0 || start < SULK_UNTIL.load(Ordering::Relaxed) {
        return news();
    }
    if peer_cpu == thread::cpu() {
        return yield_to_peer(start, news);
    }
    // Fewer spinners than CPUs; a process that has one CPU to itself may have one spinner, for
    // its peer runs elsewhere.
    let most = CPUS.load(Ordering::Relaxed).saturating_sub(1).max(1);
    if SPINNERS.fetch_add(1, Ordering::Relaxed) >= most {
        SPINNERS.fetch_sub(1, Ordering::Relaxed);
        return news();
    }
    let found = spin(start, clock::us(limit), news);
    SPINNERS.fetch_sub(1, Ordering::Relaxed);
    let counter = if found {
        &rt::header().spins
    } else {
        &rt::header().sleeps
    };
    counter.fetch_add(1, Ordering::Relaxed);
    found
}

fn yield_to_peer(start: u64, news: impl Fn() -> bool) -> bool {
    let mut before = start;
    for _ in 0..YIELDS {
        sys::yield_cpu();
        let now = clock::ticks();
        // Also when there is news by now: the peer had its turn, but so had somebody else.
        let stranger = now.wrapping_sub(before) > clock::us(STRANGER_US);
        if stranger {
            sulk(now);
        }
        if news() {
            return true;
        }
        if stranger {
            return false;
        }
        before = now;
    }
    false
}

fn spin(start: u64, limit: u64, news: impl Fn() -> bool) -> bool {
    let gap = clock::us(STRANGER_US);
    let mut before = start;
    loop {
        let found = (0..8).any(|_| {
            core::hint::spin_loop();
            news()
        });
        let now = clock::ticks();
        if now.wrapping_sub(before) > gap {
            sulk(now);
            return found || news();
        }
        if found || now.wrapping_sub(start) > limit {
            return found;
        }
        before = now;
    }
}

fn sulk(now: u64) {
    SULK_UNTIL.store(now + clock::us(SULK_US), Ordering::Relaxed);
}
