//! The cost of a wake-up on this machine, learned from the bells that end our sleeps.
//!
//! A thread that rings a bell notes the time and its CPU beside the bell; the woken thread compares
//! them with its own clock. Both values are hints from a process that may lie: a sample can only
//! make a spin shorter than the settings allow.

use super::contention;
use crate::{clock, fork_group, rt, thread};
use core::sync::atomic::{AtomicU64, Ordering};
use saiga_channel::wait_slot::WaitSlot;

/// A longer sample does not measure a wake-up: the CPU was busy with another thread.
const ABSURD_US: u64 = 1000;

/// Ticks from a ring on one CPU to the woken thread running on another: about the lower quartile,
/// which leaves out the waits for a busy CPU. 0: not known.
static COST: AtomicU64 = AtomicU64::new(0);

/// Ends an announced sleep on `wait_slot`.
pub(crate) fn end_sleep(wait_slot: &WaitSlot) {
    Waking::now().end_sleep(wait_slot);
}

/// The moment at which a thread has woken.
#[derive(Debug)]
pub(crate) struct Waking {
    here: u32,
    now: u64,
}

impl Waking {
    pub(crate) fn now() -> Waking {
        let (here, now) = (thread::cpu(), clock::ticks());
        fork_group::note_turn(here, now);
        contention::note_turn_begin(now);
        Waking { here, now }
    }

    /// Ends an announced sleep on `wait_slot` and learns from the ring that ended it.
    pub(crate) fn end_sleep(&self, wait_slot: &WaitSlot) {
        if let Some((at, cpu)) = wait_slot.rung()
            && cpu != self.here
        {
            learn(self.now.wrapping_sub(at));
        }
        wait_slot.wake();
    }
}

fn learn(sample: u64) {
    if sample == 0 || sample > clock::us(ABSURD_US) {
        return;
    }
    let cost = follow(COST.load(Ordering::Relaxed), sample);
    COST.store(cost, Ordering::Relaxed);
    let ns = u32::try_from(clock::to_ns(cost)).unwrap_or(u32::MAX);
    rt::header().wake_cost_ns.store(ns, Ordering::Relaxed);
}

/// Follows the lower quartile of the samples: one quick step down weighs as much as three slow
/// steps up.
fn follow(cost: u64, sample: u64) -> u64 {
    match cost {
        0 => sample,
        _ if sample < cost => cost - (cost - sample).div_ceil(8),
        _ => cost + (sample - cost).min(cost).div_ceil(24),
    }
}

/// The cost of a wake-up in ticks, once known.
pub(crate) fn cost() -> Option<u64> {
    Some(COST.load(Ordering::Relaxed)).filter(|&c| c != 0 && !cfg!(feature = "without-wakeups"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The estimate after many samples, of which `low` in ten are 10,000 and the rest 90,000.
    fn after_many(low: u64) -> u64 {
        (0..10_000).fold(0, |cost, i| {
            let sample = if i * 7 % 10 < low { 10_000 } else { 90_000 };
            follow(cost, sample)
        })
    }

    #[test]
    fn the_lower_quartile_is_followed() {
        assert_eq!((after_many(10), after_many(0)), (10_000, 90_000));
        assert!(after_many(6) < 35_000, "waits for a busy CPU are left out");
        assert!(after_many(1) > 55_000, "rare short samples do not count");
    }
}
