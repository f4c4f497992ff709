//! Limits the memory of the rings that this process writes.
//!
//! A ring whose reader lags grows to the size that TCP's buffers would have. The kernel bounds
//! TCP's buffers for the whole machine (tcp_mem) and for a cgroup. Here each process has two bounds
//! of its own; without them, a thousand lagging readers would take gigabytes, and the kernel would
//! end a process of a small container. What rings have beyond 1 MiB each has a bound: above it, a
//! ring of 1 MiB is full, like a socket's buffer. All rings together have the other bound: above
//! it, a connection whose ring would have to grow goes back to TCP, as when memory is short.

use crate::sock::Socket;
use crate::{memory, rt};
use core::sync::atomic::{AtomicU64, Ordering};
use saiga_channel::ring::{PLENTY_SHIFT, START_SHIFT};

/// Part of the memory for what rings have beyond 1 MiB each: 1/16.
const PART_BEYOND: u64 = 16;
/// Upper bound in bytes for the same.
const MOST_BEYOND: u64 = 256 << 20;
/// Part of the memory for all rings: both ends of a connection may be in one cgroup, and have as
/// much as the programs themselves.
const PART_ALL: u64 = 4;

/// Bytes that rings may have beyond 1 MiB each.
static BEYOND: AtomicU64 = AtomicU64::new(0);
/// Bytes that all rings may have.
static ALL: AtomicU64 = AtomicU64::new(u64::MAX);
/// Bytes that rings have now beyond 1 MiB each.
static LENT_BEYOND: AtomicU64 = AtomicU64::new(0);
/// Bytes that all rings have now, without those that never grew.
static LENT: AtomicU64 = AtomicU64::new(0);

/// Sets the limits from the memory that the process may use.
pub(crate) fn start() {
    if let Some(memory) = memory::usable() {
        BEYOND.store((memory / PART_BEYOND).min(MOST_BEYOND), Ordering::Relaxed);
        ALL.store(memory / PART_ALL, Ordering::Relaxed);
    }
}

/// Logarithm of the capacity to which a ring may grow now. Threads that ask at the same time may
/// exceed the limit by one ring each.
pub(crate) fn limit() -> u32 {
    limit_of(
        rt::max_shift(),
        LENT_BEYOND.load(Ordering::Relaxed),
        BEYOND.load(Ordering::Relaxed),
    )
}

fn limit_of(largest: u32, lent: u64, all: u64) -> u32 {
    if lent < all {
        largest
    } else {
        largest.min(PLENTY_SHIFT)
    }
}

/// Whether the ring that `socket` writes may take `1 << shift` bytes now. The first capacity is
/// always allowed: a connection on TCP takes as much.
pub(crate) fn permits(socket: &Socket, shift: u32) -> bool {
    let own = socket.lent.load(Ordering::Relaxed);
    let others = LENT.load(Ordering::Relaxed).saturating_sub(own);
    fits(shift, others, ALL.load(Ordering::Relaxed))
}

fn fits(shift: u32, others: u64, all: u64) -> bool {
    shift <= START_SHIFT || others.saturating_add(1 << shift) <= all
}

/// Records that the ring which `socket` writes has `1 << shift` bytes. The caller holds the send
/// lock of our side.
pub(crate) fn lend(socket: &Socket, shift: u32) {
    note(socket, 1 << shift);
}

/// Records that the memory of the ring which `socket` writes was released.
pub(crate) fn take_back(socket: &Socket) {
    // A process that shares the connection may have given its memory back.
    if socket.lent.load(Ordering::Relaxed) > 0 {
        note(socket, 0);
    }
}

fn note(socket: &Socket, bytes: u64) {
    let before = socket.lent.swap(bytes, Ordering::Relaxed);
    LENT.fetch_add(bytes.wrapping_sub(before), Ordering::Relaxed);
    let beyond = |bytes: u64| bytes.saturating_sub(1 << PLENTY_SHIFT);
    if beyond(bytes) != beyond(before) {
        let more = beyond(bytes).wrapping_sub(beyond(before));
        LENT_BEYOND.fetch_add(more, Ordering::Relaxed);
    }
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
    fn a_ring_that_all_rings_have_no_memory_for_does_not_grow() {
        for (shift, others, all, expected) in [
            (14, 0, 1 << 14, true),
            (14, 1, 1 << 14, false),
            (13, 1 << 20, 1 << 14, true),
            (22, u64::MAX, u64::MAX, true),
        ] {
            assert_eq!(fits(shift, others, all), expected, "{others} of {all}");
        }
    }

    #[test]
    fn memory_of_a_ring_is_counted_and_returned_once() {
        let socket = Socket::open(-1, crate::sock::Origin::Connected).expect("a record");
        let now = || [&LENT, &LENT_BEYOND].map(|sum| sum.load(Ordering::Relaxed));
        let before = now();
        for (shift, [all, beyond]) in [(20, [1, 0]), (21, [2, 1]), (22, [4, 3])] {
            lend(socket, shift);
            let grown = now().into_iter().zip(before).map(|(now, then)| now - then);
            assert!(grown.eq([all << 20, beyond << 20]), "{shift}");
        }
        take_back(socket);
        take_back(socket);
        assert_eq!(now(), before);
    }
}
