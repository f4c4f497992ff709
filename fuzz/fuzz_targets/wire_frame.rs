//! A frame from the network: any bytes give a packet within the frame or a reason, as they do in
//! smoltcp, and what was read can be written and read again.

#![no_main]

#[path = "../../crates/net/wire/tests/wire/fuzzed/mod.rs"]
#[expect(dead_code, reason = "the other target uses the rest")]
mod fuzzed;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| fuzzed::frame(bytes));
