//! syscall(2): a call that has a hook by name goes through that hook.
//!
//! `symbols::by_number` serves the calls that take the same arguments as their hook. This module
//! serves those that take other arguments, and those for which libc has no function.

#![expect(unsafe_code, reason = "registers as the caller's memory")]

use super::{aio, epoll, poll, receive, transmit};
use crate::symbols::{self, Register, next};
use core::ffi::{c_int, c_long};
use saiga_socket::{self as sockets, namespaces, uring};

/// The size of the kernel's `sigset_t`. The kernel refuses a mask of another size.
const MASK_BYTES: c_long = 8;

/// # Safety
/// The arguments are valid for `syscall(2)`.
#[unsafe(no_mangle)]
#[expect(clippy::many_single_char_names, reason = "six registers")]
pub(crate) unsafe extern "C" fn syscall(
    nr: c_long,
    a: c_long,
    b: c_long,
    c: c_long,
    d: c_long,
    e: c_long,
    f: c_long,
) -> c_long {
    let registers = [a, b, c, d, e, f];
    // SAFETY: our caller promises what the numbered call requires.
    if let Some(result) = unsafe { symbols::by_number(nr, registers) } {
        return result;
    }
    // SAFETY: as above.
    if let Some(result) = unsafe { with_other_arguments(nr, registers) } {
        return result;
    }
    // SAFETY: as above.
    if let Some(result) = unsafe { without_function(nr, registers) } {
        return result;
    }
    // SAFETY: arguments pass unchanged.
    unsafe { next::syscall(nr, a, b, c, d, e, f) }
}

/// Serves calls whose arguments differ from those of libc's function.
///
/// # Safety
/// As the numbered call asks.
#[expect(
    clippy::undocumented_unsafe_blocks,
    reason = "one promise for all arms: the registers hold what the numbered call requires"
)]
unsafe fn with_other_arguments(nr: c_long, registers: [c_long; 6]) -> Option<c_long> {
    let [a, b, c, d, e, f] = registers;
    let fd = c_int::of(a);
    let fits = |mask: c_long, bytes: c_long| mask == 0 || bytes == MASK_BYTES;
    Some(match nr {
        // The fifth argument is the high half of the offset on 32-bit machines.
        libc::SYS_preadv2 => unsafe {
            receive::preadv2(fd, Register::of(b), Register::of(c), d, Register::of(f)) as c_long
        },
        libc::SYS_pwritev2 => unsafe {
            transmit::pwritev2(fd, Register::of(b), Register::of(c), d, Register::of(f)) as c_long
        },
        libc::SYS_ppoll if fits(d, e) => unsafe {
            let (fds, n, time) = (Register::of(a), Register::of(b), Register::of(c));
            poll::ppoll(fds, n, time, Register::of(d)).into()
        },
        libc::SYS_pselect6 => {
            let mask_at: *const [c_long; 2] = Register::of(f);
            let [mask, bytes] = unsafe { mask_at.as_ref() }.copied().unwrap_or_default();
            if !fits(mask, bytes) {
                return None;
            }
            let (r, w, x) = (Register::of(b), Register::of(c), Register::of(d));
            unsafe { poll::pselect(fd, r, w, x, Register::of(e), Register::of(mask)) }.into()
        }
        libc::SYS_epoll_pwait if fits(e, f) => unsafe {
            let (events, mask) = (Register::of(b), Register::of(e));
            epoll::epoll_pwait(fd, events, c_int::of(c), c_int::of(d), mask).into()
        },
        libc::SYS_epoll_pwait2 if fits(e, f) => unsafe {
            let (events, time, mask) = (Register::of(b), Register::of(d), Register::of(e));
            epoll::epoll_pwait2(fd, events, c_int::of(c), time, mask).into()
        },
        _ => return None,
    })
}

/// Prepares for calls for which libc, or an older version of it, has no function. Makes the calls
/// whose result must be handled, and returns it.
///
/// # Safety
/// As the numbered call asks.
unsafe fn without_function(nr: c_long, registers: [c_long; 6]) -> Option<c_long> {
    let [a, b, c, d, e, f] = registers;
    // SAFETY: arguments pass unchanged.
    let call = || unsafe { next::syscall(nr, a, b, c, d, e, f) };
    match nr {
        libc::SYS_execveat => sockets::before_exec(),
        libc::SYS_exit_group => sockets::end_reading(),
        libc::SYS_seccomp => sockets::sandboxed(),
        // SAFETY: the arguments of the call.
        libc::SYS_io_submit => unsafe { aio::submitting(b, Register::of(c)) },
        libc::SYS_clone => return leaving_namespaces(a, call),
        libc::SYS_clone3 => {
            let arguments: *const u64 = Register::of(a);
            // SAFETY: null or `struct clone_args`, which begins with the flags.
            let flags = unsafe { arguments.as_ref() }.map_or(0, |flags| flags.cast_signed());
            return leaving_namespaces(flags, call);
        }
        libc::SYS_io_uring_setup => {
            let made = call();
            if made >= 0 {
                uring::made_by_number();
            }
            return Some(made);
        }
        _ => {}
    }
    None
}

/// Makes a child in another namespace. `None`: by its flags the child stays in ours.
fn leaving_namespaces(flags: c_long, call: impl FnOnce() -> c_long) -> Option<c_long> {
    let leaves = namespaces::leaves(c_int::of(flags));
    leaves.then(|| namespaces::leave(|| c_int::of(call())).into())
}
