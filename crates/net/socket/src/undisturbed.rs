//! Sections that no signal handler of the calling thread interrupts.
//!
//! Where TCP moves bytes for a connection that has a channel, the kernel's call and our count of
//! what it moved belong together. A handler between them that uses the same connection would see
//! a stream with a hole, reset it, or send bytes a second time.

#![expect(unsafe_code, reason = "system calls")]

use crate::rt;
use core::sync::atomic::Ordering;
use saiga_channel::sys;
use syscalls::Sysno;

/// Bytes of the kernel's signal set (`include/uapi/asm-generic/signal.h`, _NSIG / 8).
const SET_BYTES: usize = 8;

/// While it lives, the thread's signals wait. May be nested.
pub(crate) struct Undisturbed {
    /// The mask to restore; `None` when it was not changed: a sandbox may forbid the call.
    before: Option<u64>,
}

impl Undisturbed {
    pub(crate) fn begin() -> Undisturbed {
        let mut before = 0;
        let may = !rt::SANDBOXED.load(Ordering::Relaxed);
        let changed = may && set_mask(&u64::MAX, Some(&mut before));
        Undisturbed {
            before: changed.then_some(before),
        }
    }
}

impl Drop for Undisturbed {
    fn drop(&mut self) {
        if let Some(before) = self.before {
            set_mask(&before, None);
        }
    }
}

/// `rt_sigprocmask(2)` with SIG_SETMASK. Whether the kernel did it.
fn set_mask(mask: &u64, before: Option<&mut u64>) -> bool {
    let how = sys::reg(libc::SIG_SETMASK);
    let before = before.map_or(0, |word| &raw mut *word as usize);
    let args = [how, &raw const *mask as usize, before, SET_BYTES, 0, 0];
    // SAFETY: both sets are valid for eight bytes, or the second is null.
    unsafe { sys::call(Sysno::rt_sigprocmask, args) }.is_ok()
}
