//! Hooks of poll(2) and select(2). A call whose sockets are all plain goes to libc while they are
//! pinned; otherwise the socket layer serves it. A select is served as a poll.

#![expect(unsafe_code, reason = "C functions on the caller's memory")]
#![expect(
    clippy::multiple_unsafe_ops_per_block,
    reason = "a hook and the function of libc behind it share one promise of the caller"
)]

use super::fail;
use crate::symbols::next;
use core::ffi::c_int;
use libc::{fd_set, nfds_t, pollfd, sigset_t, size_t, timespec, timeval};
use saiga_socket::{Errno, Sys, c_result, poll as sockets};

/// Nanoseconds of a timeout in milliseconds; negative is for ever.
fn millis(timeout: c_int) -> Option<u64> {
    u64::try_from(timeout).ok().map(|ms| ms * 1_000_000)
}

/// Nanoseconds of a `timespec` or `timeval`; `unit` is the length of a fraction in nanoseconds.
/// `Err` for a negative time or a fraction of a second or more.
fn nanos(sec: i64, nsec: i64, unit: i64) -> Result<u64, ()> {
    let (Ok(s), Ok(part)) = (u64::try_from(sec), u64::try_from(nsec)) else {
        return Err(());
    };
    if nsec >= 1_000_000_000 / unit {
        return Err(());
    }
    let unit = unit.unsigned_abs();
    Ok(s.saturating_mul(1_000_000_000).saturating_add(part * unit))
}

/// A timeout of `select` with less than 1,000,000 microseconds, as libc converts it.
fn normal(t: &timeval) -> Result<(i64, i64), ()> {
    if t.tv_sec < 0 || t.tv_usec < 0 {
        return Err(());
    }
    let sec = t.tv_sec.saturating_add(t.tv_usec / 1_000_000);
    Ok((sec, t.tv_usec % 1_000_000))
}

/// The number of records; a number that does not fit becomes the largest possible.
fn count_of(n: nfds_t) -> usize {
    usize::try_from(n).unwrap_or(usize::MAX)
}

/// # Safety
/// `fds` points to `n` records.
unsafe fn records<'a>(fds: *mut pollfd, n: nfds_t) -> &'a mut [pollfd] {
    if fds.is_null() || n == 0 {
        return &mut [];
    }
    // SAFETY: promised by our caller.
    unsafe { core::slice::from_raw_parts_mut(fds, count_of(n)) }
}

fn count(result: Sys<usize>) -> c_int {
    c_int::try_from(c_result(result)).unwrap_or(c_int::MAX)
}

/// # Safety
/// The arguments are valid for `poll(2)`.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn poll(fds: *mut pollfd, n: nfds_t, timeout: c_int) -> c_int {
    // SAFETY: promised by our caller.
    let list = unsafe { records(fds, n) };
    if !sockets::concerns(list.iter().map(|p| p.fd))
        && let Some(_pins) = sockets::pin_plain(list.iter().map(|p| p.fd))
    {
        // SAFETY: arguments pass unchanged.
        return unsafe { next::poll(fds, n, timeout) };
    }
    count(sockets::poll(list, millis(timeout), core::ptr::null()))
}

/// `poll` with a check of the buffer's size (`_FORTIFY_SOURCE`).
///
/// # Safety
/// As `poll(2)`; `room` is the size of the array.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn __poll_chk(
    fds: *mut pollfd,
    n: nfds_t,
    timeout: c_int,
    room: size_t,
) -> c_int {
    if room / size_of::<pollfd>() < count_of(n) {
        // SAFETY: arguments pass unchanged; libc's check fails and aborts.
        return unsafe { next::__poll_chk(fds, n, timeout, room) };
    }
    // SAFETY: forwarded.
    unsafe { poll(fds, n, timeout) }
}

/// # Safety
/// The arguments are valid for `ppoll(2)`.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn ppoll(
    fds: *mut pollfd,
    n: nfds_t,
    timeout: *const timespec,
    mask: *const sigset_t,
) -> c_int {
    // SAFETY: promised by our caller.
    let list = unsafe { records(fds, n) };
    if !sockets::concerns(list.iter().map(|p| p.fd))
        && let Some(_pins) = sockets::pin_plain(list.iter().map(|p| p.fd))
    {
        // SAFETY: arguments pass unchanged.
        return unsafe { next::ppoll(fds, n, timeout, mask) };
    }
    // SAFETY: null or readable, as our caller promises.
    let time = unsafe { timeout.as_ref() }.map(|t| nanos(t.tv_sec, t.tv_nsec, 1));
    match time.transpose() {
        Ok(ns) => count(sockets::poll(list, ns, mask)),
        Err(()) => fail(libc::EINVAL),
    }
}

/// `ppoll` with a check of the buffer's size (`_FORTIFY_SOURCE`).
///
/// # Safety
/// As `ppoll(2)`; `room` is the size of the array.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn __ppoll_chk(
    fds: *mut pollfd,
    n: nfds_t,
    timeout: *const timespec,
    mask: *const sigset_t,
    room: size_t,
) -> c_int {
    if room / size_of::<pollfd>() < count_of(n) {
        // SAFETY: arguments pass unchanged; libc's check fails and aborts.
        return unsafe { next::__ppoll_chk(fds, n, timeout, mask, room) };
    }
    // SAFETY: forwarded.
    unsafe { ppoll(fds, n, timeout, mask) }
}

/// The three sets of a select, each null or large enough for `n` descriptors.
struct Sets {
    n: usize,
    read: *mut fd_set,
    write: *mut fd_set,
    except: *mut fd_set,
}

const READ: i16 = libc::POLLIN | libc::POLLRDNORM | libc::POLLHUP | libc::POLLERR;
const WRITE: i16 = libc::POLLOUT | libc::POLLWRNORM | libc::POLLERR;

impl Sets {
    /// Whether `fd` is in a set. Sets may be larger than `FD_SETSIZE`, so words are read directly.
    fn has(&self, set: *mut fd_set, fd: usize) -> bool {
        if set.is_null() {
            return false;
        }
        // SAFETY: the set has room for `n` descriptors and `fd` is less.
        let word = unsafe { set.cast::<u64>().add(fd / 64).read_unaligned() };
        word & (1 << (fd % 64)) != 0
    }

    fn put(set: *mut fd_set, fd: usize, on: bool) {
        if set.is_null() {
            return;
        }
        // SAFETY: as in `has`.
        let at = unsafe { set.cast::<u64>().add(fd / 64) };
        // SAFETY: as in `has`.
        let word = unsafe { at.read_unaligned() };
        let bit = 1 << (fd % 64);
        let word = if on { word | bit } else { word & !bit };
        // SAFETY: as in `has`.
        unsafe { at.write_unaligned(word) };
    }

    fn events(&self, fd: usize) -> i16 {
        let mut events = 0;
        if self.has(self.read, fd) {
            events |= libc::POLLIN;
        }
        if self.has(self.write, fd) {
            events |= libc::POLLOUT;
        }
        if self.has(self.except, fd) {
            events |= libc::POLLPRI;
        }
        events
    }

    fn members(&self) -> impl Iterator<Item = c_int> + '_ {
        (0..self.n)
            .filter(|fd| self.events(*fd) != 0)
            .filter_map(|fd| c_int::try_from(fd).ok())
    }

    /// Stores the result of a poll; returns the number of bits set, or EBADF.
    fn store(&self, found: &[pollfd]) -> Result<usize, c_int> {
        if found.iter().any(|p| p.revents & libc::POLLNVAL != 0) {
            return Err(libc::EBADF);
        }
        let mut bits = 0;
        for p in found {
            let Ok(fd) = usize::try_from(p.fd) else {
                continue;
            };
            for (set, kind, asked) in [
                (self.read, READ, libc::POLLIN),
                (self.write, WRITE, libc::POLLOUT),
                (self.except, libc::POLLPRI, libc::POLLPRI),
            ] {
                let on = p.events & asked != 0 && p.revents & kind != 0;
                if p.events & asked != 0 {
                    Self::put(set, fd, on);
                }
                bits += usize::from(on);
            }
        }
        Ok(bits)
    }
}

/// Serves a select by poll.
fn served(sets: &Sets, timeout: Result<Option<u64>, ()>, mask: *const sigset_t) -> c_int {
    let Ok(ns) = timeout else {
        return fail(libc::EINVAL);
    };
    let found = sockets::with_records(sets.members().count(), |list| {
        for (entry, fd) in list.iter_mut().zip(sets.members()) {
            let events = usize::try_from(fd).map_or(0, |n| sets.events(n));
            *entry = pollfd {
                fd,
                events,
                revents: 0,
            };
        }
        sockets::poll(list, ns, mask)?;
        sets.store(list).map_err(Errno)
    });
    count(found)
}

fn now_ns() -> u64 {
    let mut t = timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `t` is writable.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut t) };
    nanos(t.tv_sec, t.tv_nsec, 1).unwrap_or(0)
}

/// `select(2)`. As on Linux, the timeout is set to the remaining time.
///
/// # Safety
/// The arguments are valid for `select(2)`.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn select(
    n: c_int,
    r: *mut fd_set,
    w: *mut fd_set,
    e: *mut fd_set,
    timeout: *mut timeval,
) -> c_int {
    let sets = Sets {
        n: usize::try_from(n).unwrap_or(0),
        read: r,
        write: w,
        except: e,
    };
    // SAFETY: null or valid, as our caller promises.
    let time = unsafe { timeout.as_ref() }
        .map(|t| normal(t).and_then(|(sec, usec)| nanos(sec, usec, 1000)))
        .transpose();
    if !sockets::concerns(sets.members())
        && let Some(_pins) = sockets::pin_plain(sets.members())
    {
        // SAFETY: arguments pass unchanged.
        return unsafe { next::select(n, r, w, e, timeout) };
    }
    let begun = now_ns();
    let done = served(&sets, time, core::ptr::null());
    // SAFETY: as above.
    if let (Some(t), Ok(Some(ns))) = (unsafe { timeout.as_mut() }, time) {
        let left = ns.saturating_sub(now_ns() - begun);
        t.tv_sec = i64::try_from(left / 1_000_000_000).unwrap_or(0);
        t.tv_usec = i64::try_from(left % 1_000_000_000 / 1000).unwrap_or(0);
    }
    done
}

/// # Safety
/// The arguments are valid for `pselect(2)`.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn pselect(
    n: c_int,
    r: *mut fd_set,
    w: *mut fd_set,
    e: *mut fd_set,
    timeout: *const timespec,
    mask: *const sigset_t,
) -> c_int {
    let sets = Sets {
        n: usize::try_from(n).unwrap_or(0),
        read: r,
        write: w,
        except: e,
    };
    // SAFETY: null or valid, as our caller promises.
    let time = unsafe { timeout.as_ref() }
        .map(|t| nanos(t.tv_sec, t.tv_nsec, 1))
        .transpose();
    if !sockets::concerns(sets.members())
        && let Some(_pins) = sockets::pin_plain(sets.members())
    {
        // SAFETY: arguments pass unchanged.
        return unsafe { next::pselect(n, r, w, e, timeout, mask) };
    }
    served(&sets, time, mask)
}
