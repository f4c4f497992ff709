//! System calls that no crate of the workspace wraps.
#![expect(unsafe_code, reason = "system calls")]

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, RawFd};

/// Bytes of an option that is an int.
const INT_BYTES: libc::socklen_t = 4;
const _: () = assert!(size_of::<libc::c_int>() == INT_BYTES as usize);

/// Moves the calling thread into a network namespace of its own.
pub(crate) fn unshare_network() -> io::Result<()> {
    // SAFETY: unshare(2) takes no pointer, and a network namespace concerns no memory.
    check(unsafe { libc::unshare(libc::CLONE_NEWNET) })
}

/// Makes the TUN device `name` of an open `/dev/net/tun`: packets without a header of the driver.
pub(crate) fn set_tun(file: &File, name: &str) -> io::Result<()> {
    let flags =
        libc::c_short::try_from(libc::IFF_TUN | libc::IFF_NO_PI).map_err(io::Error::other)?;
    let mut request = libc::ifreq {
        ifr_name: [0; libc::IFNAMSIZ],
        ifr_ifru: libc::__c_anonymous_ifr_ifru { ifru_flags: flags },
    };
    for (to, from) in request.ifr_name.iter_mut().zip(name.bytes()) {
        *to = libc::c_char::from_ne_bytes([from]);
    }
    // SAFETY: TUNSETIFF reads and writes one ifreq, which lives until the call returns.
    check(unsafe { libc::ioctl(file.as_raw_fd(), libc::TUNSETIFF, &raw mut request) })
}

/// Sets a buffer of a socket beyond the limit of the host: `SO_SNDBUFFORCE` or `SO_RCVBUFFORCE`.
pub(crate) fn force_buffer(
    socket: RawFd,
    option: libc::c_int,
    bytes: libc::c_int,
) -> io::Result<()> {
    // SAFETY: the option reads one int, which lives until the call returns.
    check(unsafe {
        libc::setsockopt(
            socket,
            libc::SOL_SOCKET,
            option,
            (&raw const bytes).cast(),
            INT_BYTES,
        )
    })
}

/// Lets the timers of the calling thread expire on time instead of 50 us later.
pub(crate) fn use_exact_timers() -> io::Result<()> {
    // SAFETY: PR_SET_TIMERSLACK takes a number.
    check(unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1) })
}

/// Reads and drops what has arrived; 0 at the end of the stream.
pub(crate) fn discard(socket: RawFd, most: usize) -> io::Result<usize> {
    // SAFETY: with MSG_TRUNC, TCP drops the bytes and writes none (man 7 tcp).
    let count = unsafe {
        libc::recv(
            socket,
            std::ptr::null_mut(),
            most,
            libc::MSG_TRUNC | libc::MSG_DONTWAIT,
        )
    };
    usize::try_from(count).map_err(|_| io::Error::last_os_error())
}

fn check(result: libc::c_int) -> io::Result<()> {
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}
