//! A client that uses many connections for a while, then rests on all of them.
//!
//! It runs as a process of its own, dressed as the arm's other processes are. It waits in one
//! epoll set, as event loops do, and ends when a connection has something to say: its server
//! has gone. Deliberately absent: any knowledge of how a connection is accelerated.

mod rest;

use std::io::{self, Read, Write};
use std::net::{SocketAddrV4, TcpStream};
use std::time::Duration;

use crate::resident;

/// Requests on each connection: a connection under Saiga earns its channel with the first 32, and
/// the two ends find each other within some four more.
const REQUESTS: u32 = 64;
/// Connections that are opened and used at a time. A hand-shake under way holds a descriptor; and
/// the backlog of redis-server takes 511 from all holders, beyond which connect(2) waits a second
/// and more for its next SYN.
const BATCH: usize = 100;
/// A server that does not answer a request within this time is stuck.
const ANSWER_LIMIT: Duration = Duration::from_secs(20);
const PING: &[u8] = b"PING\r\n";
const PONG: &[u8] = b"+PONG\r\n";

/// What the holder prints when it is up, followed by its resident bytes.
pub(crate) const BEGAN: &str = "began ";
/// What it prints when it rests.
pub(crate) const RESTS: &str = "rests";

/// Why the connections are not held.
#[derive(Debug, thiserror::Error)]
pub enum HolderError {
    /// The system refuses one more.
    #[error("connection {number} of {wanted} to {place} cannot be opened: {error}")]
    Open {
        /// The one that failed, from 1.
        number: u32,
        /// How many were wanted.
        wanted: u32,
        /// Where the server listens.
        place: SocketAddrV4,
        /// What the system said.
        error: io::Error,
    },
    /// The server does not answer as it should.
    #[error("the server does not answer a PING: {0}")]
    Answer(io::Error),
    /// Memory cannot be read, or nothing can be printed or waited for.
    #[error(transparent)]
    System(#[from] io::Error),
}

/// Opens `connections` to a server at `place`, uses each, and rests until the server goes.
///
/// # Errors
/// [`HolderError`].
pub fn hold(place: SocketAddrV4, connections: u32, mut out: impl Write) -> Result<(), HolderError> {
    writeln!(out, "{BEGAN}{}", resident::bytes(std::process::id())?)?;
    out.flush()?;
    let mut held = Vec::new();
    for first in (1..=connections).step_by(BATCH) {
        let begun = held.len();
        for number in (first..=connections).take(BATCH) {
            held.push(open(place, number, connections)?);
        }
        warm(&mut held[begun..]).map_err(HolderError::Answer)?;
    }
    writeln!(out, "{RESTS}")?;
    out.flush()?;
    Ok(rest::until_any_stirs(&held)?)
}

/// Connection `number` of `wanted`.
fn open(place: SocketAddrV4, number: u32, wanted: u32) -> Result<TcpStream, HolderError> {
    let opened = || {
        let stream = TcpStream::connect(place)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(ANSWER_LIMIT))?;
        Ok(stream)
    };
    opened().map_err(|error| HolderError::Open {
        number,
        wanted,
        place,
        error,
    })
}

/// Requests on all of `batch` at once, as often as each connection needs.
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
                return Err(io::Error::other(format!("it said {text:?}")));
            }
        }
    }
    Ok(())
}
