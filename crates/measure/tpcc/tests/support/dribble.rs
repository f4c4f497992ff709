//! A server that sends small pieces without end. No single read of its client takes long.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Time between two pieces.
const PAUSE: Duration = Duration::from_millis(10);
/// Number of pieces before the server closes the connection. A client without a deadline receives
/// all pieces, and its test fails.
const PIECES: usize = 1000;

/// Accepts one connection, sends `first`, then repeats `piece` until the client closes the
/// connection. Returns the port and the thread.
pub(crate) fn dribbling(first: &'static [u8], piece: &'static [u8]) -> (u16, JoinHandle<()>) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    let port = listener.local_addr().expect("its address").port();
    let server = thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("a client");
        stream.set_read_timeout(Some(PAUSE)).expect("a timeout");
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
