//! CPU contention, estimated from yields and gaps in the time counter.
//!
//! A `sched_yield(2)` that returns at once found no other runnable thread on the CPU. A later
//! return means that others ran: threads that wait and answer as this one does (of the fork group
//! or of peers), or foreign threads that use up their time slices. Where foreign threads take a
//! good part of a CPU, a yield costs more than a sleep, so the threads of the fork group do not
//! yield there for a while (`fork_group.rs`).

use crate::{clock, fork_group, links, thread};
use core::cell::Cell;
use core::sync::atomic::{AtomicU32, Ordering};

/// A longer absence counts as foreign unless turns of the fork group or of peers explain it.
const UNEXPLAINED_US: u64 = 300;
/// Average length of a peer's turn at most: the time of one request.
const PEER_TURN_US: u64 = 100;
/// A yield that returns within this time let no other thread run.
const ALONE_NS: u64 = 1500;

/// A thread that is answered again and again without waiting yields to other threads of its fork
/// group, if there are any, after this time.
const LONG_TURN_US: u64 = 100;

thread_local! {
    /// When this thread last got its CPU (ticks), as far as the library has seen.
    static TURN_BEGAN: Cell<u64> = const { Cell::new(0) };
}

static SPINNERS: AtomicU32 = AtomicU32::new(0);
static CPUS: AtomicU32 = AtomicU32::new(0);

/// Sets the number of CPUs that the process may use.
pub(crate) fn set_cpus(n: u32) {
    CPUS.store(n, Ordering::Relaxed);
}

/// Clears the count in a forked child, which has no spinners.
pub(crate) fn forked() {
    if SPINNERS.load(Ordering::Relaxed) != 0 {
        SPINNERS.store(0, Ordering::Relaxed);
    }
}

/// What ran on the CPU during a yield.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum YieldOutcome {
    Alone,
    /// Threads that gave the CPU back soon.
    Brief,
    /// A thread that used up its time slice.
    Foreign,
}

/// A moment at which this thread had a CPU: time in ticks, and the CPU's number.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OnCpu {
    pub(crate) at: u64,
    pub(crate) cpu: u32,
}

impl OnCpu {
    /// The current moment; also recorded for the fork group.
    pub(crate) fn now() -> OnCpu {
        let (cpu, at) = (thread::cpu(), clock::ticks());
        fork_group::note_turn(cpu, at);
        OnCpu { at, cpu }
    }

    /// Whether turns of the fork group and of peers explain an absence until `now`. This thread was
    /// runnable all the time, so another thread had the CPU.
    fn is_explained(&self, now: u64) -> bool {
        fork_group::note_turn(self.cpu, now);
        fork_group::was_busy_since(self.cpu, self.at) || {
            let peers = links::peers_on_cpu_between(self.at, now) as u64;
            now.wrapping_sub(self.at) < peers * clock::us(PEER_TURN_US)
        }
    }

    /// Whether this thread has had its CPU for long while others of its fork group may want it.
    pub(crate) fn is_overdue(&self) -> bool {
        let turn = self.at.wrapping_sub(TURN_BEGAN.get());
        !cfg!(feature = "without-turns")
            && turn > clock::us(LONG_TURN_US)
            && fork_group::is_shared(self.cpu, self.at)
    }
}

/// Yields, and estimates what ran on the CPU.
pub(crate) fn yield_and_classify() -> YieldOutcome {
    let before = OnCpu::now();
    saiga_channel::sys::yield_cpu();
    let now = clock::ticks();
    note_turn_begin(now);
    let away = now.wrapping_sub(before.at);
    if clock::to_ns(away) < ALONE_NS {
        YieldOutcome::Alone
    } else if away < clock::us(UNEXPLAINED_US)
        || before.is_explained(now)
        || cfg!(feature = "without-strangers")
    {
        YieldOutcome::Brief
    } else {
        fork_group::note_lost_time(before.cpu, before.at, now);
        YieldOutcome::Foreign
    }
}

/// Records that this thread has just got its CPU.
pub(crate) fn note_turn_begin(now: u64) {
    TURN_BEGAN.set(now);
}

/// One of the few threads that may spin without yielding: fewer in a process than CPUs.
#[derive(Debug)]
pub(crate) struct Spinner(());

impl Spinner {
    /// `None` when enough threads spin already. A process that has one CPU to itself may have one
    /// spinner, because its peer runs on another CPU.
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
