//! Hooks of the sending calls: write(2), send(2), sendmsg(2) and their variants; sendfile(2) and
//! splice(2).

#![expect(unsafe_code, reason = "C functions on the caller's memory")]
#![expect(
    clippy::multiple_unsafe_ops_per_block,
    reason = "a hook and the function of libc behind it share one promise of the caller"
)]

use super::{errno, fail, one, vectors};
use crate::symbols::next;
use core::ffi::{c_int, c_void};
use libc::{iovec, mmsghdr, msghdr, off_t, size_t, sockaddr, socklen_t, ssize_t};
use saiga_socket::{Errno, Handle, Reason, c_result, lookup, relay};

/// # Safety
/// The arguments are valid for `write(2)`.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn write(fd: c_int, buf: *const c_void, n: size_t) -> ssize_t {
    let Some(handle) = lookup(fd) else {
        // SAFETY: arguments pass unchanged.
        return unsafe { next::write(fd, buf, n) };
    };
    // SAFETY: the buffer is readable for its length.
    unsafe { handle.transmit(fd, &one(buf, n), 0, || next::write(fd, buf, n)) }
}

/// # Safety
/// The arguments are valid for `writev(2)`.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn writev(fd: c_int, iov: *const iovec, n: c_int) -> ssize_t {
    // SAFETY: our caller promises `n` vectors.
    match (lookup(fd), unsafe {
        vectors(iov, usize::try_from(n).unwrap_or(usize::MAX))
    }) {
        // SAFETY: the vectors are readable.
        (Some(h), Some(v)) => unsafe { h.transmit(fd, v, 0, || next::writev(fd, iov, n)) },
        // SAFETY: arguments pass unchanged.
        _ => unsafe { next::writev(fd, iov, n) },
    }
}

/// `pwritev2(2)`; with an offset of -1 it writes as `writev` does.
///
/// # Safety
/// The arguments are valid for `pwritev2(2)`.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn pwritev2(
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
        (Some(h), Some(v)) if at == -1 => {
            let nowait = if flags & libc::RWF_NOWAIT != 0 {
                libc::MSG_DONTWAIT
            } else {
                0
            };
            // SAFETY: the vectors are readable.
            unsafe { h.transmit(fd, v, nowait, || next::pwritev2(fd, iov, n, at, flags)) }
        }
        // SAFETY: arguments pass unchanged.
        _ => unsafe { next::pwritev2(fd, iov, n, at, flags) },
    }
}

/// # Safety
/// The arguments are valid for `send(2)`.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn send(
    fd: c_int,
    buf: *const c_void,
    n: size_t,
    flags: c_int,
) -> ssize_t {
    let Some(handle) = lookup(fd) else {
        // SAFETY: arguments pass unchanged.
        return unsafe { next::send(fd, buf, n, flags) };
    };
    // SAFETY: the buffer is readable for its length.
    unsafe { handle.transmit(fd, &one(buf, n), flags, || next::send(fd, buf, n, flags)) }
}

/// `sendto(2)`. TCP ignores the address of a connected socket, except for fast open.
///
/// # Safety
/// The arguments are valid for `sendto(2)`.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn sendto(
    fd: c_int,
    buf: *const c_void,
    n: size_t,
    flags: c_int,
    addr: *const sockaddr,
    len: socklen_t,
) -> ssize_t {
    let Some(handle) = lookup(fd) else {
        // SAFETY: arguments pass unchanged.
        return unsafe { next::sendto(fd, buf, n, flags, addr, len) };
    };
    // SAFETY: the buffer is readable for its length.
    unsafe {
        handle.transmit(fd, &one(buf, n), flags, || {
            next::sendto(fd, buf, n, flags, addr, len)
        })
    }
}

/// # Safety
/// The arguments are valid for `sendmsg(2)`.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn sendmsg(fd: c_int, msg: *const msghdr, flags: c_int) -> ssize_t {
    if msg.is_null() {
        // SAFETY: arguments pass unchanged.
        return unsafe { next::sendmsg(fd, msg, flags) };
    }
    match lookup(fd) {
        None => {
            // SAFETY: the message is valid as the caller promises.
            unsafe { downgrade_passed(&*msg) };
            // SAFETY: arguments pass unchanged.
            unsafe { next::sendmsg(fd, msg, flags) }
        }
        // SAFETY: the message is valid as the caller promises.
        Some(handle) => unsafe { send_message(handle, fd, &*msg, flags) },
    }
}

/// # Safety
/// The message is valid, its vectors are readable.
unsafe fn send_message(h: Handle, fd: c_int, msg: &msghdr, flags: c_int) -> ssize_t {
    if !h.is_bound() {
        // A descriptor returned by accept or connect may be a Unix socket.
        // SAFETY: promised by our caller.
        unsafe { downgrade_passed(msg) };
    } else if !msg.msg_control.is_null() && msg.msg_controllen > 0 {
        // The kernel checks control messages. None of them has an effect on a stream.
        let mut bare = *msg;
        bare.msg_iovlen = 0;
        // SAFETY: as our caller promises, without the vectors.
        if unsafe { next::sendmsg(fd, &raw const bare, flags) } < 0 {
            return -1;
        }
    }
    // SAFETY: promised by our caller.
    match unsafe { vectors(msg.msg_iov, msg.msg_iovlen) } {
        // SAFETY: promised by our caller.
        Some(v) => unsafe { h.transmit(fd, v, flags, || next::sendmsg(fd, msg, flags)) },
        // SAFETY: arguments pass unchanged.
        None => unsafe { next::sendmsg(fd, msg, flags) },
    }
}

/// Downgrades connections whose descriptors are passed to another process (SCM_RIGHTS): the
/// receiver may not have the library.
///
/// # Safety
/// The message is valid.
pub(super) unsafe fn downgrade_passed(msg: &msghdr) {
    if msg.msg_control.is_null() || msg.msg_controllen == 0 {
        return;
    }
    // SAFETY: the control buffer is valid as the caller promises.
    let mut at = unsafe { libc::CMSG_FIRSTHDR(msg) };
    while !at.is_null() {
        // SAFETY: CMSG_FIRSTHDR and CMSG_NXTHDR stay inside the buffer.
        let header = unsafe { &*at };
        if header.cmsg_level == libc::SOL_SOCKET && header.cmsg_type == libc::SCM_RIGHTS {
            let head = size_of::<libc::cmsghdr>();
            let count = (header.cmsg_len as usize).saturating_sub(head) / size_of::<c_int>();
            // SAFETY: the data follow the header.
            let data = unsafe { libc::CMSG_DATA(at) }.cast::<c_int>();
            for index in 0..count {
                // SAFETY: `count` descriptors by the header's own length.
                let passed = unsafe { data.add(index).read_unaligned() };
                if let Some(handle) = lookup(passed) {
                    handle.stay_on_tcp(passed, Reason::PassedOn);
                }
            }
        }
        // SAFETY: as above.
        at = unsafe { libc::CMSG_NXTHDR(msg, at) };
    }
}

/// Number of bytes in a message.
fn length_of(msg: &msghdr) -> usize {
    // SAFETY: the message has just been sent, so its vectors are readable.
    let all = unsafe { vectors(msg.msg_iov, msg.msg_iovlen) };
    all.map_or(0, |v| v.iter().map(|part| part.iov_len).sum())
}

/// `sendmmsg(2)`: one `sendmsg` after the other.
///
/// # Safety
/// The arguments are valid for `sendmmsg(2)`.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn sendmmsg(
    fd: c_int,
    msgs: *mut mmsghdr,
    n: u32,
    flags: c_int,
) -> c_int {
    let handle = lookup(fd);
    if msgs.is_null() && handle.is_some() {
        return fail(libc::EFAULT);
    }
    let Some(handle) = handle else {
        let count = if msgs.is_null() { 0 } else { n as usize };
        for index in 0..count {
            // SAFETY: the caller promises `n` messages.
            let message = unsafe { &*msgs.add(index) };
            // SAFETY: as above.
            unsafe { downgrade_passed(&message.msg_hdr) };
        }
        // SAFETY: arguments pass unchanged.
        return unsafe { next::sendmmsg(fd, msgs, n, flags) };
    };
    let mut done = 0;
    for index in 0..n as usize {
        // SAFETY: the caller promises `n` messages.
        let m = unsafe { &mut *msgs.add(index) };
        // SAFETY: as above.
        let sent = unsafe { send_message(handle, fd, &m.msg_hdr, flags) };
        let Ok(len) = u32::try_from(sent) else { break };
        m.msg_len = len;
        done += 1;
        if (len as usize) < length_of(&m.msg_hdr) {
            break; // Sent in part: the next message must not overtake the rest.
        }
    }
    if done > 0 || n == 0 { done } else { -1 }
}

/// `sendfile(2)`. Into a channel, the file is read and sent in pieces.
///
/// # Safety
/// The arguments are valid for `sendfile(2)`.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn sendfile(
    out: c_int,
    input: c_int,
    at: *mut off_t,
    n: size_t,
) -> ssize_t {
    let Some(handle) = lookup(out) else {
        // SAFETY: arguments pass unchanged.
        return unsafe { next::sendfile(out, input, at, n) };
    };
    // SAFETY: arguments pass unchanged.
    let by_kernel = handle.transmit_plain(out, || unsafe { next::sendfile(out, input, at, n) });
    // SAFETY: `at` is null or writable.
    by_kernel.unwrap_or_else(|| unsafe { send_file(handle, out, input, at, n) })
}

/// The source of a sendfile: the caller's offset, or the file's own position.
struct Source {
    file: c_int,
    at: *mut off_t,
}

impl Source {
    /// Reads without moving the position, like `pread(2)`.
    fn read(&self, buffer: &mut [u8]) -> isize {
        let from = if self.at.is_null() {
            // SAFETY: only reads the position.
            unsafe { libc::lseek(self.file, 0, libc::SEEK_CUR) }
        } else {
            // SAFETY: not null; readable as the caller of sendfile promises.
            unsafe { *self.at }
        };
        // SAFETY: no pointers.
        if from < 0 && unsafe { libc::fcntl(self.file, libc::F_GETFD) } < 0 {
            return -1; // EBADF takes precedence over EINVAL, which a negative position causes.
        }
        // SAFETY: the buffer is writable for its length.
        unsafe { libc::pread(self.file, buffer.as_mut_ptr().cast(), buffer.len(), from) }
    }

    /// Moves the position past the sent bytes.
    fn advance(&self, sent: usize) {
        let sent = off_t::try_from(sent).unwrap_or(0);
        if self.at.is_null() {
            // SAFETY: only moves the position.
            unsafe { libc::lseek(self.file, sent, libc::SEEK_CUR) };
        } else {
            // SAFETY: not null; writable as the caller of sendfile promises.
            unsafe { *self.at += sent };
        }
    }
}

/// # Safety
/// `at` is null or writable.
unsafe fn send_file(h: Handle, out: c_int, file: c_int, at: *mut off_t, n: size_t) -> ssize_t {
    let mut buffer = [0u8; 4096]; // A thread may have 16 KiB of stack.
    let source = Source { file, at };
    let mut done: usize = 0;
    while done < n {
        let want = (n - done).min(buffer.len());
        let got = source.read(&mut buffer[..want]);
        let Ok(got @ 1..) = usize::try_from(got) else {
            if done > 0 || got == 0 {
                return done.cast_signed();
            }
            return if errno() == libc::EISDIR {
                fail(libc::EINVAL) as ssize_t // The error of sendfile in this case.
            } else {
                -1
            };
        };
        let v = one(buffer.as_ptr().cast(), got);
        // SAFETY: `got` bytes of the buffer are filled.
        let sent = unsafe { h.transmit(out, &v, 0, || next::write(out, v[0].iov_base, got)) };
        let Ok(sent) = usize::try_from(sent) else {
            return if done > 0 { done.cast_signed() } else { -1 };
        };
        done += sent;
        source.advance(sent);
        if sent < got {
            break;
        }
    }
    done.cast_signed()
}

/// `splice(2)`. Out of a channel: peeks, writes to the pipe, drops the written bytes. Into a
/// channel: reads the pipe and sends.
///
/// # Safety
/// The arguments are valid for `splice(2)`.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn splice(
    from: c_int,
    from_at: *mut off_t,
    to: c_int,
    to_at: *mut off_t,
    n: size_t,
    flags: u32,
) -> ssize_t {
    // The flag concerns the pipe; O_NONBLOCK decides whether the socket waits.
    let nonblocking = flags & libc::SPLICE_F_NONBLOCK != 0;
    let both = lookup(from).is_some() && lookup(to).is_some();
    if both || !from_at.is_null() || !to_at.is_null() {
        // Offsets for sockets and pipes, or no pipe at all: the kernel refuses the call.
        // SAFETY: arguments pass unchanged.
        return unsafe { next::splice(from, from_at, to, to_at, n, flags) };
    }
    if let Some(h) = lookup(from).filter(|h| h.is_bound() && is_pipe(to)) {
        let moved = relay(h, from, n, 0, |bytes| {
            if nonblocking && !is_ready(to, libc::POLLOUT) {
                return Err(Errno(libc::EAGAIN));
            }
            // SAFETY: the bytes are readable.
            let put = unsafe { next::write(to, bytes.as_ptr().cast(), bytes.len()) };
            usize::try_from(put).map_err(|_| Errno(errno()))
        });
        if let Some(result) = moved.transpose() {
            return c_result(result);
        }
    }
    if let Some(h) = lookup(to).filter(|h| h.is_bound()) {
        // SAFETY: as our caller promises.
        if let Some(moved) = unsafe { splice_into(h, from, to, n, flags) } {
            return moved;
        }
        // SAFETY: arguments pass unchanged.
        return unsafe { next::splice(from, from_at, to, to_at, n, flags) };
    }
    for fd in [from, to] {
        if let Some(handle) = lookup(fd) {
            handle.stay_on_tcp(fd, Reason::UnsupportedCall);
        }
    }
    // SAFETY: arguments pass unchanged.
    unsafe { next::splice(from, from_at, to, to_at, n, flags) }
}

/// Whether `fd` is a pipe. From a socket, the kernel splices only into pipes.
fn is_pipe(fd: c_int) -> bool {
    // SAFETY: no pointers; changes nothing.
    unsafe { next::fcntl(fd, libc::F_GETPIPE_SZ, 0) >= 0 }
}

/// Whether a pipe can be read or written without blocking, or has an error to report.
fn is_ready(pipe: c_int, events: i16) -> bool {
    let mut entry = libc::pollfd {
        fd: pipe,
        events,
        revents: 0,
    };
    // SAFETY: one record.
    unsafe { next::poll(&raw mut entry, 1, 0) != 0 }
}

/// Splices a pipe into a channel. The pipe's bytes cannot be returned, so no more are taken than
/// there is room for, and all of those are sent, however long it takes. `None`: nothing can be sent
/// any more; the kernel reports why and leaves the pipe as it is.
///
/// # Safety
/// As `splice(2)` without offsets.
unsafe fn splice_into(h: Handle, from: c_int, to: c_int, n: size_t, flags: u32) -> Option<ssize_t> {
    if flags & libc::SPLICE_F_NONBLOCK != 0 && !is_ready(from, libc::POLLIN) {
        return Some(fail(libc::EAGAIN) as ssize_t);
    }
    // SAFETY: no pointers; changes nothing.
    let status = unsafe { next::fcntl(to, libc::F_GETFL, 0) };
    let blocks = status & libc::O_NONBLOCK == 0;
    let mut room = libc::pollfd {
        fd: to,
        events: libc::POLLOUT,
        revents: 0,
    };
    // SAFETY: one record.
    let ready = unsafe { super::poll::poll(&raw mut room, 1, if blocks { -1 } else { 0 }) };
    if ready <= 0 {
        return Some(if ready == 0 {
            fail(libc::EAGAIN) as ssize_t
        } else {
            -1
        });
    }
    if h.is_shut() || room.revents & (libc::POLLERR | libc::POLLHUP) != 0 {
        return None;
    }
    let mut buffer = [0u8; 4096];
    let want = n
        .min(h.ring_room().unwrap_or(buffer.len()))
        .min(buffer.len());
    // SAFETY: the buffer has room.
    let got = unsafe { next::read(from, buffer.as_mut_ptr().cast(), want) };
    let Ok(got @ 1..) = usize::try_from(got) else {
        return Some(got);
    };
    Some(c_result(h.transmit_all(to, &buffer[..got])))
}
