//! Any bytes give a result or an error, in bounded memory and without a panic.

use std::time::Duration;

use proptest::prelude::*;
use saiga_capture::{Analyser, Limits, Link, Options, Packet, Timestamp, Traffic, read};

use crate::{
    mixed::{mixed, mixed_ng},
    wire::{self, Ng, Order, START_NS, Side, Wire},
};

const WINDOWS: usize = 50;

fn small() -> Options {
    let limits = Limits {
        connections: 16,
        servers: 4,
        clients: 4,
        windows: WINDOWS,
        outstanding: 32,
        buffered_bytes: 2_000,
        marks: 16,
    };
    Options {
        window: Duration::from_millis(100),
        limits,
        ..Options::default()
    }
}

fn assert_bounded(traffic: &Traffic) {
    assert!(traffic.servers.len() <= 4);
    assert!(traffic.marks.len() <= 80);
    let windows: usize = traffic
        .servers
        .values()
        .map(|server| server.windows.len())
        .sum();
    assert!(windows <= WINDOWS, "{windows}");
    for server in traffic.servers.values() {
        assert!(server.clients <= 4);
        let begun: u64 = server.windows.iter().map(|window| window.arrivals).sum();
        assert!(begun <= server.requests.answered + server.requests.unanswered);
    }
}

fn check(file: &[u8]) {
    if let Ok(traffic) = read(file, &small()) {
        assert_bounded(&traffic);
    }
}

#[derive(Debug, Clone)]
enum Change {
    Set(usize, u8),
    Remove(usize, usize),
    Repeat(usize, usize),
    Cut(usize),
}

fn change() -> impl Strategy<Value = Change> {
    let place = 0..20_000_usize;
    prop_oneof![
        6 => (place.clone(), any::<u8>()).prop_map(|(at, byte)| Change::Set(at, byte)),
        1 => (place.clone(), 1..200_usize).prop_map(|(at, count)| Change::Remove(at, count)),
        1 => (place.clone(), 1..2_000_usize).prop_map(|(at, count)| Change::Repeat(at, count)),
        1 => place.prop_map(Change::Cut),
    ]
}

fn changed(mut file: Vec<u8>, changes: &[Change]) -> Vec<u8> {
    for change in changes {
        let length = file.len().max(1);
        match *change {
            Change::Set(at, byte) => {
                if let Some(place) = file.get_mut(at % length) {
                    *place = byte;
                }
            }
            Change::Remove(at, count) => {
                let at = at % length;
                drop(file.drain(at.min(file.len())..(at + count).min(file.len())));
            }
            Change::Repeat(at, count) => {
                let at = (at % length).min(file.len());
                let part = file[at..(at + count).min(file.len())].to_vec();
                drop(file.splice(at..at, part));
            }
            Change::Cut(at) => file.truncate(at % length),
        }
    }
    file
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn changed_captures_are_read(changes in prop::collection::vec(change(), 1..30)) {
        check(&changed(mixed().pcap(), &changes));
        check(&changed(mixed_ng(), &changes));
    }

    #[test]
    fn random_bytes_behind_a_file_header_are_read(
        bytes in prop::collection::vec(any::<u8>(), 0..3_000),
    ) {
        for header in [Wire::new().pcap(), Ng::new(Order::Little).file] {
            check(&[header, bytes.clone()].concat());
        }
        check(&bytes);
    }

    /// Streams of random bytes that begin like each protocol, in segments in any order.
    #[test]
    fn random_streams_are_read(
        which in 0..5_usize,
        parts in prop::collection::vec(
            (any::<bool>(), -40..2_000_i32, prop::collection::vec(any::<u8>(), 0..60), 0..3_u8),
            0..60,
        ),
    ) {
        let starts: [&[u8]; 5] = [
            b"*2\r\n$3\r\nGET\r\n$1\r\nk\r\n",
            b"GET / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n",
            b"\0\0\0\x08\0\x03\0\0",
            b"Q\0\0\0\x0dSELECT 1\0",
            b"\x09\0\0\0\x03SELECT 1",
        ];
        let mut wire = Wire::new();
        let mut connection = wire.open("10.0.0.1:40000", "10.0.0.2:7000");
        wire.send(&mut connection, Side::Client, starts[which]);
        for (is_client, offset, bytes, flags) in &parts {
            let side = if *is_client { Side::Client } else { Side::Server };
            let (seq, ack) = connection.numbers(side);
            let seq = if *flags == 0 { seq.wrapping_add_signed(*offset) } else { seq };
            let flags = wire::ACK;
            let segment = wire::Segment { seq, ack, flags, window: 9, bytes };
            wire.segment(&connection, side, segment);
            connection.advance(side, bytes.len());
        }
        check(&wire.pcap());
    }

    #[test]
    fn random_packets_of_each_link_are_read(
        packets in prop::collection::vec(
            (prop::collection::vec(any::<u8>(), 0..120), any::<u64>(), any::<u32>()), 0..50),
        numbers in prop::collection::vec(0..300_u16, 50),
    ) {
        let mut analyser = Analyser::new(&small());
        for ((bytes, at, length), number) in packets.iter().zip(numbers) {
            let link = Link::of_number(number).unwrap_or(Link::RawIp);
            analyser.packet(Packet { at: Timestamp(*at), link, bytes, length: *length });
        }
        assert_bounded(&analyser.finish());
    }
}

/// A hundred years lie between two packets: no window is written for them.
#[test]
fn a_jump_of_the_clock_makes_no_windows() {
    let mut wire = Wire::new();
    let mut connection = wire.open("10.0.0.1:40000", "10.0.0.2:7000");
    wire.send(&mut connection, Side::Client, b"ask");
    let mut late = wire.records.clone();
    let century = 2_200_000_000_u64 * 1_000_000_000;
    late.iter_mut()
        .for_each(|record| record.at = record.at - START_NS + START_NS + century);
    wire.records.extend(late);
    let traffic = read(&wire.pcap()[..], &Options::default()).expect("a capture");
    let server = traffic.servers.values().next().expect("a server");
    assert_eq!(server.windows.len(), 2);
}
