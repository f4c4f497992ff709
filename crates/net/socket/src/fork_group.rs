//! When threads of the fork group ran, CPU by CPU, and how often the group has changed the flags of
//! connections that several of its processes may have open.
//!
//! A fork group is a process and all processes forked from it without exec, for example
//! PostgreSQL's backends. The times are in memory that forks share. They tell a waiter that gets
//! its CPU back late whether threads of its own group ran there. A killed process leaves nothing
//! to clean up. The times are used for estimates only, so lost updates do not matter.

#![expect(unsafe_code, reason = "memory that forked processes share")]

use crate::{clock, thread};
use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering};
use saiga_channel::sys;

/// CPUs that have a line of their own; beyond that two CPUs share a line.
const CPUS: usize = 256;
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

/// The fork group's turns on one CPU, on a cache line of its own. Times are in ticks.
#[repr(align(128))]
struct Line {
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

/// The memory that all processes of the group share.
#[repr(C)]
struct Shared {
    lines: [Line; CPUS],
    /// Changes of O_NONBLOCK on connections that another process may have open, too.
    flag_changes: AtomicU32,
}

static SHARED: AtomicPtr<Shared> = AtomicPtr::new(core::ptr::null_mut());

/// Begins a fork group, once. Without memory for it no turns are recorded.
pub(crate) fn begin() {
    if shared().is_none()
        && let Ok(at) = sys::map_shared(size_of::<Shared>())
    {
        SHARED.store(at.cast(), Ordering::Release);
    }
}

fn shared() -> Option<&'static Shared> {
    // SAFETY: null, or the mapping, zeroed at first, valid for any content and never unmapped.
    unsafe { SHARED.load(Ordering::Acquire).as_ref() }
}

fn line(cpu: u32) -> Option<&'static Line> {
    if cfg!(feature = "without-family") {
        return None;
    }
    Some(&shared()?.lines[cpu as usize % CPUS])
}

/// How often the group has changed O_NONBLOCK where another process may have the connection open.
pub(crate) fn flag_changes() -> u32 {
    shared().map_or(0, |s| s.flag_changes.load(Ordering::SeqCst))
}

/// Records one such change.
pub(crate) fn note_flag_change() {
    if let Some(s) = shared() {
        s.flag_changes.fetch_add(1, Ordering::SeqCst);
    }
}

/// Records that a thread of the group runs on `cpu` at `now` (ticks).
pub(crate) fn note_turn(cpu: u32, now: u64) {
    let Some(line) = line(cpu) else { return };
    let last = line.last.load(Ordering::Relaxed);
    line.last.store(now, Ordering::Relaxed);
    if now.saturating_sub(last) > clock::us(LATE_US) {
        line.late.store(now, Ordering::Relaxed);
    }
    if line.thread.load(Ordering::Relaxed) != thread::id() {
        line.thread.store(thread::id(), Ordering::Relaxed);
        line.changed.store(now, Ordering::Relaxed);
    }
}

/// Whether several threads of the group have recently had turns on `cpu`.
pub(crate) fn is_shared(cpu: u32, now: u64) -> bool {
    let changed = line(cpu).map_or(0, |l| l.changed.load(Ordering::Relaxed));
    changed != 0 && now.saturating_sub(changed) < clock::us(SHARED_US)
}

/// Records that a thread of the group wanted `cpu` from `since` to `now` while foreign threads had
/// it. Several threads may report the same time, which counts once.
pub(crate) fn note_lost_time(cpu: u32, since: u64, now: u64) {
    let Some(line) = line(cpu) else { return };
    let most = clock::us(FOREIGN_US);
    let counted = line.counted.swap(now, Ordering::Relaxed);
    let allowed = now.saturating_sub(counted) / FOREIGN_PART;
    let before = line.lost.load(Ordering::Relaxed).saturating_sub(allowed);
    let lost = before + now.saturating_sub(since.max(counted));
    line.lost.store(lost.min(2 * most), Ordering::Relaxed);
    if lost > most {
        line.crowded.store(now, Ordering::Relaxed);
    }
}

/// Whether foreign threads had more than their part of `cpu` in the last 300 ms, so that a yield
/// there costs a time slice.
pub(crate) fn has_foreign_load(cpu: u32, now: u64) -> bool {
    let crowded = line(cpu).map_or(0, |l| l.crowded.load(Ordering::Relaxed));
    crowded != 0 && now.saturating_sub(crowded) < clock::us(RETRY_US)
}

/// Whether the group had turns on `cpu` without a long pause since `since` (ticks), when it had
/// one.
pub(crate) fn was_busy_since(cpu: u32, since: u64) -> bool {
    line(cpu).is_some_and(|l| l.late.load(Ordering::Relaxed) < since)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Begins the one fork group of all tests in this process.
    fn meet() {
        static ONCE: std::sync::Once = std::sync::Once::new();
        ONCE.call_once(|| {
            clock::calibrate();
            begin();
        });
    }

    /// Time slice of a CPU-bound program.
    const SLICE_US: u64 = 3_000;

    /// Whether `cpu` is crowded after `slices`, each `pause_us` after the one before.
    fn is_crowded_after(cpu: u32, slices: u64, pause_us: u64) -> bool {
        meet();
        let mut now = 1 << 40;
        for _ in 0..slices {
            let since = now + clock::us(pause_us);
            now = since + clock::us(SLICE_US);
            // Two waiters report the same time.
            note_lost_time(cpu, since, now);
            note_lost_time(cpu, since + clock::us(10), now);
        }
        has_foreign_load(cpu, now)
    }

    #[test]
    fn a_foreign_thread_that_stays_is_detected_at_its_second_time_slice() {
        assert!(!is_crowded_after(250, 1, 20));
        assert!(is_crowded_after(251, 2, 20));
        assert!(is_crowded_after(252, 10, SLICE_US));
        let later = (1 << 40) + clock::us(2 * RETRY_US);
        assert!(!has_foreign_load(251, later), "it may have ended");
    }

    #[test]
    fn rare_turns_of_other_threads_are_not_contention() {
        assert!(!is_crowded_after(253, 1000, 4 * SLICE_US));
        assert!(
            !has_foreign_load(254, 1 << 40),
            "no turn was ever lost there"
        );
    }

    #[test]
    fn a_cpu_is_shared_while_turns_change_hands_on_it() {
        meet();
        let (cpu, at) = (255, 1 << 40);
        note_turn(cpu, at);
        note_turn(cpu, at + clock::us(SHARED_US));
        let alone = at + clock::us(SHARED_US);
        assert!(!is_shared(cpu, alone), "one thread alone does not share");
        std::thread::spawn(move || note_turn(cpu, alone))
            .join()
            .expect("it only notes a time");
        assert!(is_shared(cpu, alone + 1));
        assert!(!is_shared(cpu, alone + clock::us(SHARED_US)));
        assert!(!is_shared(cpu - 1, alone + 1));
    }
}
