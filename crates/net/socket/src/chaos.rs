//! Fault injection for tests: `SAIGA_CHAOS=SEED` makes the library upgrade after a random number of
//! messages, end rings at random calls, release their memory, and fail to get memory or room in
//! epoll sets.
//!
//! Each fault could happen anyway (a freeze by either side, a recall, an idle second, a lack of
//! memory), only far less often, so data must survive it. Without the feature `chaos`, which no
//! installed build has, this module compiles to nothing.
//!
//! `SAIGA_CHAOS=SEED,unseen` injects no recalls and more of the other faults: recalled bytes return
//! only at the peer's next call, all other faults must be invisible to the application.

use crate::chan::Chan;
use crate::idle;
use crate::sock::Socket;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use saiga_channel::direction::RxMode;
use saiga_channel::sys;
use saiga_status::Reason;

/// State of the generator; 0: off.
static STATE: AtomicU64 = AtomicU64::new(0);
/// Average number of calls between two faults.
static PERIOD: AtomicU32 = AtomicU32::new(100);
/// Whether rings are recalled, too.
static RECALLS: AtomicBool = AtomicBool::new(true);

/// An odd multiplier spreads small numbers (2^64 divided by the golden ratio).
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;
/// Messages before which a connection that asks for no evidence is upgraded.
const LATEST: u32 = 64;

/// Starts the generator from the environment variable; ignores values that are not valid.
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

/// Gives a forked child a sequence of its own, different from its parent's and its siblings'.
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

/// A step of xorshift64*. Races between threads only add randomness.
fn dice() -> u32 {
    let mut x = STATE.load(Ordering::Relaxed);
    x ^= x >> 12;
    x ^= x << 25;
    x ^= x >> 27;
    STATE.store(x | 1, Ordering::Relaxed);
    u32::try_from(x.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33).unwrap_or(0)
}

/// Writes the reason of a reset to stderr. A trial whose connection is reset then says why: such
/// faults may be too rare to be seen twice.
pub(crate) fn note_reset(reason: Reason) {
    if is_on() {
        for part in ["libsaiga: reset: ", reason.name(), "\n"] {
            let _ = sys::write(libc::STDERR_FILENO, part.as_bytes());
        }
    }
}

/// Messages before a connection is upgraded, where the settings ask for `asked`.
pub(crate) fn evidence(asked: u32) -> u32 {
    if is_on() && asked == 0 {
        dice() % LATEST
    } else {
        asked
    }
}

/// Whether a ring's request for memory fails; one time in sixteen.
pub(crate) fn starves() -> bool {
    is_on() && dice().is_multiple_of(16)
}

/// Whether a registration in an epoll set fails for lack of room; one time in four.
pub(crate) fn refuses_watches() -> bool {
    is_on() && dice().is_multiple_of(4)
}

/// Ends a ring of the channel at times, and releases its memory more often.
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
    let reads_ring = chan.own().rx_mode.peek() == RxMode::Ring;
    if reads_ring && !lock.nested && !chan.rx_ring().frozen() {
        chan.recall_rx();
    }
}
