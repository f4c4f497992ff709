//! Machines as trees of `/proc` and `/sys`, with facts of recorded ones: read, drawn, collected.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod collecting;
mod containers;
mod drawing;
mod latency;
mod reading;
mod recorded;
mod this_host;
mod tree;
