//! Fault injection for tests: `SAIGA_CHAOS=SEED` makes the library upgrade at random messages,
//! end rings at random calls, give their memory back, and get none, nor room in epoll sets.
//!
//! Everything is something that could happen anyway (a freeze by either side, a recall, a quiet
//! second, a full memory), only far more often, so data must survive it. Without the feature
//! `chaos`, which nothing installed has, it is compiled to nothing.
//!
//! `SAIGA_CHAOS=SEED,unseen` leaves recalls out and strikes more often: what is recalled comes
//! back at the peer's next call, and all else must not show at all.

use crate::chan::{Chan, rx};
use crate::idle;
use crate::sock::Socket;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

/// State of the generator; 0: off.
static STATE: AtomicU64 = AtomicU64::new(0);
/// Calls between two strikes, on the average.
static PERIOD: AtomicU32 = AtomicU32::new(100);
/// Rings are recalled, too.
static RECALLS: AtomicBool = AtomicBool::new(true);

/// An odd multiplier spreads small numbers (2^64 divided by the golden ratio).
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;
/// Messages before which a connection that asks for no evidence is upgraded.
const LATEST: u32 = 64;

/// Starts with what the environment says; nonsense starts nothing.
pub(crate) fn start(text: &str) {
    let (seed, unseen) = match text.strip_suffix(",unseen") {
        Some(seed) => (seed, true),
        None => (text, false),
    };
    let Ok(seed) = seed.parse::<u64>() else {
        return;
    };
    if unseen {
        RECALLS.store(false, Ordering::Relaxed);
        PERIOD.store(8 << (seed % 5), Ordering::Relaxed);
    }
    STATE.store(seed.wrapping_mul(SPREAD) | 1, Ordering::Relaxed); // Never 0.
}

/// A forked child goes its own way, not its parent's and not that of the child before it.
pub(crate) fn forked(forks: u32) {
    if is_on() {
        let state = STATE.load(Ordering::Relaxed);
        let other = state ^ u64::from(forks).wrapping_mul(SPREAD);
        STATE.store(other | 1, Ordering::Relaxed);
    }
}

pub(crate) fn is_on() -> bool {
    cfg!(feature = "chaos") && STATE.load(Ordering::Relaxed) != 0
}

/// A step of xorshift64*: races between threads only add to the chaos.
fn dice() -> u32 {
    let mut x = STATE.load(Ordering::Relaxed);
    x ^= x >> 12;
    x ^= x << 25;
    x ^= x >> 27;
    STATE.store(x | 1, Ordering::Relaxed);
    u32::try_from(x.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33).unwrap_or(0)
}

/// Messages that a connection must show before it is upgraded, where the settings ask for `asked`.
pub(crate) fn evidence(asked: u32) -> u32 {
    if is_on() && asked == 0 {
        dice() % LATEST
    } else {
        asked
    }
}

/// Whether a ring that wants memory gets none; one time in sixteen.
pub(crate) fn starves() -> bool {
    is_on() && dice().is_multiple_of(16)
}

/// Whether the kernel has no room for another registration in an epoll set; one time in four.
pub(crate) fn refuses_watches() -> bool {
    is_on() && dice().is_multiple_of(4)
}

/// Ends a ring of the channel now and then; gives its memory back more often.
pub(crate) fn strike(socket: &'static Socket) {
    let Some(chan) = Chan::of(socket) else { return };
    if dice().is_multiple_of(11) {
        idle::give_back(socket, &chan);
    }
    if !dice().is_multiple_of(PERIOD.load(Ordering::Relaxed)) {
        return;
    }
    match dice() % 4 {
        0 | 1 => chan.freeze_tx(),
        2 => chan.freeze_rx(),
        _ if RECALLS.load(Ordering::Relaxed) => recall(socket, &chan),
        _ => {
            chan.freeze_tx();
            chan.freeze_rx();
        }
    }
}

fn recall(socket: &'static Socket, chan: &Chan) {
    let Some(lock) = chan.lock_rx(socket) else {
        return;
    };
    let reads_ring = chan.own().rx_mode.load(Ordering::Relaxed) == rx::RING;
    if reads_ring && !lock.nested && !chan.rx_ring().frozen() {
        chan.recall_rx();
    }
}
