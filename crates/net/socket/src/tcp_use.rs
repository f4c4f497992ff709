//! The time at which this process last used TCP towards a peer: bytes, a new connection, or FIN.
//!
//! A peer that polls its channels first would report bytes that came later by a ring before an
//! earlier message on TCP. So the time is published beside the channels' notifications, and an
//! epoll set of the peer that has not polled the kernel since then does so before it reports a
//! channel. Connections that stay on TCP for good do not count: otherwise each use of them would
//! cost the peers of other connections a system call.

use crate::sock::Socket;
use crate::state::Phase;
use crate::{clock, rt};
use core::sync::atomic::{AtomicU64, Ordering};

/// The kernel has usually performed an announced operation after this time.
const SOON_US: u64 = 100;

static LAST: AtomicU64 = AtomicU64::new(0);

/// The time in ticks; 0: never.
pub(crate) fn last() -> u64 {
    LAST.load(Ordering::Relaxed)
}

/// Records that this process has just used a socket's TCP.
pub(crate) fn note(socket: &Socket) {
    note_at(socket, 0);
}

/// Records that this process is about to use a socket's TCP.
pub(crate) fn note_soon(socket: &Socket) {
    note_at(socket, clock::us(SOON_US));
}

fn note_at(socket: &Socket, ahead: u64) {
    if socket.phase.get() != Phase::Never {
        LAST.store(clock::ticks() + ahead, Ordering::Relaxed);
    }
}

/// Counts the bytes moved by a call on a plain socket. `total` is the socket's counter for that
/// direction. Returns `n`, the call's result.
pub(crate) fn counted(socket: &Socket, n: isize, total: &AtomicU64) -> isize {
    let Ok(bytes @ 1..) = u64::try_from(n) else {
        return n;
    };
    if core::ptr::eq(total, &raw const socket.sent) {
        note(socket);
    }
    total.fetch_add(bytes, Ordering::Relaxed);
    socket.count();
    if let Some(entry) = rt::entry(socket.shown_as.load(Ordering::Relaxed)) {
        entry
            .tcp_rx
            .store(socket.received.load(Ordering::Relaxed), Ordering::Relaxed);
        entry
            .tcp_tx
            .store(socket.sent.load(Ordering::Relaxed), Ordering::Relaxed);
        entry
            .messages
            .store(socket.messages.load(Ordering::Relaxed), Ordering::Relaxed);
    }
    n
}
