//! Hooks of epoll(7): they record sets and registrations, and serve waits in sets with channels.

#![expect(unsafe_code, reason = "C functions on the caller's memory")]

use super::{errno, fail};
use crate::symbols::next;
use core::ffi::{c_int, c_long};
use libc::{epoll_event, sigset_t, timespec};
use saiga_socket::{self as sockets, Errno, c_result};

/// # Safety
/// The arguments are valid for `epoll_create(2)`.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn epoll_create(size: c_int) -> c_int {
    // SAFETY: no pointers.
    followed(unsafe { next::epoll_create(size) })
}

/// # Safety
/// The arguments are valid for `epoll_create1(2)`.
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

/// # Safety
/// The arguments are valid for `epoll_ctl(2)`.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn epoll_ctl(
    epfd: c_int,
    op: c_int,
    fd: c_int,
    event: *mut epoll_event,
) -> c_int {
    // The kernel refuses a missing event where one is needed.
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

/// Milliseconds, rounded up; `None` is for ever.
fn millis(timeout_ns: Option<u64>) -> c_int {
    timeout_ns.map_or(-1, |ns| {
        c_int::try_from(ns.div_ceil(1_000_000)).unwrap_or(c_int::MAX)
    })
}

/// Nanoseconds of a timeout in milliseconds; negative is for ever.
fn nanos(timeout_ms: c_int) -> Option<u64> {
    u64::try_from(timeout_ms).ok().map(|ms| ms * 1_000_000)
}

/// Serves a call on a set that the library tracks. `kernel` waits in libc's function of the same
/// name, on a descriptor of that set, for a number of events and nanoseconds.
///
/// # Safety
/// `events` is null or writable for `max` events.
unsafe fn wait(
    epfd: c_int,
    events: *mut epoll_event,
    max: c_int,
    timeout_ns: Option<u64>,
    kernel: impl Fn(c_int, *mut epoll_event, c_int, Option<u64>) -> c_int,
) -> Option<c_int> {
    let room = usize::try_from(max)
        .ok()
        .filter(|n| *n > 0 && !events.is_null())?;
    let kernel = |epfd: c_int, events: *mut epoll_event, room: usize, timeout_ns: Option<u64>| {
        let n = kernel(
            epfd,
            events,
            c_int::try_from(room).unwrap_or(c_int::MAX),
            timeout_ns,
        );
        usize::try_from(n).map_err(|_| Errno(errno()))
    };
    // SAFETY: promised by our caller.
    let served = unsafe { sockets::epoll_wait(epfd, events, room, timeout_ns, &kernel) }?;
    Some(c_int::try_from(c_result(served)).unwrap_or(c_int::MAX))
}

/// # Safety
/// The arguments are valid for `epoll_wait(2)`.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn epoll_wait(
    epfd: c_int,
    events: *mut epoll_event,
    max: c_int,
    timeout: c_int,
) -> c_int {
    let kernel = |epfd, events, max, timeout_ns| {
        // SAFETY: the caller's array, with the number of entries that the caller gave.
        unsafe { next::epoll_wait(epfd, events, max, millis(timeout_ns)) }
    };
    // SAFETY: forwarded.
    match unsafe { wait(epfd, events, max, nanos(timeout), kernel) } {
        Some(n) => n,
        // SAFETY: arguments pass unchanged.
        None => unsafe { next::epoll_wait(epfd, events, max, timeout) },
    }
}

/// # Safety
/// The arguments are valid for `epoll_pwait(2)`.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn epoll_pwait(
    epfd: c_int,
    events: *mut epoll_event,
    max: c_int,
    timeout: c_int,
    mask: *const sigset_t,
) -> c_int {
    let kernel = |epfd, events, max, timeout_ns| {
        // SAFETY: the caller's array and its number of entries; the mask is valid or null.
        unsafe { next::epoll_pwait(epfd, events, max, millis(timeout_ns), mask) }
    };
    // SAFETY: forwarded.
    match unsafe { wait(epfd, events, max, nanos(timeout), kernel) } {
        Some(n) => n,
        // SAFETY: arguments pass unchanged.
        None => unsafe { next::epoll_pwait(epfd, events, max, timeout, mask) },
    }
}

/// # Safety
/// The arguments are valid for `epoll_pwait2(2)`.
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
    let kernel = |epfd, events, max, timeout_ns: Option<u64>| {
        let part = |v: u64| i64::try_from(v).unwrap_or(i64::MAX);
        let time = timeout_ns.map(|ns| timespec {
            tv_sec: part(ns / 1_000_000_000),
            tv_nsec: part(ns % 1_000_000_000),
        });
        let time = time.as_ref().map_or(core::ptr::null(), core::ptr::from_ref);
        // SAFETY: the caller's array and its number of entries; the mask is valid or null.
        unsafe { wait_exactly(epfd, events, max, time, mask) }
    };
    // SAFETY: forwarded.
    let served = || unsafe { wait(epfd, events, max, ns, kernel) };
    match sane.then(served).flatten() {
        Some(n) => n,
        // SAFETY: arguments pass unchanged.
        None => unsafe { wait_exactly(epfd, events, max, timeout, mask) },
    }
}

/// `epoll_pwait2` of libc, or the system call if libc does not have it (glibc before 2.35).
///
/// # Safety
/// As `epoll_pwait2(2)`.
unsafe fn wait_exactly(
    epfd: c_int,
    events: *mut epoll_event,
    max: c_int,
    timeout: *const timespec,
    mask: *const sigset_t,
) -> c_int {
    // SAFETY: arguments pass unchanged.
    let n = unsafe { next::epoll_pwait2(epfd, events, max, timeout, mask) };
    if n >= 0 || errno() != libc::ENOSYS {
        return n;
    }
    let (epfd, max) = (c_long::from(epfd), c_long::from(max));
    let address = |at: usize| at.cast_signed() as c_long;
    let (events, timeout) = (address(events.addr()), address(timeout.addr()));
    // SAFETY: as above; the kernel's mask has 8 bytes.
    let n = unsafe {
        next::syscall(
            libc::SYS_epoll_pwait2,
            epfd,
            events,
            max,
            timeout,
            address(mask.addr()),
            8,
        )
    };
    c_int::try_from(n).unwrap_or(-1)
}
