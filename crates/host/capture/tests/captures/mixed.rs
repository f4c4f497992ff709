//! A small capture with a bit of everything: where proptest and the fuzzer begin.

use super::wire::{Ng, Order, Side, Wire};

/// A capture with a bit of everything.
pub(crate) fn mixed() -> Wire {
    let mut wire = Wire::new();
    let http = b"GET / HTTP/1.1\r\nHost: h\r\n\r\n";
    let exchanges: [(&str, &[u8], &[u8]); 5] = [
        (
            "10.0.0.2:6379",
            b"*2\r\n$3\r\nGET\r\n$1\r\nk\r\n",
            b"*2\r\n$3\r\nabc\r\n:1\r\n",
        ),
        (
            "10.0.0.2:3306",
            b"\x09\0\0\0\x03SELECT 1",
            b"\x01\0\0\x01\x01\x04\0\0\x02\x03def",
        ),
        (
            "10.0.0.2:5432",
            b"Q\0\0\0\x0dSELECT 1\0",
            b"C\0\0\0\x0dSELECT 1\0Z\0\0\0\x05I",
        ),
        (
            "[::2]:80",
            http,
            b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
        ),
        ("10.0.0.2:9999", b"ask", b"answer"),
    ];
    for (place, (server, request, response)) in exchanges.into_iter().enumerate() {
        let client = if server.starts_with('[') {
            "[::1]"
        } else {
            "10.0.0.1"
        };
        let mut connection = wire.open(&format!("{client}:{}", 40_000 + place), server);
        for _ in 0..4 {
            wire.send(&mut connection, Side::Client, request);
            wire.send(&mut connection, Side::Server, response);
        }
        if place % 2 == 0 {
            wire.close(&mut connection, Side::Client);
        }
    }
    wire
}

/// The same as pcapng.
pub(crate) fn mixed_ng() -> Vec<u8> {
    let mut ng = Ng::new(Order::Big);
    ng.interface(1, &[(2, b"eth0"), (9, &[9])]);
    mixed()
        .records
        .iter()
        .for_each(|record| ng.packet(0, record.at, record));
    ng.statistics(0, &[(5, &[0; 8])]);
    ng.file
}
