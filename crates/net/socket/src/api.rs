//! The functions that the hooks call. Each returns whether it served the call; if not, the hook
//! calls libc.

#![expect(unsafe_code, reason = "buffers of the hooks' callers")]

use crate::chan::Chan;
use crate::epoll_wait as waiting;
use crate::epoll_wait::{Call, KernelWait};
use crate::gather::Gather;
use crate::sock::{NOT_BOUND, Origin, Socket};
use crate::state::Phase;
use crate::table::Entry;
use crate::{
    asleep, chaos, close, epoll, idle, iov, kernel, recv, reset, rt, send, settings, table,
    tcp_use, upgrade,
};
use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering;
use libc::iovec;
use saiga_channel::direction::{RxMode, TxMode};
use saiga_channel::sys::{Errno, Fd, Sys};
use saiga_status::{Entry as Shown, Reason};

/// A socket that the library tracks.
#[derive(Debug, Clone, Copy)]
pub struct Handle(&'static Socket);

/// The socket behind a descriptor, if the library tracks it.
#[inline]
#[must_use]
pub fn lookup(fd: Fd) -> Option<Handle> {
    table::socket(fd).map(Handle)
}

/// Whether the number is one of the library's own descriptors.
#[must_use]
pub fn is_hidden(fd: Fd) -> bool {
    matches!(table::get(fd), Entry::Hidden)
}

/// Prepares for a new descriptor of the application at `fd`: one of the library's own moves to
/// another number. False if it cannot move; a sandbox may end the process for such a system call.
pub fn make_room(fd: Fd) -> bool {
    let may_move = || !rt::SANDBOXED.load(Ordering::Relaxed) && rt::move_away(fd);
    // A vfork child has its own descriptors, which our records do not describe.
    !is_hidden(fd) || !rt::in_own_process() || may_move()
}

/// Converts a result into libc's form: a count, or -1 with errno set.
#[must_use]
pub fn c_result(result: Sys<usize>) -> isize {
    match result {
        Ok(n) => isize::try_from(n).unwrap_or(isize::MAX),
        Err(e) => {
            kernel::set_errno(e);
            -1
        }
    }
}

/// Starts to track a socket that `accept(2)` has just returned.
pub fn track_accepted(fd: Fd, nonblocking: bool) {
    track(fd, Origin::Accepted, Some(nonblocking));
}

/// Starts to track a TCP socket that `socket(2)` has just made.
pub fn track_created(fd: Fd, nonblocking: bool) {
    track(fd, Origin::Connected, Some(nonblocking));
}

/// Starts to track a socket that connects. A socket that is tracked already stays tracked.
pub fn track_connected(fd: Fd) {
    match table::get(fd) {
        Entry::Socket(s) => {
            s.accepted.store(false, Ordering::Relaxed);
            tcp_use::note(s); // The connect has made the listener readable.
        }
        Entry::Unknown => track(fd, Origin::Connected, None),
        Entry::Epoll(_) | Entry::Hidden => {}
    }
}

fn track(fd: Fd, origin: Origin, nonblocking: Option<bool>) {
    close::forget_stale(fd);
    if !rt::ENABLED.load(Ordering::Relaxed) {
        settings::look_again();
    }
    if !rt::ENABLED.load(Ordering::Relaxed) || !matches!(table::get(fd), Entry::Unknown) {
        return;
    }
    let Some(socket) = Socket::open(fd, origin) else {
        return;
    };
    if let Some(yes) = nonblocking {
        socket.nonblock.learn(yes);
    }
    if !table::set_socket(fd, socket) {
        socket.free();
        return;
    }
    rt::show_new(fd);
    if (0..=libc::STDERR_FILENO).contains(&fd) {
        socket.never(fd, Reason::Stdio); // perror(3) and others write there without our hooks.
    }
}

/// Records an epoll set, also while upgrades are off: they may be switched on later.
pub fn track_epoll(fd: Fd) {
    if settings::may_enable() {
        close::forget_stale(fd);
        epoll::open(fd);
    }
}

/// Records that `new` refers to the same open file as `old` (`dup(2)` and similar calls).
pub fn duplicated(old: Fd, new: Fd) {
    if old == new || !rt::in_own_process() {
        return;
    }
    close::forget_stale(new);
    match table::get(old) {
        Entry::Socket(s) => {
            s.refs.fetch_add(1, Ordering::SeqCst);
            table::set_socket(new, s);
        }
        Entry::Epoll(set) => epoll::duplicate(set, new),
        Entry::Unknown | Entry::Hidden => {}
    }
}

impl Handle {
    /// Invalidates the cached O_NONBLOCK flag.
    pub fn flags_changed(self) {
        self.0.nonblock.note_change();
    }

    /// Keeps the connection on TCP from now on. Bytes in the rings are still delivered.
    pub fn stay_on_tcp(self, fd: Fd, reason: Reason) {
        let Some(_pin) = self.0.pin_as(fd) else {
            return;
        };
        let settled = self.0.phase.get() == Phase::Never;
        // A connection that stays on TCP, and whose rings are not empty yet, may now be used by a
        // process that calls no hook.
        if !settled || (self.0.is_bound() && close::leaves_the_hooks(reason)) {
            close::downgrade(fd, self.0, reason);
        }
    }

    /// Handles a change of SO_RCVLOWAT: only the kernel can wait for more than one byte.
    pub fn low_water_changed(self, fd: Fd) {
        if upgrade::waits_for_more_than_a_byte(fd) {
            self.stay_on_tcp(fd, Reason::SocketOption);
        }
    }

    /// Handles a change of TCP_NOTSENT_LOWAT, which may make the socket writable.
    pub fn unsent_mark_changed(self, fd: Fd) {
        let Some(_pin) = self.0.pin_as(fd) else {
            return;
        };
        upgrade::read_unsent_mark(fd, self.0);
        if let Some(chan) = Chan::of(self.0).filter(|_| self.0.is_bound()) {
            chan.wake_own_threads();
        }
    }

    /// Whether calls on the socket are served by the channel now.
    #[must_use]
    pub fn is_bound(self) -> bool {
        self.0.is_bound()
    }

    /// Prepares `shutdown(2)`, before the kernel performs it. Our ring ends first, so no byte can
    /// be written to the ring behind the FIN, and a woken thread finds the connection on TCP, where
    /// the kernel decides which bytes may still be sent.
    pub fn shutting_down(self, fd: Fd, how: i32) {
        let Some(_pin) = self.0.pin_as(fd) else {
            return;
        };
        let chan = Chan::of(self.0).filter(|_| self.0.is_bound());
        if how == libc::SHUT_WR || how == libc::SHUT_RDWR {
            tcp_use::note_soon(self.0);
            if let Some(chan) = &chan {
                close::finish_recall(fd, self.0, chan, close::wait_limit());
                let _lock = chan.lock_tx(self.0);
                chan.end_tx();
            }
            self.0.tx_shut.store(true, Ordering::SeqCst);
        }
        if how == libc::SHUT_RD || how == libc::SHUT_RDWR {
            self.0.rx_shut.store(true, Ordering::SeqCst);
        }
        if let Some(chan) = &chan {
            chan.wake_own_threads();
        }
    }

    /// Whether this process has shut the sending direction down.
    #[must_use]
    pub fn is_shut(self) -> bool {
        self.0.tx_shut.load(Ordering::SeqCst)
    }

    /// Takes the pending error of a connection that the library reset; SO_ERROR returns it once.
    #[must_use]
    pub fn take_reset(self, fd: Fd) -> bool {
        self.0.is_reset() && reset::take_error(fd, self.0)
    }

    /// Bytes that a receive would find on a bound socket (FIONREAD).
    #[must_use]
    pub fn readable_bytes(self, fd: Fd) -> Option<i32> {
        let _pin = self.0.pin();
        let chan = self.0.is_bound().then(|| Chan::of(self.0)).flatten()?;
        i32::try_from(recv::readable_bytes(fd, self.0, &chan)).ok()
    }

    /// Bytes that the peer has not read from the ring yet (SIOCOUTQ).
    #[must_use]
    pub fn unread_bytes(self) -> Option<i32> {
        let _pin = self.0.pin();
        let chan = self.0.is_bound().then(|| Chan::of(self.0)).flatten()?;
        let all = saiga_channel::layout::STRIDE_SHIFT;
        i32::try_from(chan.tx_ring().pending(all)?).ok()
    }

    /// Free space in the ring, for bytes that cannot be returned to their source. `None` while TCP
    /// carries the bytes.
    #[must_use]
    pub fn ring_room(self) -> Option<usize> {
        let _pin = self.0.pin();
        let chan = self.0.is_bound().then(|| Chan::of(self.0)).flatten()?;
        let in_ring = chan.own().tx_mode.peek() == TxMode::Ring;
        (in_ring && !chan.tx_ring().frozen()).then(|| chan.room())
    }

    /// Releases the memory of the ring that we write if the ring is empty, as an idle second does.
    pub fn rest(self) {
        let _pin = self.0.pin();
        if let Some(chan) = self.0.is_bound().then(|| Chan::of(self.0)).flatten() {
            idle::give_back(self.0, &chan);
        }
    }

    /// Sends all of `bytes`, also on a nonblocking descriptor, by waiting for room: the bytes
    /// cannot be returned to their source.
    ///
    /// # Errors
    /// As `send(2)`, except EAGAIN.
    pub fn transmit_all(self, fd: Fd, bytes: &[u8]) -> Sys<usize> {
        let Some(_pin) = self.0.pin_as(fd) else {
            return Err(Errno(libc::EBADF));
        };
        if !self.0.is_bound() {
            return send::plain_waiting(fd, self.0, bytes);
        }
        let result = reset::report(fd, self.0, send::send_waiting(fd, self.0, bytes.into()));
        show_bytes(self.0, |e| &e.channel_tx, &self.0.sent, &result);
        result
    }

    /// Serves a receiving call. `next` makes the same call in libc.
    ///
    /// # Safety
    /// As `recvmsg(2)`: every vector is writable for its length.
    pub unsafe fn receive(
        self,
        fd: Fd,
        iov: &[iovec],
        flags: i32,
        next: impl FnOnce() -> isize,
    ) -> isize {
        let socket = self.0;
        let Some(_pin) = socket.pin_as(fd) else {
            return next();
        };
        let by_kernel = |n| {
            if n < 0 {
                socket.nonblock.note_nothing(flags);
            }
            if flags & (libc::MSG_PEEK | libc::MSG_ERRQUEUE) == 0 {
                tcp_use::counted(socket, n, &socket.received);
            }
            n
        };
        socket.nonblock.note_receive(fd, flags);
        if !enter(fd, socket) {
            return by_kernel(asleep::inside(socket, next));
        }
        if flags & (libc::MSG_OOB | libc::MSG_ERRQUEUE) != 0 {
            return asleep::inside(socket, next);
        }
        // SAFETY: promised by our caller.
        let mut result = unsafe { receive_bound(fd, socket, iov, flags) };
        if result == Err(Errno(libc::EAGAIN)) && upgrade::leave_for_unseen_wait(fd, socket, flags) {
            // SAFETY: as above.
            result = unsafe { receive_bound(fd, socket, iov, flags) };
        }
        if result == Err(NOT_BOUND) {
            return by_kernel(asleep::inside(socket, next));
        }
        let result = reset::report(fd, socket, result);
        if flags & libc::MSG_PEEK == 0 {
            show_bytes(socket, |e| &e.channel_rx, &socket.received, &result);
        }
        c_result(result)
    }

    /// Makes a kernel call that sends bytes which we never see, and counts the bytes as evidence.
    /// Returns `None` without calling `next` if the socket is bound.
    pub fn transmit_plain(self, fd: Fd, next: impl FnOnce() -> isize) -> Option<isize> {
        let Some(_pin) = self.0.pin_as(fd) else {
            return Some(next());
        };
        if enter(fd, self.0) {
            return None;
        }
        Some(tcp_use::counted(
            self.0,
            asleep::inside(self.0, next),
            &self.0.sent,
        ))
    }

    /// Serves a sending call. `next` makes the same call in libc.
    ///
    /// # Safety
    /// As `sendmsg(2)`: every vector is readable for its length.
    pub unsafe fn transmit(
        self,
        fd: Fd,
        iov: &[iovec],
        flags: i32,
        next: impl FnOnce() -> isize,
    ) -> isize {
        let socket = self.0;
        let Some(_pin) = socket.pin_as(fd) else {
            return next();
        };
        if !enter(fd, socket) {
            if flags & (libc::MSG_OOB | libc::MSG_ZEROCOPY | libc::MSG_FASTOPEN) != 0 {
                socket.never(fd, Reason::OutOfBand);
            }
            return tcp_use::counted(socket, asleep::inside(socket, next), &socket.sent);
        }
        // SAFETY: promised by our caller.
        let result = unsafe { transmit_bound(fd, socket, iov, flags) };
        if result == Err(NOT_BOUND) {
            return tcp_use::counted(socket, asleep::inside(socket, next), &socket.sent);
        }
        let result = reset::report(fd, socket, result);
        show_bytes(socket, |e| &e.channel_tx, &socket.sent, &result);
        c_result(result)
    }
}

/// Takes the next step of an upgrade or downgrade. True when the socket is bound.
fn enter(fd: Fd, socket: &'static Socket) -> bool {
    if !socket.is_bound() {
        return socket.step_due() && upgrade::step(fd, socket);
    }
    if chaos::is_on() {
        chaos::strike(socket);
    }
    if Chan::of(socket).is_some_and(|c| c.own().rx_mode.peek() != RxMode::Ring) {
        close::settle(fd, socket);
        return socket.is_bound();
    }
    true
}

/// Adds the bytes of a bound call to the status page: those moved by TCP, and by the channel.
fn show_bytes(
    socket: &Socket,
    channel: impl Fn(&Shown) -> &AtomicU64,
    tcp_total: &AtomicU64,
    moved: &Sys<usize>,
) {
    let (Ok(n), Some(e)) = (moved, rt::entry(socket.shown_as.load(Ordering::Relaxed))) else {
        return;
    };
    let tcp_shown = if core::ptr::eq(tcp_total, &raw const socket.sent) {
        &e.tcp_tx
    } else {
        &e.tcp_rx
    };
    let total = tcp_total.load(Ordering::Relaxed);
    let by_tcp = total.saturating_sub(tcp_shown.load(Ordering::Relaxed));
    if by_tcp > 0 {
        tcp_shown.store(total, Ordering::Relaxed);
    }
    let word = channel(e);
    let by_channel = (*n as u64).saturating_sub(by_tcp);
    word.store(word.load(Ordering::Relaxed) + by_channel, Ordering::Relaxed);
}

/// # Safety
/// Every vector is writable for its length.
unsafe fn receive_bound(fd: Fd, socket: &'static Socket, iov: &[iovec], flags: i32) -> Sys<usize> {
    if flags & libc::MSG_TRUNC != 0 {
        return discard(fd, socket, iov, flags);
    }
    if iov.is_empty() {
        return recv::recv(fd, socket, &mut [], flags);
    }
    let mut done = 0;
    for step in iov.chunks(iov::STEP) {
        let mut slots: [&'static mut [u8]; iov::STEP] = Default::default();
        // SAFETY: promised by our caller.
        let parts = unsafe { iov::writable(step, &mut slots) }?;
        let wanted: usize = parts.iter().map(|p| p.len()).sum();
        match recv::recv(
            fd,
            socket,
            parts,
            if done > 0 { later(flags) } else { flags },
        ) {
            Ok(n) if n < wanted || flags & libc::MSG_PEEK != 0 => return Ok(done + n),
            Ok(n) => done += n,
            Err(_) if done > 0 => return Ok(done),
            Err(e) => return Err(e),
        }
    }
    Ok(done)
}

/// MSG_TRUNC on TCP drops the bytes (`man 7 tcp`); with MSG_PEEK it only counts them.
fn discard(fd: Fd, socket: &'static Socket, iov: &[iovec], flags: i32) -> Sys<usize> {
    let wanted: usize = iov.iter().map(|v| v.iov_len).sum();
    let flags = flags & !libc::MSG_TRUNC;
    let mut waste = [0u8; 4096]; // A thread may have 16 KiB of stack.
    let mut done = 0;
    loop {
        let n = (wanted - done).min(waste.len());
        let flags = if done > 0 { later(flags) } else { flags };
        match recv::recv(fd, socket, &mut [&mut waste[..n]], flags) {
            Ok(got) if flags & libc::MSG_PEEK != 0 => {
                let chan = Chan::of(socket).filter(|_| got == waste.len());
                let all = chan.map(|chan| recv::readable_bytes(fd, socket, &chan));
                let all = all.and_then(|all| usize::try_from(all).ok()).unwrap_or(got);
                return Ok(all.max(got).min(wanted));
            }
            Ok(got) if got < n || done + got == wanted => return Ok(done + got),
            Ok(got) => done += got,
            Err(_) if done > 0 => return Ok(done),
            Err(e) => return Err(e),
        }
    }
}

/// The flags for further parts of a receiving call that has received something.
fn later(flags: i32) -> i32 {
    if flags & libc::MSG_WAITALL != 0 {
        flags
    } else {
        flags | libc::MSG_DONTWAIT
    }
}

/// # Safety
/// Every vector is readable for its length.
unsafe fn transmit_bound(fd: Fd, socket: &'static Socket, iov: &[iovec], flags: i32) -> Sys<usize> {
    if iov.is_empty() {
        return Ok(0);
    }
    // SAFETY: promised by our caller.
    send::send(fd, socket, unsafe { Gather::new(iov) }?, flags)
}

/// Serves `epoll_ctl(2)`. `None`: the set or the socket is not ours, or stays with the kernel.
#[must_use]
pub fn epoll_ctl(epfd: Fd, op: i32, fd: Fd, event: Option<(u32, u64)>) -> Option<Sys<()>> {
    match (table::get(epfd), table::get(fd)) {
        (_, Entry::Hidden) | (Entry::Hidden, _) => Some(Err(Errno(libc::EBADF))),
        (Entry::Epoll(set), Entry::Socket(s)) => Some(epoll::control(epfd, set, op, fd, s, event)),
        (_, Entry::Socket(s)) => {
            // The set is unknown (received from elsewhere): its members stay on TCP.
            if s.phase.get() == Phase::Never {
                return None;
            }
            Handle(s).stay_on_tcp(fd, Reason::EpollUnknown);
            None
        }
        (outer, Entry::Epoll(inner)) if op != libc::EPOLL_CTL_DEL => {
            if let Entry::Epoll(outer) = outer {
                outer.outer.store(true, Ordering::Relaxed);
            }
            waiting::latch(inner);
            None
        }
        _ => None,
    }
}

/// Serves `epoll_wait(2)` and its variants on a known set; `None` for other descriptors.
///
/// # Safety
/// `events` is writable for `room` events.
#[must_use]
pub unsafe fn epoll_wait(
    epfd: Fd,
    events: *mut libc::epoll_event,
    room: usize,
    timeout_ns: Option<u64>,
    kernel: KernelWait<'_>,
) -> Option<Sys<usize>> {
    match table::get(epfd) {
        Entry::Epoll(set) => Some(waiting::wait(&Call {
            set,
            epfd,
            events,
            room,
            timeout_ns,
            kernel,
        })),
        Entry::Unknown | Entry::Socket(_) | Entry::Hidden => None,
    }
}

/// Copies bytes of a bound socket to a writer without losing any, for `splice(2)` out of a socket:
/// peeks, writes, then drops the written bytes. `None`: the socket is not bound any more.
///
/// # Errors
/// As `recv(2)`, or the error of `write`.
pub fn relay(
    handle: Handle,
    fd: Fd,
    max: usize,
    flags: i32,
    write: impl FnOnce(&[u8]) -> Sys<usize>,
) -> Sys<Option<usize>> {
    let socket = handle.0;
    let _pin = socket.pin();
    if !socket.is_bound() {
        return Ok(None);
    }
    let mut buffer = [0u8; 4096]; // A thread may have 16 KiB of stack.
    let n = max.min(buffer.len());
    let seen = recv::recv(fd, socket, &mut [&mut buffer[..n]], flags | libc::MSG_PEEK);
    let seen = reset::report(fd, socket, seen)?;
    if seen == 0 {
        return Ok(Some(0));
    }
    let written = write(&buffer[..seen])?;
    let mut dropped = 0;
    while dropped < written {
        let rest = &mut buffer[dropped..written];
        let n = recv::recv(fd, socket, &mut [rest], libc::MSG_DONTWAIT)?;
        if n == 0 {
            break; // The peer has taken back bytes that were peeked at a moment ago.
        }
        dropped += n;
    }
    Ok(Some(written))
}

/// Every descriptor number from `first` to `last` that the library tracks or owns.
pub fn known(first: Fd, last: Fd) -> impl Iterator<Item = Fd> {
    let end = usize::try_from(last)
        .unwrap_or(usize::MAX)
        .min(table::highest());
    (usize::try_from(first).unwrap_or(0)..=end)
        .filter_map(|n| Fd::try_from(n).ok())
        .filter(|fd| !matches!(table::get(*fd), Entry::Unknown))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::ModeEvent;

    /// A thread can see the mode `Bound` while another thread's attempt to bind is failing.
    #[test]
    fn a_call_that_finds_no_channel_goes_to_the_kernel() {
        assert!(table::init());
        let socket = Socket::open(80, Origin::Connected).expect("there is room");
        assert!(table::set_socket(80, socket));
        assert!(socket.mode.transition(ModeEvent::Bind).is_some());
        let (handle, mut byte) = (lookup(80).expect("it was put there"), 0u8);
        let part = [iovec {
            iov_base: (&raw mut byte).cast(),
            iov_len: 1,
        }];
        // SAFETY: the byte outlives the calls.
        let received = unsafe { handle.receive(80, &part, 0, || 1) };
        // SAFETY: as above.
        let sent = unsafe { handle.transmit(80, &part, 0, || 1) };
        assert_eq!((received, sent), (1, 1));
        let counts = [&socket.received, &socket.sent].map(|n| n.load(Ordering::SeqCst));
        assert_eq!(counts, [1, 1]);
    }
}
