//! Ports for servers of the trials.

use std::{
    net::TcpListener,
    sync::atomic::{AtomicU32, Ordering},
};

/// First port given out, and how many: below the ephemeral range (`man 7 ip`,
/// `ip_local_port_range`), so that no outgoing connection can take one meanwhile.
const FIRST: u16 = 20_000;
const COUNT: u32 = 12_000;

/// A port that nobody has. Two calls of one process never give the same one.
///
/// # Panics
/// When all are taken.
pub fn free() -> u16 {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    // Test programs that run at the same time begin far from each other.
    let first = std::process::id().wrapping_mul(61);
    let mut turns = (0..COUNT).map(|_| NEXT.fetch_add(1, Ordering::Relaxed));
    let mut ports = turns.by_ref().map(|turn| {
        let place = first.wrapping_add(turn) % COUNT;
        FIRST + u16::try_from(place).expect("the count is below 65,536")
    });
    ports
        .find(|port| TcpListener::bind(("127.0.0.1", *port)).is_ok())
        .expect("a free port")
}
