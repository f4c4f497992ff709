//! CPU contention, estimated from yields and gaps in the time counter.
//!
//! A `sched_yield(2)` that returns at once found no other runnable thread on the CPU. A later
//! return means that others ran: threads that wait and answer as this one does (of the fork group
//! or of peers), or foreign threads that use up their time slices. Where foreign threads take a
//! good part of a CPU, a yield costs more than a sleep, so the threads of the fork group do not
//! yield there for a while (`cpu_turns.rs`).

use super::decision::{Moment, YieldOutcome};
use crate::{clock, fork_group, links, thread};
use core::cell::Cell;
use core::sync::atomic::{AtomicU32, Ordering};

/// Average length of a peer's turn at most: the time of one request.
const PEER_TURN_US: u64 = 100;

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

/// The current moment; also recorded for the fork group.
pub(super) fn moment() -> Moment {
    let (cpu, at) = (thread::cpu(), clock::ticks());
    fork_group::note_turn(cpu, at);
    Moment { at, cpu }
}

/// Whether turns of the fork group and of peers explain an absence from `before` until `now`. This
/// thread was runnable all the time, so another thread had the CPU.
fn is_explained(before: Moment, now: u64) -> bool {
    fork_group::note_turn(before.cpu, now);
    let turns = fork_group::turns_on(before.cpu);
    turns.is_some_and(|turns| turns.was_busy_since(before.at)) || {
        let peers = links::peers_on_cpu_between(before.at, now) as u64;
        now.wrapping_sub(before.at) < peers * clock::us(PEER_TURN_US)
    }
}

/// Yields, and estimates what ran on the CPU.
pub(super) fn yield_and_classify() -> YieldOutcome {
    let before = moment();
    saiga_channel::sys::yield_cpu();
    let now = clock::ticks();
    note_turn_begin(now);
    let away = now.wrapping_sub(before.at);
    let outcome = YieldOutcome::of(away, || is_explained(before, now));
    if outcome == YieldOutcome::Foreign
        && let Some(turns) = fork_group::turns_on(before.cpu)
    {
        turns.note_lost_time(before.at, now);
    }
    outcome
}

/// Records that this thread has just got its CPU.
pub(super) fn note_turn_begin(now: u64) {
    TURN_BEGAN.set(now);
}

/// When this thread last got its CPU.
pub(super) fn turn_began() -> u64 {
    TURN_BEGAN.get()
}

/// One of the few threads that may spin without yielding: fewer in a process than CPUs.
#[derive(Debug)]
pub(super) struct Spinner(());

impl Spinner {
    /// `None` when enough threads spin already. A process that has one CPU to itself may have one
    /// spinner, because its peer runs on another CPU.
    pub(super) fn enter() -> Option<Spinner> {
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
