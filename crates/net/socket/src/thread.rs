//! Properties of the calling thread: its id, its CPU, whether it is the only one.

#![expect(unsafe_code, reason = "reads a flag that glibc exports")]

use core::cell::Cell;
use core::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

thread_local! {
    static ID: Cell<u32> = const { Cell::new(0) };
}

/// Address of glibc's `__libc_single_threaded` (2.32 and later), found at start-up.
static SINGLE: AtomicPtr<u8> = AtomicPtr::new(core::ptr::null_mut());

/// The kernel's thread id.
pub(crate) fn id() -> u32 {
    ID.with(|id| {
        if id.get() == 0 {
            id.set(saiga_channel::sys::gettid());
        }
        id.get()
    })
}

/// Forgets the id after a fork: the child has another id.
pub(crate) fn forked() {
    ID.with(|id| id.set(0));
}

/// Sets the address of glibc's flag; null if it has none.
pub(crate) fn set_single_threaded_flag(at: *mut u8) {
    SINGLE.store(at, Ordering::Relaxed);
}

/// Whether this process has had only one thread since it started.
pub(crate) fn alone() -> bool {
    let at = SINGLE.load(Ordering::Relaxed);
    // SAFETY: a byte exported by libc for the life of the process; glibc writes it when it
    // makes a second thread, before that thread runs.
    !at.is_null() && unsafe { at.read_volatile() } != 0
}

/// CPU that this thread runs on now.
pub(crate) fn cpu() -> u32 {
    // SAFETY: no arguments; reads the thread's rseq area (glibc 2.35) or the vDSO. On Arm, the vDSO
    // does not have it: older versions make a system call there.
    let cpu = unsafe { libc::sched_getcpu() };
    u32::try_from(cpu).unwrap_or(u32::MAX)
}

/// Increments a counter of pins; cheaper while there is one thread. Returns the former value.
pub(crate) fn bump(counter: &AtomicU32) -> u32 {
    if alone() {
        let now = counter.load(Ordering::Relaxed);
        counter.store(now + 1, Ordering::Relaxed);
        now
    } else {
        counter.fetch_add(1, Ordering::SeqCst)
    }
}

/// Decrements a counter of pins. Returns the new value.
///
/// A counter that is 0 stays 0: a child forked in a signal handler, above a call that was counted,
/// has cleared the counter when the call returns there.
pub(crate) fn drop_one(counter: &AtomicU32) -> u32 {
    if alone() {
        let now = counter.load(Ordering::Relaxed).saturating_sub(1);
        counter.store(now, Ordering::Relaxed);
        return now;
    }
    let before = counter.fetch_sub(1, Ordering::SeqCst);
    if before == 0 {
        counter.store(0, Ordering::SeqCst);
    }
    before.saturating_sub(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_counter_of_pins_cleared_by_a_fork_stays_zero() {
        let pins = AtomicU32::new(0);
        bump(&pins);
        pins.store(0, Ordering::Relaxed); // Forked in a signal handler above the call.
        assert_eq!((drop_one(&pins), pins.load(Ordering::Relaxed)), (0, 0));
        bump(&pins);
        bump(&pins);
        assert_eq!((drop_one(&pins), pins.load(Ordering::Relaxed)), (1, 1));
    }
}
