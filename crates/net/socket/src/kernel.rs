//! The few kernel calls that move an application's bytes, and the libc functions that wait. Waits
//! go through libc so that they remain cancellation points.

#![expect(unsafe_code, reason = "system calls on the caller's memory")]

use crate::gather::Gather;
use core::ffi::c_int;
use core::sync::atomic::{AtomicPtr, Ordering};
use saiga_channel::sys::{self, Errno, Fd, Sys};
use syscalls::Sysno;

/// `ppoll(3)` of libc.
pub type Ppoll = unsafe extern "C" fn(
    *mut libc::pollfd,
    libc::nfds_t,
    *const libc::timespec,
    *const libc::sigset_t,
) -> c_int;

static PPOLL: AtomicPtr<()> = AtomicPtr::new(core::ptr::null_mut());

/// Sets the function that [`ppoll`] calls.
pub(crate) fn set_ppoll(f: Ppoll) {
    PPOLL.store(f as *mut (), Ordering::Release);
}

/// Waits in libc's `ppoll`, a cancellation point. Times in nanoseconds; `None` is for ever.
///
/// # Safety
/// `mask` is null or points to a signal set.
pub(crate) unsafe fn ppoll(
    fds: &mut [libc::pollfd],
    timeout_ns: Option<u64>,
    mask: *const libc::sigset_t,
) -> Sys<usize> {
    let time = timeout_ns.map(timespec);
    let time_at = time.as_ref().map_or(core::ptr::null(), core::ptr::from_ref);
    let next = PPOLL.load(Ordering::Acquire);
    if next.is_null() {
        return sys::ppoll(fds, time);
    }
    // SAFETY: only `set_ppoll` stores here.
    let f: Ppoll = unsafe { core::mem::transmute(next) };
    // SAFETY: the slice, the time and the mask outlive the call.
    let n = unsafe { f(fds.as_mut_ptr(), fds.len() as libc::nfds_t, time_at, mask) };
    usize::try_from(n).map_err(|_| errno())
}

/// Converts nanoseconds to the kernel's structure.
pub(crate) fn timespec(ns: u64) -> libc::timespec {
    let part = |v: u64| i64::try_from(v).unwrap_or(i64::MAX);
    libc::timespec {
        tv_sec: part(ns / 1_000_000_000),
        tv_nsec: part(ns % 1_000_000_000),
    }
}

/// The calling thread's errno.
pub(crate) fn errno() -> Errno {
    // SAFETY: no arguments.
    let at = unsafe { libc::__errno_location() };
    // SAFETY: libc's errno location is valid for the thread.
    Errno(unsafe { at.read() })
}

/// Sets the calling thread's errno.
pub fn set_errno(e: Errno) {
    // SAFETY: no arguments.
    let at = unsafe { libc::__errno_location() };
    // SAFETY: libc's errno location is valid for the thread.
    unsafe { at.write(e.0) };
}

/// An empty entry for an array of vectors.
pub(crate) const NO_PART: libc::iovec = libc::iovec {
    iov_base: core::ptr::null_mut(),
    iov_len: 0,
};

/// `recvmsg(2)` without address and control data.
///
/// # Safety
/// Every vector is writable for its length.
pub(crate) unsafe fn recv(fd: Fd, iov: &mut [libc::iovec], flags: c_int) -> Sys<usize> {
    // SAFETY: all-zero is a valid msghdr.
    let mut msg: libc::msghdr = unsafe { core::mem::zeroed() };
    msg.msg_iov = iov.as_mut_ptr();
    msg.msg_iovlen = iov.len();
    let args = [
        sys::reg(fd),
        &raw mut msg as usize,
        sys::reg(flags),
        0,
        0,
        0,
    ];
    // SAFETY: promised by our caller; the message outlives the call.
    unsafe { sys::call(Sysno::recvmsg, args) }
}

/// `sendmsg(2)`. Of a vector that was sent in part, it sends at most a few parts.
pub(crate) fn send(fd: Fd, what: Gather<'_>, flags: c_int) -> Sys<usize> {
    let mut few = [NO_PART; MAX_PARTS];
    let iov = what.untouched().unwrap_or_else(|| {
        let mut used = 0;
        for (slot, part) in few.iter_mut().zip(what.parts()) {
            slot.iov_base = part.as_ptr().cast_mut().cast();
            slot.iov_len = part.len();
            used += 1;
        }
        &few[..used]
    });
    // SAFETY: all-zero is a valid msghdr.
    let mut msg: libc::msghdr = unsafe { core::mem::zeroed() };
    msg.msg_iov = iov.as_ptr().cast_mut();
    msg.msg_iovlen = iov.len();
    let args = [
        sys::reg(fd),
        &raw const msg as usize,
        sys::reg(flags),
        0,
        0,
        0,
    ];
    // SAFETY: the message and the parts outlive the call; the kernel only reads them.
    unsafe { sys::call(Sysno::sendmsg, args) }
}

/// Parts that one step of a call handles; longer vectors take several steps.
pub(crate) const MAX_PARTS: usize = 16;

/// Reads the disposition of a signal (`rt_sigaction(2)`): handler address and flags.
pub(crate) fn signal_action(signal: c_int) -> Option<(usize, u64)> {
    #[repr(C)]
    struct Action {
        handler: usize,
        flags: u64,
        restorer: usize,
        mask: u64,
    }
    let mut old = Action {
        handler: 0,
        flags: 0,
        restorer: 0,
        mask: 0,
    };
    let args = [sys::reg(signal), 0, &raw mut old as usize, 8, 0, 0];
    // SAFETY: reads the disposition into a kernel sigaction (64-bit layout), changes nothing.
    unsafe { sys::call(Sysno::rt_sigaction, args) }.ok()?;
    Some((old.handler, old.flags))
}
