//! The wait policy: spin, yield, or sleep at once.
//!
//! The time of the answer is not known, so the rules use what a waiter can observe
//! (docs/waiting.md): where the peer ran, the cost of a wake-up, how long a yield took (at once: no
//! other thread wants this CPU; soon: a thread of our own kind ran; late: a foreign thread ran),
//! and whether such waits were recently worthwhile.

use crate::contention::{self, OnCpu, YieldOutcome};
use crate::history::{self, AttemptKind};
use crate::{clock, fork_group, rt, wake_cost};
use saiga_channel::segment::Segment;

/// Spinning for less than this never pays for a sleep.
const LEAST_SPIN_US: u64 = 10;
/// Interval of a spinner's yields.
const YIELD_EVERY_US: u64 = 4;
/// Turns that other threads may take before the waiter sleeps.
const MOST_TURNS: u32 = 2;

/// Polls `has_event` for a short while without sleeping. `peer_cpu` is the CPU where the peer ran
/// when it last woke us; `segment` is shared with the peer. True when there is an event.
pub(crate) fn wait_awake(
    peer_cpu: u32,
    segment: Option<&Segment>,
    has_event: impl Fn() -> bool,
) -> bool {
    let start = OnCpu::now();
    if let Some(segment) = segment {
        segment.note_turn(start.at);
    }
    let found = attempt(start, peer_cpu, &has_event);
    history::count(found);
    found
}

fn attempt(start: OnCpu, peer_cpu: u32, has_event: &impl Fn() -> bool) -> bool {
    let limit = spin_limit();
    if limit == 0 || cfg!(feature = "without-spin") {
        return has_event();
    }
    if peer_cpu == start.cpu {
        // The peer cannot answer while we spin, and beside a foreign thread a yield costs a time
        // slice.
        if fork_group::has_foreign_load(start.cpu, start.at) {
            return has_event();
        }
        return history::try_if_worthwhile(AttemptKind::Yield, || yield_turns(has_event))
            .unwrap_or_else(has_event);
    }
    let spun = history::try_if_worthwhile(AttemptKind::Spin, || {
        if fork_group::has_foreign_load(start.cpu, start.at) {
            // A yield would cost a time slice here.
            contention::Spinner::enter().is_some_and(|_one| spin(limit, has_event))
        } else {
            spin_with_yields(start, limit, has_event)
        }
    });
    spun.unwrap_or_else(has_event)
}

/// About the cost of a wake-up: then waiting costs at most twice what it would with foresight.
fn spin_limit() -> u64 {
    let most = clock::us(rt::spin_us());
    let least = clock::us(LEAST_SPIN_US).min(most);
    wake_cost::cost().map_or(most, |cost| cost.clamp(least, most))
}

/// Gives a peer on the same CPU the chance to answer.
fn yield_turns(has_event: &impl Fn() -> bool) -> bool {
    for _ in 0..MOST_TURNS {
        let outcome = contention::yield_and_classify();
        if has_event() {
            return true;
        }
        if outcome == YieldOutcome::Foreign {
            return false;
        }
    }
    false
}

/// Spins while no other thread wants the CPU. Yields every few microseconds, and gives up after a
/// few turns of other threads.
fn spin_with_yields(start: OnCpu, limit: u64, has_event: &impl Fn() -> bool) -> bool {
    if start.is_overdue() && contention::yield_and_classify() == YieldOutcome::Foreign {
        return has_event();
    }
    let mut turns = 0;
    loop {
        if spin(clock::us(YIELD_EVERY_US), has_event) {
            return true;
        }
        let now = clock::ticks();
        if now.wrapping_sub(start.at) > limit {
            return false;
        }
        match contention::yield_and_classify() {
            YieldOutcome::Alone => {}
            YieldOutcome::Brief if turns + 1 < MOST_TURNS => turns += 1,
            YieldOutcome::Brief | YieldOutcome::Foreign => return has_event(),
        }
    }
}

fn spin(limit: u64, has_event: &impl Fn() -> bool) -> bool {
    let start = OnCpu::now().at;
    loop {
        let found = (0..8).any(|_| {
            core::hint::spin_loop();
            has_event()
        });
        if found || clock::ticks().wrapping_sub(start) > limit {
            return found;
        }
    }
}
