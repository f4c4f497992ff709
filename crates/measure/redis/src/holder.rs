//! A client that uses many connections for a while and then keeps them idle.
//!
//! It runs as a separate process with the environment of the arm's other processes. It waits on one
//! epoll set, like an event loop, and ends when a connection becomes readable, because the server
//! has ended. Deliberately absent: how connections are accelerated.

mod rest;

use std::io::{self, Read, Write};
use std::net::{SocketAddrV4, TcpStream};
use std::time::Duration;

use crate::resident;

/// Requests on each connection. A connection under Saiga is upgraded after the first 32, and both
/// ends find each other within about four more.
const REQUESTS: u32 = 64;
/// Connections that are opened and used at the same time. A handshake in progress holds a
/// descriptor. The backlog of redis-server is 511 for all holders together; beyond it connect(2)
/// waits a second or more for its next SYN.
const BATCH: usize = 100;
/// Timeout of an answer.
const ANSWER_LIMIT: Duration = Duration::from_secs(20);
const PING: &[u8] = b"PING\r\n";
const PONG: &[u8] = b"+PONG\r\n";

/// The holder prints this line at its start, followed by its resident bytes.
pub(crate) const BEGAN: &str = "began ";
/// The holder prints this line when all connections are idle.
pub(crate) const RESTS: &str = "rests";

/// The connections cannot be held.
#[derive(Debug, thiserror::Error)]
pub enum HolderError {
    #[error("connection {number} of {wanted} to {address} cannot be opened: {error}")]
    Open {
        /// Number of the failed connection, from 1.
        number: u32,
        wanted: u32,
        address: SocketAddrV4,
        error: io::Error,
    },
    #[error("the server does not answer a PING: {0}")]
    Answer(io::Error),
    /// Reading the memory, printing or waiting failed.
    #[error(transparent)]
    System(#[from] io::Error),
}

/// Opens `connections` to a server at `address`, uses each, and keeps them idle until the server
/// ends.
pub fn hold(
    address: SocketAddrV4,
    connections: u32,
    mut out: impl Write,
) -> Result<(), HolderError> {
    writeln!(out, "{BEGAN}{}", resident::bytes(std::process::id())?)?;
    out.flush()?;
    let mut held = Vec::new();
    for first in (1..=connections).step_by(BATCH) {
        let begun = held.len();
        for number in (first..=connections).take(BATCH) {
            held.push(open(address, number, connections)?);
        }
        warm(&mut held[begun..]).map_err(HolderError::Answer)?;
    }
    writeln!(out, "{RESTS}")?;
    out.flush()?;
    Ok(rest::until_any_is_readable(&held)?)
}

/// Opens connection `number` of `wanted`.
fn open(address: SocketAddrV4, number: u32, wanted: u32) -> Result<TcpStream, HolderError> {
    let opened = || {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(ANSWER_LIMIT))?;
        Ok(stream)
    };
    opened().map_err(|error| HolderError::Open {
        number,
        wanted,
        address,
        error,
    })
}

/// Sends [`REQUESTS`] requests on each connection of `batch`.
fn warm(batch: &mut [TcpStream]) -> io::Result<()> {
    for _ in 0..REQUESTS {
        for stream in &mut *batch {
            stream.write_all(PING)?;
        }
        for stream in &mut *batch {
            let mut answer = [0; PONG.len()];
            stream.read_exact(&mut answer)?;
            if answer != PONG {
                let text = String::from_utf8_lossy(&answer).into_owned();
                return Err(io::Error::other(format!("unexpected answer {text:?}")));
            }
        }
    }
    Ok(())
}
