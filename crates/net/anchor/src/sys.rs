//! System calls that no crate of the workspace wraps.
#![expect(
    unsafe_code,
    reason = "no crate of the workspace wraps TUN devices, TCP_REPAIR and the state in TCP_INFO"
)]

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd};

use libc::{c_int, c_void, socklen_t};

use crate::urgent;

/// Bytes of an option that is an int.
const INT_BYTES: socklen_t = 4;
const _: () = assert!(size_of::<c_int>() == INT_BYTES as usize);

/// Makes `/dev/net/tun`, opened as `file`, the new device `name` for IP packets without a header
/// before them. Room for `name` was checked.
///
/// # Errors
/// EBUSY if a device has the name, EINVAL if it is not a valid name, EPERM without CAP_NET_ADMIN.
pub(crate) fn make_tun(file: &File, name: &str) -> io::Result<()> {
    // SAFETY: zeros are a valid ifreq.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    let room = &mut request.ifr_name[..libc::IFNAMSIZ - 1];
    for (to, byte) in room.iter_mut().zip(name.bytes()) {
        *to = libc::c_char::from_ne_bytes([byte]);
    }
    let flags = libc::IFF_TUN | libc::IFF_NO_PI | libc::IFF_TUN_EXCL;
    let flags = u16::try_from(flags).map_err(io::Error::other)?;
    request.ifr_ifru.ifru_flags = flags.cast_signed();
    // SAFETY: TUNSETIFF reads and writes one ifreq, which lives until the call returns.
    check(unsafe { libc::ioctl(file.as_raw_fd(), libc::TUNSETIFF, &raw mut request) })
}

/// Sets an option of a socket that is an int.
pub(crate) fn set(socket: &impl AsFd, level: c_int, option: c_int, value: c_int) -> io::Result<()> {
    let fd = socket.as_fd().as_raw_fd();
    let from: *const c_void = (&raw const value).cast();
    // SAFETY: `from` is readable for the bytes of an int.
    check(unsafe { libc::setsockopt(fd, level, option, from, INT_BYTES) })
}

/// The state of a TCP socket, a number of include/net/tcp_states.h: the first byte of TCP_INFO.
pub(crate) fn tcp_state(socket: &impl AsFd) -> io::Result<u8> {
    let fd = socket.as_fd().as_raw_fd();
    let mut state: u8 = 0;
    let to: *mut c_void = (&raw mut state).cast();
    let mut length: socklen_t = 1;
    // SAFETY: `to` is writable for `length`, and both live until the call returns.
    check(unsafe { libc::getsockopt(fd, libc::IPPROTO_TCP, libc::TCP_INFO, to, &raw mut length) })?;
    Ok(state)
}

/// Whether the next byte of a socket is urgent (`man 3 sockatmark`).
pub(crate) fn is_at_mark(socket: &impl AsFd) -> io::Result<bool> {
    let mut is_there: c_int = 0;
    let fd = socket.as_fd().as_raw_fd();
    // SAFETY: SIOCATMARK writes one int, which lives until the call returns.
    check(unsafe { libc::ioctl(fd, urgent::SIOCATMARK, &raw mut is_there) })?;
    Ok(is_there != 0)
}

fn check(done: c_int) -> io::Result<()> {
    if done < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}
