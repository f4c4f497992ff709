//! A TCP segment with any header and options, read and written as smoltcp does.

#![no_main]

#[path = "../../crates/net/wire/tests/wire/fuzzed/mod.rs"]
#[expect(dead_code, reason = "the other target uses the rest")]
mod fuzzed;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| fuzzed::tcp(bytes));
