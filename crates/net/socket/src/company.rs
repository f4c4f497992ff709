//! Who else wants our CPU, as far as yields and gaps in the time counter tell.
//!
//! A yield that returns at once was alone on the CPU. One that returns later let
//! others run: friends, who wait and answer as we do, or a stranger who uses up its
//! time slice. Where strangers take a good part of a CPU, yielding costs more than
//! sleeping, so for a while the threads of the family do not yield there (`family.rs`).

use crate::{clock, family, links, thread};
use core::cell::Cell;
use core::sync::atomic::{AtomicU32, Ordering};

/// A longer absence needs an explanation: somebody ran here.
const SUSPICIOUS_US: u64 = 300;
/// Peers' turns are no longer than this on the average: a request's worth.
const FRIENDLY_TURN_US: u64 = 100;
/// A yield back within this let nobody run.
const ALONE_NS: u64 = 1500;

/// Whoever is answered again and again without waiting leaves the CPU to others of its family, if
/// there are any, after so long.
const LONG_TURN_US: u64 = 100;

thread_local! {
    /// When this thread got its CPU, as far as it knows.
    static TURN_BEGAN: Cell<u64> = const { Cell::new(0) };
}

static SPINNERS: AtomicU32 = AtomicU32::new(0);
static CPUS: AtomicU32 = AtomicU32::new(0);

/// Notes how many CPUs the process may use.
pub(crate) fn set_cpus(n: u32) {
    CPUS.store(n, Ordering::Relaxed);
}

/// A forked child has no spinners.
pub(crate) fn forked() {
    if SPINNERS.load(Ordering::Relaxed) != 0 {
        SPINNERS.store(0, Ordering::Relaxed);
    }
}

/// Who had the CPU while we did not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Turn {
    /// Nobody else wanted it.
    Nobody,
    /// Some who soon let go of it.
    Friend,
    /// Somebody who used it up.
    Stranger,
}

/// A moment at which this thread had a CPU.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Presence {
    pub(crate) at: u64,
    pub(crate) cpu: u32,
}

impl Presence {
    /// Now; the family hears of it.
    pub(crate) fn now() -> Presence {
        let (cpu, at) = (thread::cpu(), clock::ticks());
        family::take_turn(cpu, at);
        Presence { at, cpu }
    }

    /// Whether turns of our family and of our peers explain that we were away until `now`. We
    /// wanted the CPU all the time, so somebody had it.
    fn is_explained(&self, now: u64) -> bool {
        family::take_turn(self.cpu, now);
        family::was_busy_since(self.cpu, self.at) || {
            let peers = links::peers_with_turns(self.at, now) as u64;
            now.wrapping_sub(self.at) < peers * clock::us(FRIENDLY_TURN_US)
        }
    }

    /// Whether this thread has had its CPU for long, and others of its family may want it.
    pub(crate) fn is_overdue(&self) -> bool {
        let turn = self.at.wrapping_sub(TURN_BEGAN.get());
        !cfg!(feature = "without-turns")
            && turn > clock::us(LONG_TURN_US)
            && family::is_shared(self.cpu, self.at)
    }
}

/// Yields and tells who took the turn.
pub(crate) fn offer_cpu() -> Turn {
    let before = Presence::now();
    saiga_channel::sys::yield_cpu();
    let now = clock::ticks();
    turn_begins(now);
    let away = now.wrapping_sub(before.at);
    if clock::to_ns(away) < ALONE_NS {
        Turn::Nobody
    } else if away < clock::us(SUSPICIOUS_US)
        || before.is_explained(now)
        || cfg!(feature = "without-strangers")
    {
        Turn::Friend
    } else {
        family::lose_turn(before.cpu, before.at, now);
        Turn::Stranger
    }
}

/// This thread gets its CPU.
pub(crate) fn turn_begins(now: u64) {
    TURN_BEGAN.set(now);
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
        let before = thread::bump(&SPINNERS);
        (before < most).then_some(spinner)
    }
}

impl Drop for Spinner {
    fn drop(&mut self) {
        thread::drop_one(&SPINNERS);
    }
}
