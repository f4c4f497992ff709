//! When this process last told a peer something by TCP: bytes, a new connection, or an end.
//!
//! A peer that looks at its channels first would take what came by a ring later for the earlier
//! message. So the time stands beside the news of channels, and a set of the peer's that has not
//! asked the kernel since does so before it reports a channel. Connections that will never have a
//! channel do not count: their use of TCP must not cost the others' peers a system call each time.

use crate::sock::{Socket, phase};
use crate::{clock, rt};
use core::sync::atomic::{AtomicU64, Ordering};

/// The kernel has done what was announced after so long, as a rule.
const SOON_US: u64 = 100;

static LAST: AtomicU64 = AtomicU64::new(0);

/// The time, in ticks; 0: never.
pub(crate) fn last() -> u64 {
    LAST.load(Ordering::Relaxed)
}

/// Notes that this process has just used a socket's TCP.
pub(crate) fn note(socket: &Socket) {
    note_at(socket, 0);
}

/// Notes that it is about to.
pub(crate) fn note_soon(socket: &Socket) {
    note_at(socket, clock::us(SOON_US));
}

fn note_at(socket: &Socket, ahead: u64) {
    if socket.phase.load(Ordering::Relaxed) != phase::NEVER {
        LAST.store(clock::ticks() + ahead, Ordering::Relaxed);
    }
}

/// Counts what a call on a plain socket has moved, if anything; `total` is the socket's count of
/// that direction. Gives back `n`, the call's result.
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
