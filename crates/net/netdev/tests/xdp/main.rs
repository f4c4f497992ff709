//! AF_XDP on veth pairs between two network namespaces: the host under test, and a client.
//!
//! Needs root, ip(8), ping(8), veth and macvlan. Frames are counted and compared; nothing
//! here measures time.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod errors;
mod frames;
mod program;
mod queues;
mod service;
mod settings;
mod vlan;
mod world;
