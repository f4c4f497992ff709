//! Reassembly: orders, overlaps, limits.

use super::*;
use alloc::vec;
use core::net::{Ipv4Addr, Ipv6Addr};
use saiga_wire::frame::{Packet, Transport};
use saiga_wire::ip::TrafficClass;

const START: Instant = Instant(0);

fn v4(last: u8) -> Network {
    Network::V4(ipv4::Header {
        source: Ipv4Addr::new(192, 0, 2, last),
        destination: Ipv4Addr::new(192, 0, 2, 1),
        protocol: Protocol::UDP,
        traffic_class: TrafficClass(2),
        ttl: 64,
        id: 7,
        dont_fragment: false,
        more_fragments: true,
        fragment_offset: 0,
    })
}

fn v6() -> Network {
    Network::V6(ipv6::Header {
        source: Ipv6Addr::LOCALHOST,
        destination: Ipv6Addr::LOCALHOST,
        protocol: Protocol::UDP,
        traffic_class: TrafficClass(0),
        flow_label: 0,
        hop_limit: 64,
    })
}

fn fragment(id: u32, offset: u16, more: bool) -> Fragment {
    Fragment { id, offset, more }
}

/// The bytes of a payload from an offset on: each has its offset as value.
fn bytes(range: core::ops::Range<u8>) -> Vec<u8> {
    range.collect()
}

#[test]
fn fragments_in_every_order_make_the_packet() {
    let pieces = [(0_u16, 8, true), (8, 24, true), (24, 29, false)];
    for order in [
        [0, 1, 2],
        [0, 2, 1],
        [1, 0, 2],
        [1, 2, 0],
        [2, 0, 1],
        [2, 1, 0],
    ] {
        for header in [v4(9), v6()] {
            let mut reassembly = Reassembly::default();
            for (nth, piece) in order.into_iter().enumerate() {
                let (at, end, more) = pieces[piece];
                let payload = bytes(u8::try_from(at).unwrap()..end);
                let outcome = reassembly.add(header, fragment(7, at, more), &payload, START);
                if nth < 2 {
                    assert_eq!(outcome, Outcome::Incomplete);
                    continue;
                }
                let Outcome::Complete(whole) = outcome else {
                    panic!("{outcome:?}");
                };
                let packet = Packet::parse_reassembled(&whole).unwrap();
                assert_eq!(packet.network.addresses(), header.addresses());
                assert_eq!(packet.transport, Transport::Other(&bytes(0..29)[..]));
            }
            assert_eq!((reassembly.bytes, reassembly.packets.len()), (0, 0));
        }
    }
}

/// RFC 5722 §3: an attacker could replace bytes that a filter has seen.
#[test]
fn fragments_that_overlap_end_the_packet() {
    for (name, at, end, more) in [
        ("the same place and other bytes", 8_u16, 24_u8, true),
        ("the end of another one", 16, 32, true),
        ("the begin of another one", 0, 16, true),
        ("all of another one", 0, 40, true),
        ("an end before the others", 8, 12, false),
    ] {
        let mut reassembly = Reassembly::default();
        let first = reassembly.add(v4(9), fragment(7, 8, true), &bytes(8..24), START);
        assert_eq!(first, Outcome::Incomplete, "{name}");
        let payload = vec![0xee; usize::from(end) - usize::from(at)];
        let outcome = reassembly.add(v4(9), fragment(7, at, more), &payload, START);
        assert_eq!(outcome, Outcome::Overlap, "{name}");
        assert_eq!(
            (reassembly.bytes, reassembly.packets.len()),
            (0, 0),
            "{name}"
        );
    }
}

#[test]
fn two_ends_that_differ_end_the_packet() {
    let mut reassembly = Reassembly::default();
    reassembly.add(v4(9), fragment(7, 8, false), &bytes(8..20), START);
    let outcome = reassembly.add(v4(9), fragment(7, 24, false), &bytes(24..30), START);
    assert_eq!(outcome, Outcome::Overlap);
}

#[test]
fn a_fragment_that_comes_twice_is_ignored() {
    let mut reassembly = Reassembly::default();
    for _ in 0..3 {
        let outcome = reassembly.add(v4(9), fragment(7, 8, false), &bytes(8..20), START);
        assert_eq!(outcome, Outcome::Incomplete);
    }
    let outcome = reassembly.add(v4(9), fragment(7, 0, true), &bytes(0..8), START);
    assert!(matches!(outcome, Outcome::Complete(_)));
}

#[test]
fn packets_of_other_sources_and_numbers_are_separate() {
    let mut reassembly = Reassembly::default();
    reassembly.add(v4(9), fragment(7, 0, true), &bytes(0..8), START);
    for (header, id) in [(v4(8), 7), (v4(9), 8)] {
        let outcome = reassembly.add(header, fragment(id, 8, false), &bytes(8..9), START);
        assert_eq!(outcome, Outcome::Incomplete);
    }
}

/// RFC 3168 §5.3.
#[test]
fn one_congestion_mark_marks_the_packet() {
    let marked = match v4(9) {
        Network::V4(header) => Network::V4(ipv4::Header {
            traffic_class: TrafficClass(3),
            ..header
        }),
        v6 @ Network::V6(_) => v6,
    };
    let mut reassembly = Reassembly::default();
    reassembly.add(v4(9), fragment(7, 0, true), &bytes(0..8), START);
    let outcome = reassembly.add(marked, fragment(7, 8, false), &bytes(8..9), START);
    let Outcome::Complete(whole) = outcome else {
        panic!("{outcome:?}");
    };
    assert_eq!(whole[1], 3);
}

#[test]
fn missing_fragments_end_the_wait() {
    let mut reassembly = Reassembly::default();
    reassembly.add(v4(9), fragment(7, 8, true), &bytes(8..16), START);
    reassembly.add(v6(), fragment(7, 0, true), &bytes(0..8), START);
    let v4_end = START + TIMEOUT_V4;
    assert_eq!(reassembly.next_timeout(), Some(v4_end));
    // The first fragment is not there, so there is no error.
    assert_eq!(reassembly.expire(v4_end), None);
    assert_eq!(reassembly.packets.len(), 1);
    let expired = reassembly.expire(START + TIMEOUT_V6).unwrap();
    assert_eq!(expired.addresses, v6().addresses());
    assert_eq!(expired.bytes.len(), 48);
    assert_eq!(reassembly.next_timeout(), None);
}

/// Two hosts send fragments without end, one of them many for each packet, beside an honest host.
#[test]
fn a_flood_of_fragments_has_limits() {
    let mut reassembly = Reassembly::default();
    for id in 0..100 {
        reassembly.add(v4(66), fragment(id, 8, true), &[0xee; 8], START);
        for at in (0..60_000).step_by(16) {
            reassembly.add(v4(67), fragment(id, at, true), &[0xee; 8], START);
        }
        assert!(reassembly.bytes <= MOST_BYTES + 100, "{id}");
        assert!(reassembly.packets.len() <= 2 * MOST_OF_A_SOURCE, "{id}");
    }
    reassembly.add(v4(9), fragment(7, 0, true), &bytes(0..8), START);
    for id in 0..100 {
        reassembly.add(v4(66), fragment(id, 8, true), &[0xee; 8], START);
    }
    let outcome = reassembly.add(v4(9), fragment(7, 8, false), &bytes(8..9), START);
    assert!(matches!(outcome, Outcome::Complete(_)));
}
