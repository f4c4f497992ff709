//! The events that poll, select and epoll report for a bound socket.
//!
//! Combines the state of both rings with the anchor's events: while both directions use rings,
//! the kernel is asked only if the anchor may have an event.

use crate::chan::Chan;
use crate::sock::Socket;
use crate::{recv, reset, send};
use core::sync::atomic::Ordering;
use saiga_channel::direction::{RxMode, TxMode};
use saiga_channel::sys::{self, Fd};
use saiga_status::Reason;

const IN: i16 = libc::POLLIN | libc::POLLRDNORM;
const OUT: i16 = libc::POLLOUT | libc::POLLWRNORM;
const ENDED: i16 = libc::POLLRDHUP | libc::POLLHUP | libc::POLLERR;

/// Events of a bound, pinned socket as `poll(2)` names them (epoll's have the same values).
pub(crate) fn events(fd: Fd, socket: &'static Socket, chan: &Chan) -> i16 {
    let found = events_soon(fd, socket, chan);
    let overtaken = found & OUT == 0
        && send::overtakes_slowly(socket, chan)
        && send::overtake(fd, socket, chan);
    if overtaken {
        return events_soon(fd, socket, chan);
    }
    found
}

/// As [`events`], for the holder of a set's lock: reports no room to send where only
/// [`send::overtake`] could make room, which would take too long.
pub(crate) fn events_soon(fd: Fd, socket: &'static Socket, chan: &Chan) -> i16 {
    if socket.is_reset() {
        return of_reset(socket);
    }
    notice_switch(fd, socket, chan);
    send::serve_recall(fd, socket, chan);
    let rx_mode = chan.own().rx_mode.peek();
    let tx_mode = chan.own().tx_mode.peek();
    let rings_only = rx_mode == RxMode::Ring && tx_mode == TxMode::Ring && !chan.rx_ring().frozen();
    let noted = socket.anchor_events.noted();
    let mut seen = 0;
    if !rings_only || noted.is_some() {
        seen = poll_anchor(fd, chan.rx_ring().frozen());
    }
    if seen & ENDED != 0 && reset::notice_peer_death(fd, socket, chan) {
        return of_reset(socket);
    }
    let mut now = seen & (ENDED | libc::POLLPRI);
    now |= incoming(chan, rx_mode, seen);
    now |= outgoing(fd, socket, chan, tx_mode, seen);
    // A thread that is told of an event must find it: a receive asks the anchor only if noted.
    let has = seen & (IN | ENDED) != 0;
    match noted {
        Some(noted) if !has => socket.anchor_events.clear(noted),
        None if has => socket.anchor_events.note(),
        _ => {}
    }
    now
}

/// The anchor's events. A peer that closes ends its ring, which wakes us, and then sends its FIN.
/// The kernel polls without the socket's lock (`tcp_poll`) and may find the FIN as a byte to read
/// before it finds the end of the stream. FIONREAD takes the lock, and so waits until the kernel
/// has processed the FIN.
fn poll_anchor(fd: Fd, ring_ended: bool) -> i16 {
    let poll = || sys::poll_now(fd, IN | OUT | libc::POLLPRI | libc::POLLRDHUP);
    let seen = poll();
    let may_be_fin = ring_ended && seen & IN != 0 && seen & ENDED == 0;
    if may_be_fin && sys::ioctl_int(fd, libc::FIONREAD) == Ok(0) {
        return poll();
    }
    seen
}

/// The events that the kernel reports for a reset connection (`tcp_poll`); POLLERR once.
fn of_reset(socket: &Socket) -> i16 {
    let reported = socket.reset_reported.load(Ordering::Relaxed);
    let error = if reported { 0 } else { libc::POLLERR };
    IN | OUT | libc::POLLRDHUP | libc::POLLHUP | error
}

/// Acknowledges the peer's switch to the ring as `recv` would, so that a waiting peer can go on.
pub(crate) fn notice_switch(fd: Fd, socket: &'static Socket, chan: &Chan) {
    if chan.own().rx_mode.peek() != RxMode::Tcp {
        return;
    }
    if let Some(lock) = chan.lock_rx(socket)
        && !lock.nested
        && chan.own().rx_mode.peek() == RxMode::Tcp
    {
        let _ = recv::turn(fd, socket, chan);
    }
}

fn incoming(chan: &Chan, rx_mode: RxMode, seen: i16) -> i16 {
    if rx_mode != RxMode::Ring {
        return seen & IN;
    }
    let ring = chan.rx_ring();
    // For an ended, empty ring TCP decides. An anchor that is readable beside a ring that has not
    // ended has FIN or an error to report.
    if ring.readable() || seen & IN != 0 {
        IN
    } else {
        0
    }
}

fn outgoing(fd: Fd, socket: &'static Socket, chan: &Chan, tx_mode: TxMode, seen: i16) -> i16 {
    match tx_mode {
        TxMode::Ring if seen & ENDED != 0 => {
            socket.note_end(Reason::HalfClosed);
            chan.freeze_tx();
            sys::poll_now(fd, OUT) & OUT
        }
        TxMode::Ring if chan.tx_ring().frozen() => sys::poll_now(fd, OUT) & OUT,
        TxMode::Ring if chan.writable() => OUT,
        TxMode::Ring => 0,
        TxMode::Ended if socket.tx_shut.load(Ordering::Relaxed) => seen & OUT,
        TxMode::Ended if !chan.tx_ring().acknowledged() && seen & ENDED == 0 => {
            if !send::overtakes_slowly(socket, chan) && send::overtake(fd, socket, chan) {
                seen & OUT
            } else {
                0
            }
        }
        TxMode::Tcp | TxMode::Ended | TxMode::After => seen & OUT,
    }
}

/// Asks the peer to wake us for changes that matter for `wanted`.
pub(crate) fn arm(chan: &Chan, wanted: i16) {
    if wanted & IN != 0 {
        chan.rx_ring().arm();
    }
    if wanted & OUT != 0 && !chan.writable() {
        chan.arm_space();
    }
}

/// The events to watch the anchor for while a thread sleeps for `wanted`.
pub(crate) fn events_to_watch(chan: &Chan, wanted: i16) -> i16 {
    let mut watch = wanted & (libc::POLLPRI | libc::POLLRDHUP);
    if chan.recall_due() {
        watch |= libc::POLLOUT; // Recalled bytes are sent as soon as TCP takes them.
    }
    if wanted & IN != 0 {
        watch |= libc::POLLIN | libc::POLLRDHUP;
    }
    if wanted & OUT != 0 {
        watch |= match chan.own().tx_mode.peek() {
            TxMode::Ring if chan.tx_ring().frozen() => libc::POLLOUT,
            TxMode::Ring | TxMode::Ended => libc::POLLRDHUP,
            TxMode::Tcp | TxMode::After => libc::POLLOUT,
        };
    }
    watch
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::sync::atomic::AtomicI32;
    use std::net::{TcpListener, TcpStream};
    use std::os::fd::{AsRawFd as _, IntoRawFd as _};
    use std::thread;

    const NONE: Fd = -1;
    const STOP: Fd = -2;
    static TO_CLOSE: AtomicI32 = AtomicI32::new(NONE);

    /// Closes the descriptors that `TO_CLOSE` names. Polls: a thread that is woken for each of them
    /// often runs on the CPU of the thread that has woken it, and so not beside it.
    fn close_each() {
        loop {
            match TO_CLOSE.swap(NONE, Ordering::SeqCst) {
                NONE => thread::yield_now(),
                STOP => return,
                fd => sys::close(fd),
            }
        }
    }

    /// A thread that sleeps in the kernel is woken after the FIN was processed, and finds all of
    /// its events. Without the second poll, some of these rounds find POLLIN alone.
    #[test]
    fn a_poll_while_the_fin_arrives_finds_the_end_of_the_stream() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("the address");
        let closer = thread::spawn(close_each);
        for round in 0..200 {
            let ours = TcpStream::connect(address).expect("a connection");
            let (theirs, _) = listener.accept().expect("the connection");
            TO_CLOSE.store(theirs.into_raw_fd(), Ordering::SeqCst);
            let poll = || poll_anchor(ours.as_raw_fd(), true) & (IN | ENDED);
            let found = std::iter::repeat_with(poll).find(|seen| *seen != 0);
            assert_eq!(found, Some(IN | libc::POLLRDHUP), "round {round}");
        }
        TO_CLOSE.store(STOP, Ordering::SeqCst);
        closer.join().expect("closing does not panic");
    }
}
