//! Hooks of socket options, ioctls and shutdown. Options that a channel cannot honour downgrade the
//! connection; values that the kernel cannot know are added.

#![expect(unsafe_code, reason = "C functions on the caller's memory")]

use super::fail;
use crate::symbols::next;
use core::ffi::{c_int, c_long, c_void};
use libc::socklen_t;
use saiga_socket::{Reason, is_hidden, lookup};

/// # Safety
/// The arguments are valid for `shutdown(2)`.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn shutdown(fd: c_int, how: c_int) -> c_int {
    if let Some(handle) = lookup(fd) {
        handle.shutting_down(fd, how);
    }
    // SAFETY: no pointers.
    unsafe { next::shutdown(fd, how) }
}

/// # Safety
/// The arguments are valid for `setsockopt(2)`.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn setsockopt(
    fd: c_int,
    level: c_int,
    name: c_int,
    value: *const c_void,
    len: socklen_t,
) -> c_int {
    let mut reason = match (level, name) {
        (
            libc::SOL_SOCKET,
            libc::SO_ZEROCOPY
            | libc::SO_OOBINLINE
            | libc::SO_PEEK_OFF
            | libc::SO_TIMESTAMP
            | libc::SO_TIMESTAMPNS
            | libc::SO_TIMESTAMPING,
        )
        | (libc::IPPROTO_TCP, libc::TCP_INQ) => Some(Reason::SocketOption),
        // The kernel itself reads the received bytes, and cannot read a ring.
        (libc::IPPROTO_TCP, libc::TCP_ULP | libc::TCP_REPAIR) => Some(Reason::UnsupportedCall),
        _ => None,
    };
    // SAFETY: as our caller promises.
    if unsafe { is_negative_time(level, name, value, len) } {
        reason = Some(Reason::SocketOption);
    }
    if let (Some(reason), Some(handle)) = (reason, lookup(fd)) {
        handle.stay_on_tcp(fd, reason);
    }
    // SAFETY: arguments pass unchanged.
    let result = unsafe { next::setsockopt(fd, level, name, value, len) };
    match (level, name, lookup(fd).filter(|_| result == 0)) {
        (libc::SOL_SOCKET, libc::SO_RCVLOWAT, Some(handle)) => handle.low_water_changed(fd),
        (libc::IPPROTO_TCP, libc::TCP_NOTSENT_LOWAT, Some(handle)) => {
            handle.unsent_mark_changed(fd);
        }
        _ => {}
    }
    result
}

/// Whether a timeout is negative: calls do not wait then, but the option reads back as 0.
///
/// # Safety
/// `value` is null or readable for `len` bytes.
unsafe fn is_negative_time(
    level: c_int,
    name: c_int,
    value: *const c_void,
    len: socklen_t,
) -> bool {
    if level != libc::SOL_SOCKET
        || !matches!(name, libc::SO_RCVTIMEO | libc::SO_SNDTIMEO)
        || value.is_null()
        || (len as usize) < size_of::<libc::timeval>()
    {
        return false;
    }
    // SAFETY: the option is a timeval, and within `len`.
    unsafe { value.cast::<libc::timeval>().read_unaligned() }.tv_sec < 0
}

/// # Safety
/// The arguments are valid for `getsockopt(2)`.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn getsockopt(
    fd: c_int,
    level: c_int,
    name: c_int,
    value: *mut c_void,
    len: *mut socklen_t,
) -> c_int {
    if (level, name) == (libc::IPPROTO_TCP, libc::TCP_ZEROCOPY_RECEIVE)
        // SAFETY: promised by our caller.
        && unsafe { leaves_all_to_recv(fd, value, len) }
    {
        return 0;
    }
    // SAFETY: arguments pass unchanged.
    let result = unsafe { next::getsockopt(fd, level, name, value, len) };
    let asks_error = level == libc::SOL_SOCKET && name == libc::SO_ERROR && result == 0;
    if asks_error && lookup(fd).is_some_and(|h| h.take_reset(fd)) {
        // SAFETY: the kernel has just written the option there: an int for SO_ERROR, unless
        // the caller gave less room, which the length shows.
        if unsafe { *len } as usize >= size_of::<c_int>() {
            // SAFETY: as above.
            unsafe { value.cast::<c_int>().write_unaligned(libc::ECONNRESET) };
        }
    }
    result
}

/// Answers TCP_ZEROCOPY_RECEIVE on a channel as the kernel does for bytes that it cannot map: none
/// are mapped, and all are left to recv. The kernel would take bytes of TCP that no hook counts.
///
/// # Safety
/// As for `getsockopt(2)`.
unsafe fn leaves_all_to_recv(fd: c_int, value: *mut c_void, len: *mut socklen_t) -> bool {
    // Words of `struct tcp_zerocopy_receive` (include/uapi/linux/tcp.h).
    const LENGTH: usize = 2;
    const RECV_SKIP_HINT: usize = 3;
    const INQ: usize = 4;
    const ERR: usize = 5;
    const COPYBUF_LEN: usize = 8;
    let unread = || lookup(fd)?.readable_bytes(fd);
    if value.is_null() || len.is_null() {
        return false;
    }
    // SAFETY: not null, so readable.
    let words = unsafe { len.read() } as usize / size_of::<c_int>();
    let Some(bytes) = Some(words)
        .filter(|n| *n > RECV_SKIP_HINT)
        .and_then(|_| unread())
    else {
        return false;
    };
    let zeros = [LENGTH, ERR, COPYBUF_LEN].map(|word| (word, 0));
    for (word, number) in zeros
        .into_iter()
        .chain([(RECV_SKIP_HINT, bytes), (INQ, bytes)])
    {
        if word < words {
            // SAFETY: the word lies within the length that the caller passed.
            let at = unsafe { value.cast::<c_int>().add(word) };
            // SAFETY: as above.
            unsafe { at.write_unaligned(number) };
        }
    }
    true
}

/// `ioctl(2)`; its argument is passed like that of `fcntl`.
///
/// # Safety
/// The arguments are valid for `ioctl(2)`.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn ioctl(fd: c_int, request: c_long, arg: c_long) -> c_int {
    if is_hidden(fd) {
        return fail(libc::EBADF);
    }
    // SAFETY: arguments pass unchanged.
    let result = unsafe { next::ioctl(fd, request, arg) };
    let Some(handle) = lookup(fd).filter(|_| result >= 0) else {
        return result;
    };
    let out: *mut c_int = core::ptr::with_exposed_provenance_mut(super::word(arg));
    match u64::try_from(request).unwrap_or(0) {
        libc::FIONBIO => handle.flags_changed(),
        libc::FIOASYNC => handle.stay_on_tcp(fd, saiga_socket::Reason::SocketOption),
        libc::FIONREAD => {
            if let Some(n) = handle.readable_bytes(fd) {
                // SAFETY: the kernel has just written one int there.
                unsafe { *out = n };
            }
        }
        libc::TIOCOUTQ => {
            if let Some(n) = handle.unread_bytes() {
                // SAFETY: as above.
                unsafe { *out += n };
            }
        }
        _ => {}
    }
    result
}
