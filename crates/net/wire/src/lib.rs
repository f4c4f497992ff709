//! Packet headers: Ethernet, ARP, IPv4, IPv6, ICMP, NDP and TCP, parsed from and emitted to byte
//! slices, with their checksums.
//!
//! A bad packet is an outcome, [`Malformed`], which callers count by reason. Headers become plain
//! values; payloads are slices of the input. Nothing here does I/O, reads a clock, allocates, or
//! panics on any input. Each loop is bounded by the length of its input.
//!
//! Absent on purpose: UDP and all other transports, whose bytes are handed out; checks of addresses
//! that depend on the host's configuration; reassembly.

#![no_std]
#![forbid(unsafe_code)]

pub mod arp;
mod bytes;
pub mod checksum;
mod emit;
pub mod ethernet;
pub mod frame;
pub mod icmp;
pub mod icmp4;
pub mod icmp6;
pub mod ip;
pub mod ipv4;
pub mod ipv6;
mod malformed;
pub mod ndp;
pub mod offload;
pub mod quote;
mod seq;
pub mod tcp;
pub mod virtio;

pub use emit::EmitError;
pub use malformed::Malformed;
pub use seq::SeqNum;
