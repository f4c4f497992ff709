//! Who is at the other end of a Unix socket.
//!
//! Source: `man 7 unix`, SO_PEERCRED: the credentials of the process that called connect(2). The
//! structure of rustix does not allow the process number 0, which the kernel gives for a process of
//! another PID namespace; so this asks the C library.
#![expect(unsafe_code, reason = "getsockopt(2) with a structure")]

use std::io;
use std::os::fd::AsRawFd as _;
use std::os::unix::net::UnixStream;

/// Whether the client is root or has the user of this process.
pub(super) fn is_admitted(client: &UnixStream) -> bool {
    let own = rustix::process::geteuid().as_raw();
    user(client).is_ok_and(|user| user == 0 || user == own)
}

/// The effective user of the client when it connected.
fn user(client: &UnixStream) -> io::Result<u32> {
    let mut credentials = libc::ucred {
        pid: 0,
        uid: u32::MAX,
        gid: u32::MAX,
    };
    let size = size_of::<libc::ucred>();
    let mut length = libc::socklen_t::try_from(size).map_err(io::Error::other)?;
    // SAFETY: the pointers are to a structure of `length` bytes, which has no invalid values, and
    // to its length; both outlive the call.
    let done = unsafe {
        libc::getsockopt(
            client.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_PEERCRED,
            (&raw mut credentials).cast(),
            &raw mut length,
        )
    };
    if done != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(credentials.uid)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_is_admitted_and_an_unknown_one_is_not() {
        let (client, _server) = UnixStream::pair().unwrap();
        assert!(is_admitted(&client));
        // A socket without a peer has the credentials of no user.
        let alone = socket2::Socket::new(socket2::Domain::UNIX, socket2::Type::STREAM, None);
        let alone = UnixStream::from(std::os::fd::OwnedFd::from(alone.unwrap()));
        assert!(!is_admitted(&alone));
    }
}
