//! A server that never stops to send, a little at a time: no single read of its client takes long.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Between two pieces.
const PAUSE: Duration = Duration::from_millis(10);
/// After so many pieces it closes the connection: a client that waits for the end of them fails by that.
const PIECES: usize = 1000;

/// Accepts one connection, on which it sends `first`, then `piece` again and again until the client
/// closes it. Its port, and the thread.
pub(crate) fn dribbling(first: &'static [u8], piece: &'static [u8]) -> (u16, JoinHandle<()>) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    let port = listener.local_addr().expect("its address").port();
    let server = thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("a client");
        stream.set_read_timeout(Some(PAUSE)).expect("a time-out");
        let mut sent = stream.write_all(first).is_ok();
        for _ in 0..PIECES {
            let heard = stream.read(&mut [0; 512]);
            let is_closed = match &heard {
                Ok(count) => *count == 0,
                Err(error) => error.kind() != ErrorKind::WouldBlock,
            };
            if is_closed || !sent {
                return;
            }
            sent = stream.write_all(piece).is_ok();
        }
    });
    (port, server)
}
