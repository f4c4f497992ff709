//! Fault injection for tests: `SAIGA_CHAOS=SEED` makes the library end rings at random calls,
//! give their memory back, and get none.
//!
//! Everything is something that could happen anyway (a freeze by either side, a recall, a quiet
//! second, a full memory), only far more often, so data must survive it. Off, it costs one
//! relaxed load.

use crate::chan::{Chan, rx};
use crate::idle;
use crate::sock::Socket;
use core::sync::atomic::{AtomicU64, Ordering};

/// State of the generator; 0: off.
static STATE: AtomicU64 = AtomicU64::new(0);

/// Starts with the seed of the environment.
pub(crate) fn start(seed: u64) {
    // An odd multiplier spreads small seeds; never 0.
    STATE.store(
        seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1,
        Ordering::Relaxed,
    );
}

pub(crate) fn is_on() -> bool {
    STATE.load(Ordering::Relaxed) != 0
}

/// A step of xorshift64*: races between threads only add to the chaos.
fn dice() -> u64 {
    let mut x = STATE.load(Ordering::Relaxed);
    x ^= x >> 12;
    x ^= x << 25;
    x ^= x >> 27;
    STATE.store(x | 1, Ordering::Relaxed);
    x.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33
}

/// Whether a ring that wants memory gets none; one time in sixteen.
pub(crate) fn starves() -> bool {
    is_on() && dice().is_multiple_of(16)
}

/// Ends a ring of the channel, one call in a hundred or so; gives its memory back more often.
pub(crate) fn strike(socket: &'static Socket) {
    let Some(chan) = Chan::of(socket) else { return };
    match dice() % 400 {
        0 | 1 => chan.freeze_tx(),
        2 => chan.freeze_rx(),
        3 => {
            let Some(lock) = chan.lock_rx(socket) else {
                return;
            };
            let reads_ring = chan.ours().rx_mode.load(Ordering::Relaxed) == rx::RING;
            if reads_ring && !lock.nested && !chan.rx_ring().frozen() {
                chan.recall_rx();
            }
        }
        4..40 => idle::give_back(socket, &chan),
        _ => {}
    }
}
