//! Limits the memory that the rings written by this process may have beyond 1 MiB each.
//!
//! A ring whose reader lags grows to the size that TCP's buffers would have. The kernel bounds
//! TCP's buffers for the whole machine (tcp_mem). Here each process has its own bound; without a
//! bound, a thousand lagging readers would take gigabytes. A ring that cannot grow is full, like a
//! socket's buffer.

use crate::sock::Socket;
use crate::{process, rt};
use core::sync::atomic::{AtomicU64, Ordering};
use saiga_channel::ring::PLENTY_SHIFT;

/// Divisor of the machine's memory: larger rings may use 1/16 of it.
const PART: u64 = 16;
/// Upper bound in bytes for each process: a container may have less memory than the machine.
const MOST: u64 = 256 << 20;

/// Bytes that may be lent to rings.
static ALL: AtomicU64 = AtomicU64::new(0);
/// Bytes that are lent to rings now.
static LENT: AtomicU64 = AtomicU64::new(0);

/// Sets the limit from the machine's memory.
pub(crate) fn start() {
    ALL.store((process::memory() / PART).min(MOST), Ordering::Relaxed);
}

/// Logarithm of the capacity to which a ring may grow now. Threads that ask at the same time may
/// exceed the limit by one ring each.
pub(crate) fn limit() -> u32 {
    limit_of(
        rt::max_shift(),
        LENT.load(Ordering::Relaxed),
        ALL.load(Ordering::Relaxed),
    )
}

fn limit_of(largest: u32, lent: u64, all: u64) -> u32 {
    if lent < all {
        largest
    } else {
        largest.min(PLENTY_SHIFT)
    }
}

/// Records that the ring which `socket` writes has `1 << shift` bytes. The caller holds the send
/// lock of our side.
pub(crate) fn lend(socket: &Socket, shift: u32) {
    let beyond = (1u64 << shift.min(63)).saturating_sub(1 << PLENTY_SHIFT);
    // A process that shares the connection may have given its memory back.
    if beyond != socket.lent.load(Ordering::Relaxed) {
        note(socket, beyond);
    }
}

/// Records that the memory of the ring which `socket` writes was released.
pub(crate) fn take_back(socket: &Socket) {
    if socket.lent.load(Ordering::Relaxed) > 0 {
        note(socket, 0);
    }
}

fn note(socket: &Socket, beyond: u64) {
    let before = socket.lent.swap(beyond, Ordering::Relaxed);
    LENT.fetch_add(beyond.wrapping_sub(before), Ordering::Relaxed);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ring_stays_at_a_mebibyte_once_all_is_lent() {
        for (largest, lent, all, expected) in [
            (22, 0, 100, 22),
            (22, 99, 100, 22),
            (22, 100, 100, 20),
            (18, 100, 100, 18),
            (22, 0, 0, 20),
        ] {
            assert_eq!(limit_of(largest, lent, all), expected, "{lent} of {all}");
        }
    }

    #[test]
    fn memory_lent_beyond_a_mebibyte_is_returned_once() {
        let socket = Socket::open(-1, crate::sock::Origin::Connected).expect("a record");
        let before = LENT.load(Ordering::Relaxed);
        lend(socket, 20);
        assert_eq!(LENT.load(Ordering::Relaxed) - before, 0);
        lend(socket, 21);
        assert_eq!(LENT.load(Ordering::Relaxed) - before, 1 << 20);
        lend(socket, 22);
        assert_eq!(LENT.load(Ordering::Relaxed) - before, 3 << 20);
        take_back(socket);
        take_back(socket);
        assert_eq!(LENT.load(Ordering::Relaxed), before);
    }
}
