//! Anchors of remote connections.
//!
//! An anchor is a kernel TCP connection over loopback that has the address and port of a remote
//! client as its source and the destination of the client's SYN as its destination. The gateway
//! opens one before it answers the SYN. So the server sees its client, and the kernel decides
//! about listeners, backlog and refusal. [`Routes`] bring the server's replies to loopback,
//! [`Watch`] notices that others change them, [`Anchors`] open anchors, [`end`] ends them,
//! [`urgent`] finds urgent bytes, [`self_test()`] and [`firewall`] find what prevents or bypasses
//! them. Everything acts on the network namespace of the calling thread.
//!
//! Deliberately absent: packet devices, the client's TCP, threads, and sysctls: none is changed.

#![deny(missing_docs)]

mod connect;
pub mod end;
pub mod existing;
pub mod firewall;
mod netlink;
mod routes;
mod rule;
mod self_test;
mod sys;
mod table;
mod tun;
pub mod urgent;
mod watch;

pub use connect::{Anchors, ConnectError, Opening, proceed};
pub use routes::{Config, MARK, Routes, RoutesError, remove_leftovers};
pub use self_test::{Fault, self_test};
pub use table::own_addresses;
pub use tun::TunError;
pub use watch::{News, Watch};
