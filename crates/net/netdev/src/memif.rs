//! memif: frames in memory that two processes share, such as two gateways, or a gateway and VPP or
//! a program of DPDK.
//!
//! Source: the protocol of VPP, version 2.0 (`src/plugins/memif/memif.h` of VPP,
//! `drivers/net/memif/memif.h` of DPDK). A server and a client agree over a socket; then frames
//! move by rings, and an eventfd wakes an end that sleeps. The client owns the memory. Every value
//! that the peer can write is read once and checked: a peer that breaks a rule is disconnected.
//!
//! Between two ends of Saiga, checksums stay open and super-segments pass, as over virtio.
//! Deliberately absent: several queues, because nothing makes a foreign peer keep a connection on
//! one queue; the modes IP and punt/inject; secrets, because the user of the peer is checked.

mod client;
mod divide;
mod link;
mod memory;
mod message;
mod peer;
mod queue;
mod ring;
mod server;
mod socket;
mod wake;

pub use queue::{End, Memif, MemifError, Options};

/// What both ends of Saiga call themselves. A server with this name takes frames with a virtio
/// header in front, in which a client asks for `private_hdr_size`.
const NAME: &str = "saiga-virtio-1";
/// Version 2.0.
const VERSION: u16 = 0x0200;
/// The highest binary logarithm of a ring's size, as in DPDK and VPP.
const MOST_SHIFT: u8 = 14;
