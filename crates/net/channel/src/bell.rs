//! Doorbells: how a sleeping waiting place is woken.
//!
//! A bell is a datagram socket with a random abstract name (scoped to the network
//! namespace); ringing sends one byte to the name. So a channel can move between
//! waiting places by one store, no descriptor travels, and ringing a bell that is
//! gone fails cleanly. A stranger who rings causes one spurious wake-up.

use crate::sys::{self, Errno, Fd, Sys};
use core::sync::atomic::{AtomicI32, Ordering};

/// `sa_family`, the leading NUL of an abstract name, the prefix and 16 hex digits.
const NAME_BYTES: usize = 2 + 1 + PREFIX.len() + 16;
const PREFIX: &[u8] = b"saiga-bell-";
/// Rings taken out of a bell at once. A socket holds ten (net.unix.max_dgram_qlen) unless the
/// administrator has raised that.
const MOST_RINGS: u32 = 64;

/// The bell of one waiting place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bell {
    /// Socket that becomes readable when the bell is rung.
    pub fd: Fd,
    /// Its name; never 0.
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
    /// EMFILE and the like.
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

    /// Takes one ring out of the bell; true if there was one.
    #[must_use]
    pub fn drain(&self) -> bool {
        sys::recv(self.fd, &mut [0; 8], libc::MSG_DONTWAIT).is_ok()
    }

    /// Takes the rings out of the bell, but no more than it holds unless strangers flood it; what
    /// is left wakes its owner once more.
    pub fn drain_all(&self) {
        for _ in 0..MOST_RINGS {
            if !self.drain() {
                return;
            }
        }
    }

    /// Closes the bell; later rings fail at the ringer.
    pub fn close(self) {
        sys::close(self.fd);
    }
}

/// What a process rings bells with: one unnamed datagram socket, made at first use.
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

    /// Opens the socket if need be, at `floor` or above.
    ///
    /// # Errors
    /// EMFILE and the like: then no channel may be used, for no thread could be woken.
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

    /// Rings a bell. A bell that is gone or already rung needs nothing.
    ///
    /// # Errors
    /// Our own socket had this number and is gone, closed behind our back; it is forgotten.
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

    /// The socket, -1 if none.
    #[must_use]
    pub fn fd(&self) -> Fd {
        self.fd.load(Ordering::Relaxed)
    }

    /// Forgets the socket (in a forked child, which makes its own); -1 when there is none.
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

    /// Strangers ring faster than a thread can drain. A socket of this kind holds more rings than
    /// the kernel lets a bell's hold by default.
    #[test]
    fn a_flooded_bell_is_drained_in_part() {
        let socket = UdpSocket::bind("127.0.0.1:0").expect("a port");
        socket.set_nonblocking(true).expect("an option");
        let address = socket.local_addr().expect("it is bound");
        for _ in 0..MOST_RINGS + 3 {
            socket.send_to(b"!", address).expect("it is there");
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
