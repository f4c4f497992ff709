//! Frames, calls and time for a TCP/IP host.

#![no_main]

#[path = "../../crates/net/stack/tests/host/fuzzed/mod.rs"]
mod fuzzed;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| fuzzed::frames(bytes));
