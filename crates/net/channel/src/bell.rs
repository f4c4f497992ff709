//! Doorbells, which wake sleeping threads.
//!
//! A bell is a datagram socket with a random abstract name (scoped to the network namespace);
//! ringing sends one byte to the name. So a channel can move between wait slots by one store, no
//! descriptor is passed, and ringing a bell that is closed fails cleanly. A ring by an unrelated
//! process causes one spurious wake-up.

use crate::sys::{self, Errno, Fd, Sys};
use core::sync::atomic::{AtomicI32, Ordering};

/// `sa_family`, the leading NUL of an abstract name, the prefix and 16 hex digits.
const NAME_BYTES: usize = 2 + 1 + PREFIX.len() + 16;
const PREFIX: &[u8] = b"saiga-bell-";
/// Rings removed from a bell at once. A socket holds ten (net.unix.max_dgram_qlen) unless the
/// administrator has raised the limit.
const MOST_RINGS: u32 = 64;

/// The bell of one wait slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bell {
    /// Socket that becomes readable when the bell is rung.
    pub fd: Fd,
    /// Random name of the socket; never 0.
    pub name: u64,
}

fn address(name: u64) -> [u8; NAME_BYTES] {
    let mut out = [0; NAME_BYTES];
    let family = u16::try_from(libc::AF_UNIX).unwrap_or(0).to_ne_bytes();
    out[..2].copy_from_slice(&family);
    out[3..3 + PREFIX.len()].copy_from_slice(PREFIX);
    for (i, digit) in out[3 + PREFIX.len()..].iter_mut().enumerate() {
        let nibble = (name >> (60 - 4 * i)) & 0xf;
        *digit = b"0123456789abcdef"[usize::try_from(nibble).unwrap_or(0)];
    }
    out
}

impl Bell {
    /// Makes a bell whose descriptor is at `floor` or above, close-on-exec, non-blocking.
    ///
    /// # Errors
    /// EMFILE and other errors of the system calls.
    pub fn create(floor: usize) -> Sys<Bell> {
        let kind = libc::SOCK_DGRAM | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
        let fd = sys::move_up(sys::socket(libc::AF_UNIX, kind, 0)?, floor)?;
        for _ in 0..4 {
            let name = sys::random() | 1;
            match sys::bind(fd, &address(name)) {
                Ok(()) => return Ok(Bell { fd, name }),
                Err(Errno(libc::EADDRINUSE)) => {}
                Err(e) => {
                    sys::close(fd);
                    return Err(e);
                }
            }
        }
        sys::close(fd);
        Err(Errno(libc::EADDRINUSE))
    }

    /// Removes one ring from the bell; true if there was one.
    #[must_use]
    pub fn drain(&self) -> bool {
        sys::recv(self.fd, &mut [0; 8], libc::MSG_DONTWAIT).is_ok()
    }

    /// Removes all rings from the bell, at most as many as it holds by default. Further ones, sent
    /// by processes that flood the bell, wake its owner once more.
    pub fn drain_all(&self) {
        for _ in 0..MOST_RINGS {
            if !self.drain() {
                return;
            }
        }
    }

    /// Closes the bell; later rings fail in the ringing process.
    pub fn close(self) {
        sys::close(self.fd);
    }
}

/// Rings the bells of other processes, by one unnamed datagram socket.
#[derive(Debug)]
pub struct Ringer {
    fd: AtomicI32,
}

impl Default for Ringer {
    fn default() -> Self {
        Self::new()
    }
}

impl Ringer {
    /// A ringer without a socket yet.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            fd: AtomicI32::new(-1),
        }
    }

    /// Opens the socket if necessary, at `floor` or above.
    ///
    /// # Errors
    /// EMFILE and other errors: no channel may be used then, because no thread could be woken.
    pub fn open(&self, floor: usize) -> Sys<()> {
        if self.fd.load(Ordering::Acquire) >= 0 {
            return Ok(());
        }
        let kind = libc::SOCK_DGRAM | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
        let fd = sys::move_up(sys::socket(libc::AF_UNIX, kind, 0)?, floor)?;
        let raced = self
            .fd
            .compare_exchange(-1, fd, Ordering::AcqRel, Ordering::Acquire)
            .is_err();
        if raced {
            sys::close(fd);
        }
        Ok(())
    }

    /// Rings a bell. Does nothing for a bell that is closed or rung already.
    ///
    /// # Errors
    /// The former descriptor of our socket, if the application has closed it; it is forgotten.
    pub fn ring(&self, name: u64) -> Result<(), Fd> {
        let flags = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;
        let fd = self.fd();
        match sys::sendto(fd, b"!", flags, &address(name)) {
            Err(Errno(libc::EBADF | libc::ENOTSOCK)) if fd >= 0 => {
                let _ = self
                    .fd
                    .compare_exchange(fd, -1, Ordering::AcqRel, Ordering::Relaxed);
                Err(fd)
            }
            _ => Ok(()),
        }
    }

    /// Descriptor of the socket; -1 if there is none.
    #[must_use]
    pub fn fd(&self) -> Fd {
        self.fd.load(Ordering::Relaxed)
    }

    /// The word with the number of the socket.
    #[must_use]
    pub fn holder(&self) -> &AtomicI32 {
        &self.fd
    }

    /// Forgets the socket, in a forked child, and returns it; -1 when there is none.
    pub fn forget(&self) -> Fd {
        let fd = self.fd();
        if fd >= 0 {
            self.fd.store(-1, Ordering::Release);
        }
        fd
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::UdpSocket;
    use std::os::fd::AsRawFd as _;

    /// Other processes can ring faster than a thread can drain. A socket of this kind holds more
    /// rings than a bell's by default.
    #[test]
    fn a_flooded_bell_is_drained_in_part() {
        let socket = UdpSocket::bind("127.0.0.1:0").expect("a port");
        socket.set_nonblocking(true).expect("an option");
        let address = socket.local_addr().expect("it is bound");
        for _ in 0..MOST_RINGS + 3 {
            socket.send_to(b"!", address).expect("the socket exists");
        }
        let bell = Bell {
            fd: socket.as_raw_fd(),
            name: 1,
        };
        bell.drain_all();
        let left = (0..).take_while(|_| bell.drain()).count();
        assert_eq!(left, 3);
        bell.drain_all(); // Empty: it does not wait.
    }
}
