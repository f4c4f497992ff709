//! Urgent bytes of an anchor: they stay in the stream, and each side is told where they are.
//!
//! Spec: RFC 9293 §3.8.5, RFC 6093, `man 7 tcp`, `man 3 sockatmark`.

use std::io;
use std::os::fd::AsFd;

use rustix::net::sockopt::set_socket_oobinline;

use crate::sys;

/// The request of ioctl(2) by which [`is_next`] asks, the same on x86-64 and Arm
/// (asm-generic/sockios.h).
pub const SIOCATMARK: libc::Ioctl = 0x8905;

/// Keeps urgent bytes in the stream. Without it, a read skips them.
///
/// The library, under which a gateway may run, is not told: rustix makes the system call itself. It
/// would keep the anchor on TCP, although it leaves its channel in any case when the server sends
/// the first urgent byte.
///
/// # Errors
/// The errors of `setsockopt(2)`.
pub fn keep_in_stream(anchor: impl AsFd) -> io::Result<()> {
    Ok(set_socket_oobinline(anchor, true)?)
}

/// Whether the next byte is urgent. A read ends before it.
///
/// # Errors
/// The errors of `ioctl(2)`.
pub fn is_next(anchor: impl AsFd) -> io::Result<bool> {
    sys::is_at_mark(&anchor)
}
