//! A server that sends a few bytes at a time without end. No single read of its client takes long,
//! so that only a timeout for the whole operation ends the wait.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Pause between two pieces.
const PAUSE: Duration = Duration::from_millis(10);
/// The server closes the connection after this number of pieces, so that a client without a timeout
/// fails.
const PIECES: usize = 1000;

/// Starts a server that accepts one connection. It sends `first`, then `piece` repeatedly until the
/// client closes the connection. Returns the port and the thread of the server.
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
