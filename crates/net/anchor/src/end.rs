//! Ending an anchor as the client's connection has ended.
//!
//! Spec: RFC 9293 §3.6 and §3.10.7.4, `man 7 socket` (SO_LINGER). In the other direction no call is
//! needed: the anchor's end of stream is the server's FIN, and ECONNRESET the server's reset.

use std::io;
use std::net::{Shutdown, TcpStream};
use std::time::Duration;

use socket2::SockRef;

/// Passes the client's FIN to the server, after the last byte was written to the anchor. The server
/// may go on sending. Does nothing if the connection has ended.
///
/// # Errors
/// The errors of `shutdown(2)`.
pub fn finish(anchor: &TcpStream) -> io::Result<()> {
    match anchor.shutdown(Shutdown::Write) {
        Err(error) if error.kind() == io::ErrorKind::NotConnected => Ok(()),
        done => done,
    }
}

/// Passes the client's reset, or its silence, to the server, whose calls fail with ECONNRESET.
/// Bytes that the server has not read are lost, as after a reset by the client.
pub fn reset(anchor: TcpStream) {
    // Fails only if the descriptor is not a socket.
    let _set = SockRef::from(&anchor).set_linger(Some(Duration::ZERO));
    drop(anchor);
}
