//! memif: two devices, and peers that break the protocol. Needs root.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod frames;
mod hostile;
mod peers;
mod raw;
mod waiting;
mod world;
