//! Ports of DPDK without hardware: TAP, shared memory (memif) and loops.
//!
//! DPDK begins once for all tests of this process, without huge pages. The plug-in is built by
//! `tools/dpdk`, so libdpdk-dev must be there, which `tools/setup test` installs. Needs root.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../kernel/host.rs"]
mod host;
#[path = "../kernel/namespace.rs"]
mod namespace;
#[path = "../memif/world.rs"]
#[expect(dead_code, reason = "the tests of memif use the rest")]
mod shared;

mod errors;
mod frames;
mod kernel;
mod memif;
mod world;
