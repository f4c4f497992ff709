//! Hooks that make, copy and close descriptors. They keep the library's records in step with the
//! process's descriptors, and keep the library's own descriptors hidden and open.

#![expect(unsafe_code, reason = "C functions on the caller's memory")]

use super::fail;
use crate::symbols::next;
use core::ffi::{c_char, c_int, c_long};
use libc::{FILE, sockaddr, socklen_t};
use saiga_socket::{self as sockets, Closing, Reason, before_close, is_hidden, known, lookup};

/// # Safety
/// The arguments are valid for `socket(2)`.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn socket(domain: c_int, kind: c_int, protocol: c_int) -> c_int {
    // SAFETY: no pointers.
    let fd = unsafe { next::socket(domain, kind, protocol) };
    let inet = domain == libc::AF_INET || domain == libc::AF_INET6;
    let stream = kind & !(libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC) == libc::SOCK_STREAM;
    if fd >= 0 && inet && stream {
        sockets::track_created(fd, kind & libc::SOCK_NONBLOCK != 0);
    }
    fd
}

/// # Safety
/// The arguments are valid for `connect(2)`.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn connect(fd: c_int, addr: *const sockaddr, len: socklen_t) -> c_int {
    if let Some(handle) = lookup(fd)
        // SAFETY: promised by our caller.
        && unsafe { dissolves(addr, len) }
    {
        // The number's next connection is another one, with other peers.
        handle.stay_on_tcp(fd, Reason::SocketOption);
    }
    // SAFETY: arguments pass unchanged.
    let result = unsafe { next::connect(fd, addr, len) };
    if lookup(fd).is_some() {
        sockets::track_connected(fd);
    }
    result
}

/// Whether the address is AF_UNSPEC, which ends an association (`man 2 connect`).
///
/// # Safety
/// `addr` is null or readable for `len` bytes.
unsafe fn dissolves(addr: *const sockaddr, len: socklen_t) -> bool {
    if addr.is_null() || (len as usize) < size_of::<libc::sa_family_t>() {
        return false;
    }
    // SAFETY: the family is the first field, and lies within `len`.
    let family = unsafe { addr.cast::<libc::sa_family_t>().read_unaligned() };
    i32::from(family) == libc::AF_UNSPEC
}

/// # Safety
/// The arguments are valid for `accept(2)`.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn accept(
    fd: c_int,
    addr: *mut sockaddr,
    len: *mut socklen_t,
) -> c_int {
    // SAFETY: arguments pass unchanged.
    let new = unsafe { next::accept(fd, addr, len) };
    if new >= 0 {
        sockets::track_accepted(new, false);
    }
    new
}

/// # Safety
/// The arguments are valid for `accept4(2)`.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn accept4(
    fd: c_int,
    addr: *mut sockaddr,
    len: *mut socklen_t,
    flags: c_int,
) -> c_int {
    // SAFETY: arguments pass unchanged.
    let new = unsafe { next::accept4(fd, addr, len, flags) };
    if new >= 0 {
        sockets::track_accepted(new, flags & libc::SOCK_NONBLOCK != 0);
    }
    new
}

/// # Safety
/// The arguments are valid for `close(2)`.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn close(fd: c_int) -> c_int {
    match before_close(fd) {
        // SAFETY: no pointers.
        Closing::Proceed => unsafe { next::close(fd) },
        Closing::Refuse => fail(libc::EBADF),
        Closing::Done => 0,
    }
}

/// `close_range(2)`, split into ranges around the library's own descriptors.
///
/// # Safety
/// The arguments are valid for `close_range(2)`.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn close_range(first: u32, last: u32, flags: c_int) -> c_int {
    const CLOSE_RANGE_CLOEXEC: c_int = 4;
    if first > last || flags & CLOSE_RANGE_CLOEXEC != 0 {
        // SAFETY: no pointers. The library's own are close-on-exec already.
        return unsafe { next::close_range(first, last, flags) };
    }
    let top = c_int::try_from(last).unwrap_or(c_int::MAX);
    let mut from = first;
    for fd in known(c_int::try_from(first).unwrap_or(c_int::MAX), top) {
        let number = fd.unsigned_abs();
        if is_hidden(fd) {
            if number > from {
                // SAFETY: no pointers.
                unsafe { next::close_range(from, number - 1, flags) };
            }
            from = number + 1;
        } else {
            before_close(fd);
        }
    }
    if from > last {
        return 0;
    }
    // SAFETY: no pointers.
    unsafe { next::close_range(from, last, flags) }
}

/// # Safety
/// The arguments are valid for `closefrom(3)`.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn closefrom(first: c_int) {
    // SAFETY: no pointers.
    unsafe { close_range(u32::try_from(first).unwrap_or(0), u32::MAX, 0) };
}

/// Records a copy that the kernel has made. Stdio uses 0, 1 and 2 without our hooks.
fn copied(old: c_int, new: c_int) -> c_int {
    if new >= 0 {
        sockets::duplicated(old, new);
    }
    if (0..=libc::STDERR_FILENO).contains(&new)
        && let Some(handle) = lookup(new)
    {
        handle.stay_on_tcp(new, Reason::Stdio);
    }
    new
}

/// # Safety
/// The arguments are valid for `dup(2)`.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn dup(fd: c_int) -> c_int {
    if is_hidden(fd) {
        return fail(libc::EBADF);
    }
    // SAFETY: no pointers.
    copied(fd, unsafe { next::dup(fd) })
}

/// Prepares for a copy onto `new`: its former file is closed. False if `old` is hidden, or `new` is
/// and cannot move.
fn replace(old: c_int, new: c_int) -> bool {
    if is_hidden(old) {
        return false;
    }
    // SAFETY: no pointers. If `old` is not open, the copy fails and `new` stays as it is.
    let open = unsafe { next::fcntl(old, libc::F_GETFD, 0) } >= 0;
    if !open || old == new {
        return true;
    }
    if !sockets::make_room(new) {
        return false;
    }
    before_close(new);
    true
}

/// # Safety
/// The arguments are valid for `dup2(2)`.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn dup2(old: c_int, new: c_int) -> c_int {
    if !replace(old, new) {
        return fail(libc::EBADF);
    }
    // SAFETY: no pointers.
    copied(old, unsafe { next::dup2(old, new) })
}

/// # Safety
/// The arguments are valid for `dup3(2)`.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn dup3(old: c_int, new: c_int, flags: c_int) -> c_int {
    if old != new && flags & !libc::O_CLOEXEC == 0 && !replace(old, new) {
        return fail(libc::EBADF);
    }
    // SAFETY: no pointers.
    copied(old, unsafe { next::dup3(old, new, flags) })
}

/// `fcntl(2)`. The third argument is declared although C passes it as a variadic one: both use the
/// same register on every architecture that we build for.
///
/// # Safety
/// The arguments are valid for `fcntl(2)`.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn fcntl(fd: c_int, cmd: c_int, arg: c_long) -> c_int {
    if is_hidden(fd) {
        return fail(libc::EBADF);
    }
    if let (libc::F_DUPFD | libc::F_DUPFD_CLOEXEC, Ok(first)) = (cmd, c_int::try_from(arg)) {
        sockets::make_room(first); // Else the copy gets the next free number.
    }
    // SAFETY: arguments pass unchanged.
    after_fcntl(fd, cmd, arg, unsafe { next::fcntl(fd, cmd, arg) })
}

fn after_fcntl(fd: c_int, cmd: c_int, arg: c_long, result: c_int) -> c_int {
    match cmd {
        libc::F_DUPFD | libc::F_DUPFD_CLOEXEC => copied(fd, result),
        libc::F_SETFL => {
            if let Some(handle) = lookup(fd) {
                handle.flags_changed();
                if arg & c_long::from(libc::O_ASYNC) != 0 {
                    handle.stay_on_tcp(fd, Reason::SocketOption); // SIGIO is the kernel's to send.
                }
            }
            result
        }
        _ => result,
    }
}

/// `fdopen(3)`: stdio reads and writes the descriptor without our hooks, so it is downgraded.
///
/// # Safety
/// The arguments are valid for `fdopen(3)`.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn fdopen(fd: c_int, mode: *const c_char) -> *mut FILE {
    if let Some(handle) = lookup(fd) {
        handle.stay_on_tcp(fd, Reason::Stdio);
    }
    // SAFETY: arguments pass unchanged.
    unsafe { next::fdopen(fd, mode) }
}
