//! A capture file from a stranger: any bytes give an error or results within the limits.
//!
//! Seeds: `cargo run -p saiga-capture --example seeds -- fuzz/corpus/capture`.

#![no_main]

use libfuzzer_sys::fuzz_target;
use saiga_capture::{Limits, Options, read};
use std::time::Duration;

const WINDOWS: usize = 200;

fuzz_target!(|bytes: &[u8]| {
    let limits = Limits {
        connections: 16,
        servers: 8,
        clients: 4,
        windows: WINDOWS,
        outstanding: 64,
        buffered_bytes: 4_096,
        marks: 32,
    };
    let options = Options {
        window: Duration::from_millis(100),
        limits,
        ..Options::default()
    };
    let Ok(traffic) = read(bytes, &options) else {
        return;
    };
    assert!(traffic.servers.len() <= 8);
    let windows: usize = traffic.servers.values().map(|server| server.windows.len()).sum();
    assert!(windows <= WINDOWS);
    for server in traffic.servers.values() {
        let begun: u64 = server.windows.iter().map(|window| window.arrivals).sum();
        assert!(begun <= server.requests.answered + server.requests.unanswered);
        assert!(server.windows.iter().all(|window| window.concurrency > -1e-6));
    }
});
