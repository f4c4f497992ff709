//! epoll(7).

#![expect(unsafe_code, reason = "C functions on the caller's memory")]

use super::{errno, fail};
use crate::symbols::next;
use core::ffi::c_int;
use libc::{epoll_event, sigset_t, timespec};
use saiga_socket::{self as sockets, Errno, Sys, c_result};

/// `epoll_create(2)`.
///
/// # Safety
/// None beyond libc's.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn epoll_create(size: c_int) -> c_int {
    // SAFETY: no pointers.
    followed(unsafe { next::epoll_create(size) })
}

/// `epoll_create1(2)`.
///
/// # Safety
/// None beyond libc's.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn epoll_create1(flags: c_int) -> c_int {
    // SAFETY: no pointers.
    followed(unsafe { next::epoll_create1(flags) })
}

fn followed(fd: c_int) -> c_int {
    if fd >= 0 {
        sockets::track_epoll(fd);
    }
    fd
}

/// `epoll_ctl(2)`.
///
/// # Safety
/// As the manual page says.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn epoll_ctl(
    epfd: c_int,
    op: c_int,
    fd: c_int,
    event: *mut epoll_event,
) -> c_int {
    // A missing event where one is needed is for the kernel to refuse.
    let known = !event.is_null() || op == libc::EPOLL_CTL_DEL;
    // SAFETY: null or readable, as our caller promises.
    let asked = (!event.is_null()).then(|| unsafe { event.read_unaligned() });
    let served = known
        .then(|| sockets::epoll_ctl(epfd, op, fd, asked.map(|e| (e.events, e.u64))))
        .flatten();
    match served {
        Some(Ok(())) => 0,
        Some(Err(e)) => fail(e.0),
        // SAFETY: arguments pass unchanged.
        None => unsafe { next::epoll_ctl(epfd, op, fd, event) },
    }
}

/// Waits through libc with a time-out in nanoseconds, rounded up to milliseconds.
fn kernel_wait(
    epfd: c_int,
    mask: *const sigset_t,
) -> impl Fn(*mut epoll_event, usize, Option<u64>) -> Sys<usize> {
    move |events, room, timeout| {
        let ms = timeout.map_or(-1, |ns| {
            c_int::try_from(ns.div_ceil(1_000_000)).unwrap_or(c_int::MAX)
        });
        let max = c_int::try_from(room).unwrap_or(c_int::MAX);
        // SAFETY: the caller's array has `room` places; the mask is null or valid.
        let n = unsafe { next::epoll_pwait(epfd, events, max, ms, mask) };
        usize::try_from(n).map_err(|_| Errno(errno()))
    }
}

/// # Safety
/// As `epoll_pwait(2)`.
unsafe fn wait(
    epfd: c_int,
    events: *mut epoll_event,
    max: c_int,
    timeout_ns: Option<u64>,
    mask: *const sigset_t,
) -> Option<c_int> {
    let room = usize::try_from(max)
        .ok()
        .filter(|n| *n > 0 && !events.is_null())?;
    let kernel = kernel_wait(epfd, mask);
    // SAFETY: promised by our caller.
    let served = unsafe { sockets::epoll_wait(epfd, events, room, timeout_ns, &kernel) }?;
    Some(c_int::try_from(c_result(served)).unwrap_or(c_int::MAX))
}

/// `epoll_wait(2)`.
///
/// # Safety
/// As the manual page says.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn epoll_wait(
    epfd: c_int,
    events: *mut epoll_event,
    max: c_int,
    timeout: c_int,
) -> c_int {
    let ns = u64::try_from(timeout).ok().map(|ms| ms * 1_000_000);
    // SAFETY: forwarded.
    match unsafe { wait(epfd, events, max, ns, core::ptr::null()) } {
        Some(n) => n,
        // SAFETY: arguments pass unchanged.
        None => unsafe { next::epoll_wait(epfd, events, max, timeout) },
    }
}

/// `epoll_pwait(2)`.
///
/// # Safety
/// As the manual page says.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn epoll_pwait(
    epfd: c_int,
    events: *mut epoll_event,
    max: c_int,
    timeout: c_int,
    mask: *const sigset_t,
) -> c_int {
    let ns = u64::try_from(timeout).ok().map(|ms| ms * 1_000_000);
    // SAFETY: forwarded.
    match unsafe { wait(epfd, events, max, ns, mask) } {
        Some(n) => n,
        // SAFETY: arguments pass unchanged.
        None => unsafe { next::epoll_pwait(epfd, events, max, timeout, mask) },
    }
}

/// `epoll_pwait2(2)`.
///
/// # Safety
/// As the manual page says.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn epoll_pwait2(
    epfd: c_int,
    events: *mut epoll_event,
    max: c_int,
    timeout: *const timespec,
    mask: *const sigset_t,
) -> c_int {
    // SAFETY: null or readable, as our caller promises.
    let time = unsafe { timeout.as_ref() };
    let sane = time.is_none_or(|t| t.tv_sec >= 0 && (0..1_000_000_000).contains(&t.tv_nsec));
    let part = |v: i64| u64::try_from(v).unwrap_or(0);
    let ns = time.map(|t| part(t.tv_sec).saturating_mul(1_000_000_000) + part(t.tv_nsec));
    // SAFETY: forwarded.
    let served = || unsafe { wait(epfd, events, max, ns, mask) };
    match sane.then(served).flatten() {
        Some(n) => n,
        // SAFETY: arguments pass unchanged.
        None => unsafe { next::epoll_pwait2(epfd, events, max, timeout, mask) },
    }
}
