//! Snapshots, changes and neighbours of real interfaces, in network namespaces of their own.
//!
//! Needs root and ip(8).
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod changes;
mod configuration;
mod namespace;
mod neighbours;
mod snapshots;
