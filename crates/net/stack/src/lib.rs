//! A TCP/IP host as a deterministic state machine: frames, calls and time in; frames, news and the
//! next time-out out.
//!
//! [`Stack`] has many addresses of IPv4 and IPv6, neighbours, routes, VLANs, ICMP, reassembly,
//! listeners and connections. The buffers belong to its [`Owner`], which also decides about each
//! connection before the stack answers. What is not for the stack is handed back untouched. Each
//! worker has a stack of its own.
//!
//! Every table has a limit, and no work grows with the number of connections. Deliberately absent:
//! devices, clocks, threads, UDP, forwarding, DHCP and router discovery.

#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(test)]
extern crate std;

mod baked;
mod calls;
mod config;
mod connections;
mod counters;
mod discovery;
mod flow;
mod fragment;
mod handshake;
mod host;
mod icmp;
mod limit;
mod listener;
mod neighbour;
mod network;
mod owner;
mod path;
mod receive;
mod settings;
mod slab;
mod slot;
mod stack;
mod transmit;
mod view;
mod wheel;

pub use calls::ConnectError;
pub use config::{Config, Offload, Presence, Resolver, Segmentation};
pub use connections::Secrets;
pub use counters::Counters;
pub use flow::Flow;
pub use listener::{Listen, ListenError, ListenerId, MAX_LISTENERS};
pub use network::{
    Interface, Link, MAX_ADDRESSES, MAX_INTERFACES, MAX_ROUTES, Network, NetworkError, Route,
};
pub use owner::{Incoming, Owner};
pub use saiga_tcp::{CloseReason, Events, Info, Instant, KeepAlive, Micros, Settings, StateName};
pub use slab::ConnectionId;
pub use stack::{Outgoing, Stack, Verdict};
pub use view::View;
