//! The wait policy: spin, yield, or sleep at once.
//!
//! The time of the answer is not known, so the rules use what a waiter can observe
//! (docs/waiting.md): where the peer ran, the cost of a wake-up, how long a yield took (at once: no
//! other thread wants this CPU; soon: a thread of our own kind ran; late: a foreign thread ran),
//! and whether such waits were recently worthwhile. `decision.rs` has the rules, as values without
//! a clock; this file gives them what this machine shows and does what they say.

pub(crate) mod contention;
pub(crate) mod cpu_turns;
mod decision;
mod history;
#[cfg(test)]
mod simulation;
pub(crate) mod wake_cost;

use crate::{clock, fork_group, rt};
use contention::Spinner;
use core::cell::Cell;
use core::sync::atomic::Ordering;
use decision::{Action, Wait, Waiter};
use history::Histories;
use saiga_channel::segment::Segment;

/// Spinning for less than this never pays for a sleep.
const LEAST_SPIN_US: u64 = 10;
/// Waits that a thread counts before it adds them to the process's counters, which all threads
/// share.
const BATCH: u32 = 64;

thread_local! {
    static HISTORIES: Cell<Histories> = const { Cell::new(Histories::NEW) };
    static UNCOUNTED: Cell<u32> = const { Cell::new(0) };
}

/// Polls `has_event` for a short while without sleeping. `peer_cpu` is the CPU where the peer ran
/// when it last woke us; `segment` is shared with the peer. True when there is an event.
pub(crate) fn wait_awake(
    peer_cpu: u32,
    segment: Option<&Segment>,
    has_event: impl Fn() -> bool,
) -> bool {
    let now = contention::moment();
    if let Some(segment) = segment {
        segment.note_turn(now.at);
    }
    let waiter = Waiter {
        now,
        turn_began: contention::turn_began(),
        peer_cpu,
        limit: spin_limit(),
        turns: fork_group::turns_on(now.cpu),
    };
    let mut wait = update(|histories| Wait::begin(&waiter, histories));
    let found = carry_out(&mut wait, &has_event);
    update(|histories| wait.end(found, histories));
    count(found);
    found
}

/// Changes the thread's histories. A change by a signal handler that interrupts this one is lost.
fn update<T>(change: impl FnOnce(&mut Histories) -> T) -> T {
    let mut histories = HISTORIES.get();
    let result = change(&mut histories);
    HISTORIES.set(histories);
    result
}

/// Does what the wait says until it finds an event or must sleep. True: there is an event.
fn carry_out(wait: &mut Wait, has_event: &impl Fn() -> bool) -> bool {
    loop {
        let found = match wait.next() {
            Action::Spin(limit) => spin(limit, has_event),
            Action::SpinAmongFew(limit) => {
                Spinner::enter().is_some_and(|_one| spin(limit, has_event))
            }
            Action::Yield => {
                let outcome = contention::yield_and_classify();
                if has_event() {
                    return true;
                }
                wait.yielded(outcome);
                continue;
            }
            Action::Check => return has_event(),
            Action::Sleep => return false,
        };
        if found {
            return true;
        }
        wait.spun(clock::ticks());
    }
}

/// About the cost of a wake-up: then waiting costs at most twice what it would with foresight.
fn spin_limit() -> u64 {
    let most = clock::us(rt::spin_us());
    let least = clock::us(LEAST_SPIN_US).min(most);
    wake_cost::cost().map_or(most, |cost| cost.clamp(least, most))
}

fn spin(limit: u64, has_event: &impl Fn() -> bool) -> bool {
    let start = contention::moment().at;
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

/// Counts a wait that ended without a sleep (`found`), or one that must sleep now.
fn count(found: bool) {
    let n = UNCOUNTED.get() + u32::from(found);
    if found && n < BATCH {
        return UNCOUNTED.set(n);
    }
    UNCOUNTED.set(0);
    let header = rt::header();
    header.spins.fetch_add(u64::from(n), Ordering::Relaxed);
    let slept = u64::from(!found);
    header.sleeps.fetch_add(slept, Ordering::Relaxed);
}
