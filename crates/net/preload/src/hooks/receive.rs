//! Hooks of the receiving calls: read(2), readv(2), recv(2), recvmsg(2) and their variants.

#![expect(unsafe_code, reason = "C functions on the caller's memory")]
#![expect(
    clippy::multiple_unsafe_ops_per_block,
    reason = "a hook and the function of libc behind it share one promise of the caller"
)]

use super::{fail, one, vectors};
use crate::symbols::next;
use core::ffi::{c_int, c_void};
use libc::{iovec, mmsghdr, msghdr, off_t, size_t, sockaddr, socklen_t, ssize_t, timespec};
use saiga_socket::{Handle, Reason, lookup};

/// # Safety
/// The arguments are valid for `read(2)`.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn read(fd: c_int, buf: *mut c_void, n: size_t) -> ssize_t {
    // A read of 0 bytes does not depend on the socket.
    let Some(handle) = lookup(fd).filter(|_| n > 0) else {
        // SAFETY: arguments pass unchanged, so our caller's promise is libc's.
        return unsafe { next::read(fd, buf, n) };
    };
    // SAFETY: as above.
    unsafe { handle.receive(fd, &one(buf, n), 0, || next::read(fd, buf, n)) }
}

/// `read` with a check of the buffer's size (`_FORTIFY_SOURCE`).
///
/// # Safety
/// As `read(2)`; `room` is the size of the buffer.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn __read_chk(
    fd: c_int,
    buf: *mut c_void,
    n: size_t,
    room: size_t,
) -> ssize_t {
    match lookup(fd) {
        // SAFETY: libc's own check passes, so the buffer has room.
        Some(_) if n <= room => unsafe { read(fd, buf, n) },
        // SAFETY: arguments pass unchanged.
        _ => unsafe { next::__read_chk(fd, buf, n, room) },
    }
}

/// Whether there is room for a byte. Like read, a readv of 0 bytes does not depend on the socket.
fn takes(v: &[iovec]) -> bool {
    v.iter().any(|v| v.iov_len > 0)
}

/// # Safety
/// The arguments are valid for `readv(2)`.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn readv(fd: c_int, iov: *const iovec, n: c_int) -> ssize_t {
    // SAFETY: our caller promises `n` vectors.
    match (lookup(fd), unsafe {
        vectors(iov, usize::try_from(n).unwrap_or(usize::MAX))
    }) {
        // SAFETY: the vectors are writable.
        (Some(h), Some(v)) if takes(v) => unsafe {
            h.receive(fd, v, 0, || next::readv(fd, iov, n))
        },
        // SAFETY: arguments pass unchanged.
        _ => unsafe { next::readv(fd, iov, n) },
    }
}

/// `preadv2(2)`; with an offset of -1 it reads as `readv` does.
///
/// # Safety
/// The arguments are valid for `preadv2(2)`.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn preadv2(
    fd: c_int,
    iov: *const iovec,
    n: c_int,
    at: off_t,
    flags: c_int,
) -> ssize_t {
    // SAFETY: our caller promises `n` vectors.
    match (lookup(fd), unsafe {
        vectors(iov, usize::try_from(n).unwrap_or(usize::MAX))
    }) {
        (Some(h), Some(v)) if at == -1 && takes(v) => {
            let nowait = if flags & libc::RWF_NOWAIT != 0 {
                libc::MSG_DONTWAIT
            } else {
                0
            };
            // SAFETY: the vectors are writable.
            unsafe { h.receive(fd, v, nowait, || next::preadv2(fd, iov, n, at, flags)) }
        }
        // SAFETY: arguments pass unchanged.
        _ => unsafe { next::preadv2(fd, iov, n, at, flags) },
    }
}

/// # Safety
/// The arguments are valid for `recv(2)`.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn recv(
    fd: c_int,
    buf: *mut c_void,
    n: size_t,
    flags: c_int,
) -> ssize_t {
    let Some(handle) = lookup(fd) else {
        // SAFETY: arguments pass unchanged.
        return unsafe { next::recv(fd, buf, n, flags) };
    };
    // SAFETY: the buffer is writable for its length.
    unsafe { handle.receive(fd, &one(buf, n), flags, || next::recv(fd, buf, n, flags)) }
}

/// `recv` with a check of the buffer's size (`_FORTIFY_SOURCE`).
///
/// # Safety
/// As `recv(2)`; `room` is the size of the buffer.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn __recv_chk(
    fd: c_int,
    buf: *mut c_void,
    n: size_t,
    room: size_t,
    flags: c_int,
) -> ssize_t {
    match lookup(fd) {
        // SAFETY: libc's own check passes.
        Some(_) if n <= room => unsafe { recv(fd, buf, n, flags) },
        // SAFETY: arguments pass unchanged.
        _ => unsafe { next::__recv_chk(fd, buf, n, room, flags) },
    }
}

/// `recvfrom(2)`. A connected TCP socket reports no address.
///
/// # Safety
/// The arguments are valid for `recvfrom(2)`.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn recvfrom(
    fd: c_int,
    buf: *mut c_void,
    n: size_t,
    flags: c_int,
    addr: *mut sockaddr,
    len: *mut socklen_t,
) -> ssize_t {
    let Some(handle) = lookup(fd) else {
        // SAFETY: arguments pass unchanged.
        return unsafe { next::recvfrom(fd, buf, n, flags, addr, len) };
    };
    let mut asked_libc = false;
    // SAFETY: the buffer is writable for its length.
    let got = unsafe {
        handle.receive(fd, &one(buf, n), flags, || {
            asked_libc = true;
            next::recvfrom(fd, buf, n, flags, addr, len)
        })
    };
    if !asked_libc && got >= 0 && !addr.is_null() && !len.is_null() {
        // SAFETY: writable as the caller promises.
        unsafe { *len = 0 };
    }
    got
}

/// `recvfrom` with a check of the buffer's size (`_FORTIFY_SOURCE`).
///
/// # Safety
/// As `recvfrom(2)`; `room` is the size of the buffer.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn __recvfrom_chk(
    fd: c_int,
    buf: *mut c_void,
    n: size_t,
    room: size_t,
    flags: c_int,
    addr: *mut sockaddr,
    len: *mut socklen_t,
) -> ssize_t {
    match lookup(fd) {
        // SAFETY: libc's own check passes.
        Some(_) if n <= room => unsafe { recvfrom(fd, buf, n, flags, addr, len) },
        // SAFETY: arguments pass unchanged.
        _ => unsafe { next::__recvfrom_chk(fd, buf, n, room, flags, addr, len) },
    }
}

/// # Safety
/// The arguments are valid for `recvmsg(2)`.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn recvmsg(fd: c_int, msg: *mut msghdr, flags: c_int) -> ssize_t {
    let handle = lookup(fd).filter(|_| !msg.is_null());
    let Some(handle) = handle else {
        // SAFETY: arguments pass unchanged.
        return unsafe { next::recvmsg(fd, msg, flags) };
    };
    // SAFETY: the message is valid as the caller promises.
    unsafe { receive_message(handle, fd, &mut *msg, flags) }
}

/// # Safety
/// The message's vectors are writable.
unsafe fn receive_message(h: Handle, fd: c_int, msg: &mut msghdr, flags: c_int) -> ssize_t {
    let at = core::ptr::from_mut(msg);
    // SAFETY: promised by our caller.
    let Some(v) = (unsafe { vectors(msg.msg_iov, msg.msg_iovlen) }) else {
        // SAFETY: arguments pass unchanged.
        return unsafe { next::recvmsg(fd, at, flags) };
    };
    let mut asked_libc = false;
    // SAFETY: promised by our caller.
    let got = unsafe {
        h.receive(fd, v, flags, || {
            asked_libc = true;
            next::recvmsg(fd, at, flags)
        })
    };
    if !asked_libc && got >= 0 {
        msg.msg_namelen = 0;
        msg.msg_controllen = 0;
        msg.msg_flags = 0;
    }
    got
}

/// `recvmmsg(2)`: one `recvmsg` after the other. With MSG_WAITFORONE only the first waits.
///
/// # Safety
/// The arguments are valid for `recvmmsg(2)`.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn recvmmsg(
    fd: c_int,
    msgs: *mut mmsghdr,
    n: u32,
    flags: c_int,
    timeout: *mut timespec,
) -> c_int {
    let Some(handle) = lookup(fd) else {
        // SAFETY: arguments pass unchanged.
        return unsafe { next::recvmmsg(fd, msgs, n, flags, timeout) };
    };
    if !handle.is_bound() {
        handle.stay_on_tcp(fd, Reason::UnsupportedCall);
        // SAFETY: arguments pass unchanged.
        return unsafe { next::recvmmsg(fd, msgs, n, flags, timeout) };
    }
    if msgs.is_null() {
        return fail(libc::EFAULT);
    }
    let mut flags = flags;
    let mut done = 0;
    for index in 0..n as usize {
        // SAFETY: the caller promises `n` messages.
        let m = unsafe { &mut *msgs.add(index) };
        // SAFETY: as above.
        let got =
            unsafe { receive_message(handle, fd, &mut m.msg_hdr, flags & !libc::MSG_WAITFORONE) };
        let Ok(len) = u32::try_from(got) else { break };
        m.msg_len = len;
        done += 1;
        if flags & libc::MSG_WAITFORONE != 0 {
            flags |= libc::MSG_DONTWAIT;
        }
    }
    if done > 0 || n == 0 { done } else { -1 }
}
