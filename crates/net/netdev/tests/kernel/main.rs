//! TAP and TUN devices beside the kernel's ping and TCP, in network namespaces of their own;
//! captures and filters beside tshark and tcpdump.
//!
//! Needs root, /dev/net/tun, ip(8), ping(8), mount(8), capinfos(1), tshark(1) and tcpdump(8).
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod capture;
mod errors;
mod faults;
mod filter;
mod host;
mod namespace;
mod queues;
mod tap;
