//! Anchors between network namespaces, on the kernel of this machine.
//!
//! Needs root, /dev/net/tun, ip(8), ss(8) and nft(8). The namespaces belong to the tests.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod adversary;
mod connect;
mod end;
mod existing;
mod killed;
mod ports;
mod repair;
mod routes;
mod self_test;
mod world;
