//! Who else wants our CPU, as far as yields and gaps in the time counter tell.
//!
//! A yield that returns at once was alone on the CPU; one that returns within a
//! millisecond let threads run that wait and answer as we do; one that takes longer
//! met a stranger who uses up its time slice. With strangers about, yielding costs
//! more than sleeping, so for a while nobody in the process does.

use crate::clock;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use saiga_channel::sys;

/// A gap in a spin longer than this means that another program ran here.
const STRANGER_GAP_US: u64 = 300;
/// A yield that takes longer met one; friends' turns add up to less.
const STRANGER_TURN_NS: u64 = 1_500_000;
/// A yield back within this let nobody run.
const ALONE_NS: u64 = 1_500;
/// How long nobody spins or yields after a stranger was seen.
const SULK_US: u64 = 20_000;
/// How long nobody yields while spinning after a stranger was met by a yield.
const WARY_US: u64 = 1_000_000;

/// Counter values until which the process sulks, and is wary of yields.
static SULK_UNTIL: AtomicU64 = AtomicU64::new(0);
static WARY_UNTIL: AtomicU64 = AtomicU64::new(0);
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

/// Who had a turn while we yielded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Turn {
    /// Nobody else wanted the CPU.
    Nobody,
    /// Somebody who soon let go of it.
    Friend,
    /// Somebody who used it up.
    Stranger,
}

/// Yields and tells who took the turn.
pub(crate) fn offer_cpu() -> Turn {
    let before = clock::ticks();
    sys::yield_cpu();
    let now = clock::ticks();
    let ns = clock::to_ns(now.wrapping_sub(before));
    if ns > STRANGER_TURN_NS {
        sulk(now);
        WARY_UNTIL.store(now + clock::us(WARY_US), Ordering::Relaxed);
        Turn::Stranger
    } else if ns > ALONE_NS {
        Turn::Friend
    } else {
        Turn::Nobody
    }
}

/// Looks for a stranger's turn between two readings of the counter while spinning.
pub(crate) fn note_gap(before: u64, now: u64) -> bool {
    let stranger = now.wrapping_sub(before) > clock::us(STRANGER_GAP_US);
    if stranger {
        sulk(now);
    }
    stranger
}

fn sulk(now: u64) {
    SULK_UNTIL.store(now + clock::us(SULK_US), Ordering::Relaxed);
}

/// Whether a stranger has just been seen: then a spin or a yield only feeds it.
pub(crate) fn sulking(now: u64) -> bool {
    now < SULK_UNTIL.load(Ordering::Relaxed)
}

/// Whether a yield has met a stranger of late.
pub(crate) fn strangers_about(now: u64) -> bool {
    now < WARY_UNTIL.load(Ordering::Relaxed)
}

/// One of the few that may spin without offering the CPU: fewer in a process than CPUs.
#[derive(Debug)]
pub(crate) struct Spinner(());

impl Spinner {
    /// `None` when enough spin already. A process that has one CPU to itself may have one
    /// spinner, for its peer runs elsewhere.
    pub(crate) fn enter() -> Option<Spinner> {
        let most = CPUS.load(Ordering::Relaxed).saturating_sub(1).max(1);
        let spinner = Spinner(());
        let before = SPINNERS.fetch_add(1, Ordering::Relaxed);
        (before < most).then_some(spinner)
    }
}

impl Drop for Spinner {
    fn drop(&mut self) {
        SPINNERS.fetch_sub(1, Ordering::Relaxed);
    }
}
