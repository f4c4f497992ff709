//! Requests, response times and TCP events per server, from packet captures.
//!
//! [`read`] takes a pcap or pcapng file from any reader and returns [`Traffic`]: for each server
//! address the requests, the concurrency and the response times per window, and what TCP did.
//! A live source feeds an [`Analyser`] packet by packet and gets the same. MySQL, PostgreSQL, RESP
//! and HTTP/1 are parsed; any other protocol is counted in turns of client and server.
//! [`clock::offset`] estimates how far the clocks of two captures are apart.
//!
//! Time comes from packets only. Memory is bounded by [`Limits`], whatever the file holds.
//!
//! Deliberately absent: statement texts, keys and values, which no result contains, and sockets.

mod analyser;
pub mod clock;
mod file;
mod link;
mod options;
mod protocol;
mod segment;
mod tcp;
mod time;
mod traffic;

pub use analyser::Analyser;
pub use file::{ReadError, read};
pub use link::{Link, Packet};
pub use options::{Limits, Options, Protocol};
pub use protocol::Kind;
pub use time::Timestamp;
pub use traffic::{
    Closings, Handshakes, Interface, Kinds, Mark, Parsing, Requests, Server, TcpEvents, Traffic,
    Window,
};
