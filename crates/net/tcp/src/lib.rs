//! One TCP connection as a deterministic state machine: segments, calls and time in; segments,
//! events and the next time-out out.
//!
//! [`Connection`] holds sequence ranges, not bytes: the send and the receive buffer belong to the
//! caller, which copies payloads between them and packets as the engine says. All calls get the
//! present [`Instant`] in a [`Context`]. A bad segment is an outcome, not an error.
//!
//! One RFC idea is one file. Where Linux differs from an RFC on purpose, this engine follows Linux
//! and the file names the reason.
//!
//! Deliberately absent: sockets, clocks, packets, routes, and data on SYN (RFC 7413).

#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(test)]
extern crate std;

mod assembly;
mod challenge;
mod config;
mod congestion;
mod connection;
mod context;
mod cookie;
mod counters;
mod early;
mod event;
mod flight;
mod handshake;
mod info;
mod iss;
mod min_rtt;
mod open;
mod pacing;
mod path_mtu;
mod rack;
mod receiver;
mod rtt;
mod sender;
mod syn_received;
mod syn_sent;
mod time;
mod time_wait;
mod tlp;
mod transmit;
mod undo;

pub use config::{Config, KeepAlive};
pub use congestion::Algorithm;
pub use connection::{Connection, IcmpError, Place, Settings, StateName};
pub use context::{Arrival, Context};
pub use cookie::CookieSecret;
pub use counters::Counters;
pub use event::{CloseReason, Events};
pub use handshake::Start;
pub use info::Info;
pub use iss::IssGenerator;
pub use rtt::Bounds as RtoBounds;
pub use time::{Instant, Micros};
pub use transmit::{Transmit, reset_for};
