//! What a fork group knows about one CPU: when its threads had turns there, and how much time
//! foreign threads took.
//!
//! The words lie in memory that forked processes share (`fork_group.rs`) and are used for estimates
//! only, so lost updates do not matter. Times are ticks that the caller has read.

use crate::clock;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// A turn this long after the one before is late: a foreign thread's time slice is 3 ms and more, a
/// request of a peer takes some ten microseconds.
const LATE_US: u64 = 1000;

/// Foreign threads may have a quarter of a CPU's time. A CPU-bound program takes a time slice at
/// each yield, which is more; kernel threads, long statements of our own threads and the hypervisor
/// take less.
const FOREIGN_PART: u64 = 4;
/// Time beyond that quarter after which a CPU counts as crowded: two foreign time slices.
const FOREIGN_US: u64 = 5_000;
/// Time after which a crowded CPU is tried again.
const RETRY_US: u64 = 300_000;

/// Time after a change of running threads in which others of the group may want the CPU.
const SHARED_US: u64 = 20_000;

/// The fork group's turns on one CPU, on a cache line of its own. All zero: none yet.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct CpuTurns {
    /// The last turn.
    last: AtomicU64,
    /// The last turn that came long after the one before it.
    late: AtomicU64,
    /// Thread id of the last turn.
    thread: AtomicU32,
    /// The last turn that followed another thread's turn.
    changed: AtomicU64,
    /// Time that foreign threads had beyond their part.
    lost: AtomicU64,
    /// Until when `lost` was counted.
    counted: AtomicU64,
    /// When `lost` last exceeded its limit.
    crowded: AtomicU64,
}

impl CpuTurns {
    /// Records that `thread` of the group runs here at `now`.
    pub(crate) fn note_turn(&self, thread: u32, now: u64) {
        let last = self.last.load(Ordering::Relaxed);
        self.last.store(now, Ordering::Relaxed);
        if now.saturating_sub(last) > clock::us(LATE_US) {
            self.late.store(now, Ordering::Relaxed);
        }
        if self.thread.load(Ordering::Relaxed) != thread {
            self.thread.store(thread, Ordering::Relaxed);
            self.changed.store(now, Ordering::Relaxed);
        }
    }

    /// Whether several threads of the group have recently had turns here.
    pub(crate) fn is_shared(&self, now: u64) -> bool {
        let changed = self.changed.load(Ordering::Relaxed);
        changed != 0 && now.saturating_sub(changed) < clock::us(SHARED_US)
    }

    /// Records that a thread of the group wanted the CPU from `since` to `now` while foreign
    /// threads had it. Several threads may report the same time, which counts once.
    pub(crate) fn note_lost_time(&self, since: u64, now: u64) {
        let most = clock::us(FOREIGN_US);
        let counted = self.counted.swap(now, Ordering::Relaxed);
        let allowed = now.saturating_sub(counted) / FOREIGN_PART;
        let before = self.lost.load(Ordering::Relaxed).saturating_sub(allowed);
        let lost = before + now.saturating_sub(since.max(counted));
        self.lost.store(lost.min(2 * most), Ordering::Relaxed);
        if lost > most {
            self.crowded.store(now, Ordering::Relaxed);
        }
    }

    /// Whether foreign threads had more than their part of the CPU in the last 300 ms, so that a
    /// yield here costs a time slice.
    pub(crate) fn has_foreign_load(&self, now: u64) -> bool {
        let crowded = self.crowded.load(Ordering::Relaxed);
        crowded != 0 && now.saturating_sub(crowded) < clock::us(RETRY_US)
    }

    /// Whether the group had turns here without a long pause since `since`, when it had one.
    pub(crate) fn was_busy_since(&self, since: u64) -> bool {
        self.late.load(Ordering::Relaxed) < since
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: u64 = 1 << 40;
    /// Time slice of a CPU-bound program.
    const SLICE_US: u64 = 3_000;

    /// A CPU after `slices` of a foreign thread, each `pause_us` after the one before, and whether
    /// it is crowded then.
    fn after(slices: u64, pause_us: u64) -> (CpuTurns, bool) {
        let (turns, mut now) = (CpuTurns::default(), START);
        for _ in 0..slices {
            let since = now + clock::us(pause_us);
            now = since + clock::us(SLICE_US);
            // Two waiters report the same time.
            turns.note_lost_time(since, now);
            turns.note_lost_time(since + clock::us(10), now);
        }
        let is_crowded = turns.has_foreign_load(now);
        (turns, is_crowded)
    }

    #[test]
    fn a_foreign_thread_that_stays_is_detected_at_its_second_time_slice() {
        assert!(!after(1, 20).1);
        let (turns, is_crowded) = after(2, 20);
        assert!(is_crowded && after(10, SLICE_US).1);
        let later = START + clock::us(2 * RETRY_US);
        assert!(!turns.has_foreign_load(later), "it may have ended");
    }

    #[test]
    fn rare_turns_of_other_threads_are_not_contention() {
        assert!(!after(1000, 4 * SLICE_US).1);
        let fresh = CpuTurns::default();
        assert!(
            !fresh.has_foreign_load(START),
            "no turn was ever lost there"
        );
    }

    #[test]
    fn a_cpu_is_shared_while_turns_change_hands_on_it() {
        let turns = CpuTurns::default();
        turns.note_turn(1, START);
        turns.note_turn(1, START + clock::us(SHARED_US));
        let alone = START + clock::us(SHARED_US);
        assert!(!turns.is_shared(alone), "one thread alone does not share");
        turns.note_turn(2, alone);
        assert!(turns.is_shared(alone + 1));
        assert!(!turns.is_shared(alone + clock::us(SHARED_US)));
    }

    #[test]
    fn a_pause_of_the_group_is_noticed() {
        let turns = CpuTurns::default();
        turns.note_turn(1, START);
        turns.note_turn(2, START + clock::us(LATE_US / 2));
        assert!(turns.was_busy_since(START + 1));
        turns.note_turn(1, START + clock::us(3 * LATE_US));
        assert!(
            !turns.was_busy_since(START + 1),
            "a foreign thread may have run"
        );
    }
}
