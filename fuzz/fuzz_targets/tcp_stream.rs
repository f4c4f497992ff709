//! A sequence of calls, time and segments into one TCP connection.

#![no_main]

#[path = "../../crates/net/tcp/tests/stream/driven/mod.rs"]
mod driven;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| driven::stream(bytes));
