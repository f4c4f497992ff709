//! The stack as a host on a wire: two stacks, or a stack and frames made by hand.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod answers;
mod connections;
mod floods;
mod frames;
mod fuzzed;
mod neighbours;
mod offload;
mod seeds;
mod world;
