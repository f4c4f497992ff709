//! Waits for bytes on many connections by `epoll(7)`.
//!
//! The calls go through libc, not through direct system calls, because under Saiga the library must
//! see the wait, as that of any event loop.

#![expect(
    unsafe_code,
    reason = "epoll has no wrapper in std, and rustix bypasses libc"
)]

use std::io;
use std::net::TcpStream;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// Returns when one of `streams` is readable or closed.
pub(super) fn until_any_is_readable(streams: &[TcpStream]) -> io::Result<()> {
    // SAFETY: the call takes a flag only.
    let set = checked(unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) })?;
    // SAFETY: the descriptor is new and has no other owner.
    let set = unsafe { OwnedFd::from_raw_fd(set) };
    let mut event = libc::epoll_event {
        events: u32::try_from(libc::EPOLLIN).unwrap_or(1),
        u64: 0,
    };
    for stream in streams {
        let (set, stream) = (set.as_raw_fd(), stream.as_raw_fd());
        // SAFETY: both descriptors are open, and `event` is valid for reads.
        checked(unsafe { libc::epoll_ctl(set, libc::EPOLL_CTL_ADD, stream, &raw mut event) })?;
    }
    loop {
        // SAFETY: `event` has room for the one event requested.
        match checked(unsafe { libc::epoll_wait(set.as_raw_fd(), &raw mut event, 1, -1) }) {
            Ok(0) => {}
            Ok(_) => return Ok(()),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

fn checked(returned: i32) -> io::Result<i32> {
    if returned < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(returned)
    }
}
