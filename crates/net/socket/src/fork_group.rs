//! When threads of the fork group ran, CPU by CPU, and how often the group has changed the flags of
//! connections that several of its processes may have open.
//!
//! A fork group is a process and all processes forked from it without exec, for example
//! PostgreSQL's backends. The times are in memory that forks share. They tell a waiter that gets
//! its CPU back late whether threads of its own group ran there. A killed process leaves nothing
//! to clean up. The times are used for estimates only, so lost updates do not matter.

#![expect(unsafe_code, reason = "memory that forked processes share")]

use crate::policy::cpu_turns::CpuTurns;
use crate::thread;
use core::sync::atomic::{AtomicPtr, AtomicU32, Ordering};
use saiga_channel::sys;

/// CPUs that have a line of their own; beyond that two CPUs share a line.
const CPUS: usize = 256;

/// The memory that all processes of the group share.
#[repr(C)]
struct Shared {
    lines: [CpuTurns; CPUS],
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

/// The group's turns on a CPU, if they are recorded.
pub(crate) fn turns_on(cpu: u32) -> Option<&'static CpuTurns> {
    if cfg!(feature = "without-group") {
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

/// Records that this thread of the group runs on `cpu` at `now` (ticks).
pub(crate) fn note_turn(cpu: u32, now: u64) {
    if let Some(turns) = turns_on(cpu) {
        turns.note_turn(thread::id(), now);
    }
}
