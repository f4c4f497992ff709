//! Turns that threads of our family had, CPU by CPU.
//!
//! A family is a process and what it forks without exec: PostgreSQL's backends are
//! one. Its counters lie in memory that a fork shares. They tell a waiter who comes
//! back late to its CPU whether its own kind had turns there meanwhile. They only
//! ever grow, so a killed member leaves nothing to clean up, and nobody reads them
//! for anything but a guess: lost updates do not matter.

#![expect(unsafe_code, reason = "memory that forked processes share")]

use core::sync::atomic::{AtomicPtr, AtomicU32, Ordering};
use saiga_channel::sys;

/// CPUs that are told apart; beyond that two share a counter.
const CPUS: usize = 256;

/// The counter of one CPU, on a cache line of its own.
#[repr(align(128))]
struct Line {
    turns: AtomicU32,
}

static LINES: AtomicPtr<Line> = AtomicPtr::new(core::ptr::null_mut());

/// Begins a family. Without memory for it nobody ever had a turn.
pub(crate) fn begin() {
    if let Ok(at) = sys::map_shared(CPUS * size_of::<Line>()) {
        LINES.store(at.cast(), Ordering::Release);
    }
}

fn line(cpu: u32) -> Option<&'static Line> {
    let lines = LINES.load(Ordering::Acquire);
    if lines.is_null() {
        return None;
    }
    // SAFETY: the mapping holds CPUS zeroed lines, valid for any content, and is never unmapped.
    unsafe { lines.add(cpu as usize % CPUS).as_ref() }
}

/// A member of the family runs on `cpu`.
pub(crate) fn take_turn(cpu: u32) {
    if let Some(line) = line(cpu) {
        let turns = line.turns.load(Ordering::Relaxed);
        line.turns.store(turns.wrapping_add(1), Ordering::Relaxed);
    }
}

/// Turns that the family had on `cpu` so far.
pub(crate) fn turns(cpu: u32) -> u32 {
    line(cpu).map_or(0, |l| l.turns.load(Ordering::Relaxed))
}
