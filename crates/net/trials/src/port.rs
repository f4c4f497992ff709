//! Free TCP ports for servers of the trials.

use std::{
    net::TcpListener,
    sync::atomic::{AtomicU32, Ordering},
};

/// First port, and their number: below the ephemeral range (`man 7 ip`, `ip_local_port_range`), so
/// that no outgoing connection can take one in the meantime.
const FIRST: u16 = 20_000;
const COUNT: u32 = 12_000;

/// A port that is not in use. Two calls in one process never return the same one.
///
/// # Panics
/// If all ports are in use.
pub fn free() -> u16 {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    // Test programs that run at the same time begin at distant ports.
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
