//! Both ends of one loopback connection, called as the hooks call the library.
//!
//! An end that is not tracked uses the kernel alone, so the oracle itself is checked against TCP.

#![expect(unsafe_code, reason = "socket calls on the test's own memory")]

use crate::oracle::PATIENCE_MS;
use saiga_socket::{Closing, Errno, Handle, Reason, Sys, lookup};
use std::cell::Cell;
use std::os::fd::{AsRawFd, IntoRawFd, OwnedFd};

/// One end; closed when dropped.
#[derive(Debug)]
pub(crate) struct End {
    fd: i32,
    /// Sends and receives go past the library, as with stdio.
    unseen: Cell<bool>,
}

fn count(n: isize) -> Sys<usize> {
    usize::try_from(n)
        .map_err(|_| Errno(std::io::Error::last_os_error().raw_os_error().unwrap_or(0)))
}

fn done(n: i32) -> Sys<()> {
    count(n as isize).map(drop)
}

/// A connection from the first end to the second; both are nonblocking, with TCP_NODELAY. The end
/// with the lower port makes the offer: `first_offers` selects it.
pub(crate) fn connect(tracked: bool, first_offers: bool) -> [End; 2] {
    for _ in 0..1000 {
        let (ends, ports) = connect_once([tracked; 2]);
        if (ports[0] < ports[1]) == first_offers {
            return ends;
        }
    }
    panic!("the kernel never gives ports in the wanted order");
}

/// A connection whose first end is a program without the library. The second end may offer.
pub(crate) fn connect_to_stranger() -> [End; 2] {
    for _ in 0..1000 {
        let (ends, ports) = connect_once([false, true]);
        if ports[1] < ports[0] {
            return ends;
        }
    }
    panic!("the kernel never gives ports in the wanted order");
}

fn connect_once(tracked: [bool; 2]) -> ([End; 2], [u16; 2]) {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    // SAFETY: no pointers.
    let first = unsafe { libc::socket(libc::AF_INET, libc::SOCK_STREAM | libc::SOCK_CLOEXEC, 0) };
    assert!(first >= 0);
    let first = End::of(first);
    // Room for all bytes that a test sends, so that sent bytes have always arrived.
    for fd in [first.fd, listener.as_raw_fd()] {
        let bytes = 8i32 << 20;
        let at = (&raw const bytes).cast();
        // SAFETY: the option is readable for its length.
        done(unsafe { libc::setsockopt(fd, libc::SOL_SOCKET, libc::SO_RCVBUF, at, 4) }).unwrap();
        // SAFETY: as above. Only root may ask for more than the system's limit.
        unsafe { libc::setsockopt(fd, libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, at, 4) };
    }
    if tracked[0] {
        saiga_socket::track_created(first.fd, false);
    }
    let port = listener.local_addr().unwrap().port();
    let address = libc::sockaddr_in {
        sin_family: u16::try_from(libc::AF_INET).unwrap(),
        sin_port: port.to_be(),
        sin_addr: libc::in_addr {
            s_addr: u32::from_ne_bytes([127, 0, 0, 1]),
        },
        sin_zero: [0; 8],
    };
    let len = u32::try_from(size_of_val(&address)).unwrap();
    // SAFETY: the address is readable for its length.
    done(unsafe { libc::connect(first.fd, (&raw const address).cast(), len) }).unwrap();
    let (second, from) = listener.accept().unwrap();
    let second = End::of(OwnedFd::from(second).into_raw_fd());
    if tracked[0] {
        saiga_socket::track_connected(first.fd);
    }
    if tracked[1] {
        saiga_socket::track_accepted(second.fd, false);
    }
    for end in [&first, &second] {
        let one = 1i32;
        let at = (&raw const one).cast();
        // SAFETY: the option is readable for its length.
        done(unsafe { libc::setsockopt(end.fd, libc::IPPROTO_TCP, libc::TCP_NODELAY, at, 4) })
            .unwrap();
        // SAFETY: no pointers.
        done(unsafe { libc::fcntl(end.fd, libc::F_SETFL, libc::O_NONBLOCK) }).unwrap();
        if let Some(handle) = end.handle() {
            handle.flags_changed();
            saiga_socket::poll::concerns([end.fd]); // As a poll's hook does: a wait was seen.
        }
    }
    ([first, second], [from.port(), port])
}

impl End {
    fn of(fd: i32) -> End {
        let unseen = Cell::new(false);
        End { fd, unseen }
    }

    fn handle(&self) -> Option<Handle> {
        lookup(self.fd)
    }

    /// The library's handle, unless sends and receives go past it.
    fn mover(&self) -> Option<Handle> {
        self.handle().filter(|_| !self.unseen.get())
    }

    /// Marks the end as a process that uses Saiga does.
    pub(crate) fn mark(&self) {
        saiga_channel::diag::mark(self.fd, true).unwrap();
    }

    pub(crate) fn is_bound(&self) -> bool {
        self.handle().is_some_and(Handle::is_bound)
    }

    /// Sends two buffers in one call.
    pub(crate) fn send(&self, bytes: &[u8]) -> Sys<usize> {
        let (a, b) = bytes.split_at(bytes.len() / 3);
        let part = |s: &[u8]| libc::iovec {
            iov_base: s.as_ptr().cast_mut().cast(),
            iov_len: s.len(),
        };
        let mut iov = [part(a), part(b)];
        let msg = message(&mut iov);
        let flags = libc::MSG_NOSIGNAL;
        // SAFETY: the message and its buffers outlive the call.
        let next = || unsafe { libc::sendmsg(self.fd, &raw const msg, flags) };
        count(match self.mover() {
            // SAFETY: the buffers are readable for their lengths.
            Some(handle) => unsafe { handle.transmit(self.fd, &iov, flags, next) },
            None => next(),
        })
    }

    /// Receives into two buffers in one call; returns what came.
    pub(crate) fn recv(&self, room: usize, flags: i32) -> Sys<Vec<u8>> {
        let mut bytes = vec![0xee; room];
        let (a, b) = bytes.split_at_mut(room / 3);
        let part = |s: &mut [u8]| libc::iovec {
            iov_base: s.as_mut_ptr().cast(),
            iov_len: s.len(),
        };
        let mut iov = [part(a), part(b)];
        let mut msg = message(&mut iov);
        let at = &raw mut msg;
        // SAFETY: the message and its buffers outlive the call.
        let next = || unsafe { libc::recvmsg(self.fd, at, flags) };
        let n = count(match self.mover() {
            // SAFETY: the buffers are writable for their lengths.
            Some(handle) => unsafe { handle.receive(self.fd, &iov, flags, next) },
            None => next(),
        })?;
        bytes.truncate(n);
        Ok(bytes)
    }

    /// Bytes available to a receive (FIONREAD).
    pub(crate) fn readable_bytes(&self) -> usize {
        let mut n = 0i32;
        // SAFETY: the integer is writable.
        done(unsafe { libc::ioctl(self.fd, libc::FIONREAD, &raw mut n) }).unwrap();
        let ours = self.handle().and_then(|h| h.readable_bytes(self.fd));
        usize::try_from(ours.unwrap_or(n)).unwrap()
    }

    /// Releases memory as an idle second does.
    pub(crate) fn rest(&self) {
        if let Some(handle) = self.handle() {
            handle.rest();
        }
    }

    pub(crate) fn shutdown_write(&self) -> Sys<()> {
        if let Some(handle) = self.handle() {
            handle.shutting_down(self.fd, libc::SHUT_WR);
        }
        // SAFETY: no pointers.
        done(unsafe { libc::shutdown(self.fd, libc::SHUT_WR) })
    }

    pub(crate) fn stay_on_tcp(&self) {
        if let Some(handle) = self.handle() {
            handle.stay_on_tcp(self.fd, Reason::SocketOption);
        }
    }

    /// As `fdopen`: from here on stdio sends and receives.
    pub(crate) fn turn_to_stdio(&self) {
        if let Some(handle) = self.handle() {
            handle.stay_on_tcp(self.fd, Reason::Stdio);
        }
        self.unseen.set(true);
    }

    /// Waits until the kernel has bytes, an end or an error for this end.
    pub(crate) fn await_anchor(&self) -> bool {
        let mut fds = [libc::pollfd {
            fd: self.fd,
            events: libc::POLLIN,
            revents: 0,
        }];
        // SAFETY: one pollfd.
        unsafe { libc::poll(fds.as_mut_ptr(), 1, PATIENCE_MS) == 1 }
    }
}

impl Drop for End {
    fn drop(&mut self) {
        close(self.fd);
    }
}

fn close(fd: i32) {
    match saiga_socket::before_close(fd) {
        // SAFETY: the descriptor is ours and not used again.
        Closing::Proceed => done(unsafe { libc::close(fd) }).unwrap(),
        Closing::Refuse => panic!("the library says that {fd} is its own"),
        Closing::Done => {}
    }
}

fn message(iov: &mut [libc::iovec; 2]) -> libc::msghdr {
    // SAFETY: all-zero is a valid msghdr.
    let mut msg: libc::msghdr = unsafe { core::mem::zeroed() };
    msg.msg_iov = iov.as_mut_ptr();
    msg.msg_iovlen = 2;
    msg
}

/// An epoll set; closed when dropped.
#[derive(Debug)]
pub(crate) struct Set {
    fd: i32,
}

impl Set {
    pub(crate) fn new(tracked: bool) -> Self {
        // SAFETY: no pointers.
        let fd = unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) };
        assert!(fd >= 0);
        if tracked {
            saiga_socket::track_epoll(fd);
        }
        Set { fd }
    }

    pub(crate) fn control(&self, op: i32, end: &End, events: u32, data: u64) -> Sys<()> {
        let asked = (op != libc::EPOLL_CTL_DEL).then_some((events, data));
        if let Some(served) = saiga_socket::epoll_ctl(self.fd, op, end.fd, asked) {
            return served;
        }
        let mut event = libc::epoll_event { events, u64: data };
        // SAFETY: the event is readable.
        done(unsafe { libc::epoll_ctl(self.fd, op, end.fd, &raw mut event) })
    }

    /// Events and data of at most `room` registrations.
    pub(crate) fn wait(&self, room: usize, timeout_ms: i32) -> Sys<Vec<(u32, u64)>> {
        let mut events = vec![libc::epoll_event { events: 0, u64: 0 }; room];
        let kernel = |fd, at: *mut libc::epoll_event, room: usize, ns: Option<u64>| {
            let ms = ns.map_or(-1, |ns| i32::try_from(ns.div_ceil(1_000_000)).unwrap());
            // SAFETY: `room` events are writable at `at`.
            let n = unsafe { libc::epoll_wait(fd, at, i32::try_from(room).unwrap(), ms) };
            count(n as isize)
        };
        let (at, ns) = (
            events.as_mut_ptr(),
            Some(u64::try_from(timeout_ms).unwrap() * 1_000_000),
        );
        // SAFETY: `room` events are writable at `at`.
        let served = unsafe { saiga_socket::epoll_wait(self.fd, at, room, ns, &kernel) };
        let n = served.unwrap_or_else(|| kernel(self.fd, at, room, ns))?;
        Ok(events[..n].iter().map(|e| (e.events, e.u64)).collect())
    }
}

impl Drop for Set {
    fn drop(&mut self) {
        close(self.fd);
    }
}
