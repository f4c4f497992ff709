//! Sections during which the calling thread's signals are blocked.
//!
//! If TCP moves bytes for a connection that has a channel, the kernel's call and our count of those
//! bytes must not be separated. A signal handler between them that uses the same connection would
//! see a stream with a hole, reset it, or send bytes a second time.

#![expect(unsafe_code, reason = "system calls")]

use crate::rt;
use core::sync::atomic::Ordering;
use saiga_channel::sys;
use syscalls::Sysno;

/// Size of the kernel's signal set (`include/uapi/asm-generic/signal.h`, _NSIG / 8).
const SET_BYTES: usize = 8;
/// Signals that the thread itself causes. Blocked, they would end the process: SIGBUS comes from a
/// segment without memory, and has a handler.
const FAULTS: [i32; 6] = [
    libc::SIGILL,
    libc::SIGTRAP,
    libc::SIGBUS,
    libc::SIGFPE,
    libc::SIGSEGV,
    libc::SIGSYS,
];

/// Blocks the thread's signals until it is dropped. May be nested.
pub(crate) struct SignalsBlocked {
    /// The mask to restore; `None` if it was not changed, because a sandbox may forbid the call.
    before: Option<u64>,
}

impl SignalsBlocked {
    pub(crate) fn begin() -> SignalsBlocked {
        let mut before = 0;
        let may = !rt::SANDBOXED.load(Ordering::Relaxed);
        let faults = FAULTS.iter().fold(0, |set, number| set | bit(*number));
        let changed = may && change_mask(libc::SIG_BLOCK, !faults, Some(&mut before));
        SignalsBlocked {
            before: changed.then_some(before),
        }
    }
}

impl Drop for SignalsBlocked {
    fn drop(&mut self) {
        if let Some(before) = self.before {
            change_mask(libc::SIG_SETMASK, before, None);
        }
    }
}

/// The bit of a signal in a set.
fn bit(number: i32) -> u64 {
    1 << (number - 1)
}

/// Calls `rt_sigprocmask(2)`; true if it succeeded.
fn change_mask(how: i32, set: u64, before: Option<&mut u64>) -> bool {
    let before = before.map_or(0, |word| &raw mut *word as usize);
    let args = [
        sys::reg(how),
        &raw const set as usize,
        before,
        SET_BYTES,
        0,
        0,
    ];
    // SAFETY: both sets are valid for eight bytes, or the second is null.
    unsafe { sys::call(Sysno::rt_sigprocmask, args) }.is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn blocked() -> u64 {
        let mut now = 0;
        assert!(change_mask(libc::SIG_BLOCK, 0, Some(&mut now)));
        now
    }

    #[test]
    fn signals_are_blocked_except_faults() {
        let before = blocked();
        {
            let _outer = SignalsBlocked::begin();
            drop(SignalsBlocked::begin());
            let now = blocked();
            assert!(now & bit(libc::SIGALRM) != 0 && now & bit(libc::SIGTERM) != 0);
            assert_eq!((now & bit(libc::SIGBUS), now & bit(libc::SIGSEGV)), (0, 0));
        }
        assert_eq!(blocked(), before);
    }
}
