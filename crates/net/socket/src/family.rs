//! When threads of our family had a turn, CPU by CPU.
//!
//! A family is a process and what it forks without exec: PostgreSQL's backends are
//! one. It keeps the times of its turns in memory that a fork shares. They tell a
//! waiter who comes back late to its CPU whether its own kind had turns there
//! meanwhile. A killed member leaves nothing to clean up, and nobody reads them for
//! anything but a guess: lost updates do not matter.

#![expect(unsafe_code, reason = "memory that forked processes share")]

use crate::clock;
use core::sync::atomic::{AtomicPtr, AtomicU64, Ordering};
use saiga_channel::sys;

/// CPUs that are told apart; beyond that two share a line.
const CPUS: usize = 256;
/// A turn so long after the one before comes late: a stranger's time slice is 3 ms and more, a
/// request of a friend takes some ten microseconds.
const LATE_US: u64 = 1000;

/// What the family did on one CPU, on a cache line of its own.
#[repr(align(128))]
struct Line {
    /// When the last one was (ticks).
    last: AtomicU64,
    /// When the last one was that came long after the one before it.
    late: AtomicU64,
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
    // SAFETY: the mapping holds CPUS lines and is never unmapped.
    let line = unsafe { lines.add(cpu as usize % CPUS) };
    // SAFETY: the line lies in it, zeroed at first and valid for any content.
    unsafe { line.as_ref() }
}

/// A member of the family runs on `cpu` at `now` (ticks).
pub(crate) fn take_turn(cpu: u32, now: u64) {
    let Some(line) = line(cpu) else { return };
    let last = line.last.load(Ordering::Relaxed);
    line.last.store(now, Ordering::Relaxed);
    if now.saturating_sub(last) > clock::us(LATE_US) {
        line.late.store(now, Ordering::Relaxed);
    }
}

/// Whether the family had turns on `cpu` again and again since `since` (ticks), at which it had
/// one.
pub(crate) fn was_busy_since(cpu: u32, since: u64) -> bool {
    line(cpu).is_some_and(|l| l.late.load(Ordering::Relaxed) < since)
}
