//! Barriers on all threads of other processes (`man 2 membarrier`): our next load sees everything
//! that such a thread did before the barrier, and its next load sees everything that we did before.
//!
//! A process that has joined takes part in barriers that take microseconds. Children by fork have
//! joined with it; a program after exec has not. The barrier on all processes of the host takes up
//! to 15 ms, so a peer must not be able to cause one.

use crate::sys;
use crate::sys::Sys;
use core::sync::atomic::{AtomicBool, Ordering};

/// MEMBARRIER_CMD_GLOBAL, the command for all processes of the host; its two expedited siblings
/// follow. Values from the kernel's `include/uapi/linux/membarrier.h`.
const GLOBAL: usize = 1;
const EXPEDITED: usize = 1 << 1;
const REGISTER: usize = 1 << 2;

static JOINED: AtomicBool = AtomicBool::new(false);

/// Registers this process for [`on_members`]; fast while it has one thread. [`joined`] returns
/// whether the kernel agreed.
pub fn join() {
    let joined = sys::membarrier(REGISTER).is_ok();
    JOINED.store(joined, Ordering::Relaxed);
}

/// Whether [`join`] has succeeded here, or in the process from which this one was forked.
#[must_use]
pub fn joined() -> bool {
    JOINED.load(Ordering::Relaxed)
}

/// Runs a barrier on the threads of every process that has joined.
///
/// # Errors
/// ENOSYS and EPERM if a sandbox forbids the call; EINVAL before Linux 4.16.
pub fn on_members() -> Sys<()> {
    sys::membarrier(EXPEDITED)
}

/// Runs a barrier on every thread of the host. Takes milliseconds.
///
/// # Errors
/// ENOSYS and EPERM if the kernel or a sandbox does not allow it; EINVAL with nohz_full.
pub fn on_all_processes() -> Sys<()> {
    sys::membarrier(GLOBAL)
}
