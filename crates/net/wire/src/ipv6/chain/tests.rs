//! Packets with every extension header, and the answers to bad packets.

extern crate std;

use crate::Malformed::{self, *};
use crate::ip::{Fragment, Protocol};
use crate::ipv6::{Packet, ParameterProblem, parameter_problem};
use std::vec::Vec;

/// From 2001:db8::1 to 2001:db8::2; the length and the next header are set by [`packet`].
const FIXED: [u8; 40] = [
    0x60, 0, 0, 0, 0, 0, 0, 64, //
    0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, //
    0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2,
];
const TCP: [u8; 20] = [7; 20];
/// PadN alone.
const PADDING: [u8; 6] = [1, 4, 0, 0, 0, 0];

/// A packet with `first` as next header; the parts follow the header.
fn packet(first: u8, parts: &[&[u8]]) -> Vec<u8> {
    let mut bytes = [&FIXED[..], &parts.concat()].concat();
    let length = u16::try_from(bytes.len() - 40).unwrap();
    bytes[4..6].copy_from_slice(&length.to_be_bytes());
    bytes[6] = first;
    bytes
}

/// The same packet for a multicast address.
fn to_group(mut packet: Vec<u8>) -> Vec<u8> {
    packet[24..28].copy_from_slice(&[0xff, 2, 0, 0]);
    packet
}

/// An extension header: next header, length, and contents padded to a multiple of 8 bytes.
fn extension(next: u8, contents: &[u8]) -> Vec<u8> {
    let length = (2 + contents.len()).next_multiple_of(8);
    let mut bytes = [&[next, u8::try_from(length / 8 - 1).unwrap()], contents].concat();
    bytes.resize(length, 0);
    bytes
}

/// A fragment header with reserved bits that are set.
const fn fragment(next: u8, offset: u16, more: bool) -> [u8; 8] {
    let [high, low] = offset.to_be_bytes();
    [
        next,
        0xff,
        high,
        low | 6 | more as u8,
        0xde,
        0xad,
        0xbe,
        0xef,
    ]
}

const fn problem(code: u8, pointer: u32) -> Option<ParameterProblem> {
    Some(ParameterProblem { code, pointer })
}

/// The packet is refused for `reason`, and a host answers with `answer`.
fn assert_refused(name: &str, bytes: &[u8], reason: Malformed, answer: Option<ParameterProblem>) {
    assert_eq!(Packet::parse(bytes), Err(reason), "{name}");
    assert_eq!(parameter_problem(bytes), answer, "{name}");
    if reason != Ipv6UnknownOption {
        let found = parameter_problem(&to_group(bytes.to_vec()));
        assert_eq!(found, None, "{name} to a group");
    }
}

/// The packet is whole and has [`TCP`] as payload.
fn assert_passed(name: &str, bytes: &[u8]) {
    let found = Packet::parse(bytes).expect(name);
    assert_eq!(found.header.protocol, Protocol::TCP, "{name}");
    assert_eq!(found.payload, TCP, "{name}");
    assert_eq!(found.bytes, bytes, "{name}");
    let fragment = (found.fragment, found.fragment_header);
    assert_eq!(fragment, (None, false), "{name}");
}

#[test]
fn extension_headers_are_skipped() {
    // PadN; a router alert (RFC 2711), which may be skipped; PadN; Pad1 four times.
    let options = [1, 1, 0, 5, 2, 0, 0, 1, 1, 0, 0, 0, 0, 0];
    let hop_by_hop = extension(43, &options);
    let routing = extension(60, &[4, 0, 0, 0, 0, 0]);
    let destination = extension(6, &options);
    let all = packet(0, &[&hop_by_hop, &routing, &destination, &TCP]);
    assert_passed("hop-by-hop, routing, destination", &all);
    let routing_0 = extension(6, &[0, 0, 9, 9, 9, 9]);
    let bytes = packet(43, &[&routing_0, &TCP]);
    assert_passed("routing type 0 without segments left", &bytes);
}

#[test]
fn extension_headers_have_limits() {
    let (more, last) = (extension(60, &PADDING), extension(6, &PADDING));
    let eight = [more.repeat(7), last.clone(), TCP.to_vec()].concat();
    assert_passed("eight headers", &packet(60, &[&eight]));
    let nine = [more.repeat(8), last, TCP.to_vec()].concat();
    let nine = packet(60, &[&nine]);
    assert_refused("nine headers", &nine, Ipv6ExtensionLimit, None);
    let half = extension(60, &[0; 254]);
    let bytes_512 = packet(60, &[&half, &extension(6, &[0; 254]), &TCP]);
    assert_passed("512 bytes", &bytes_512);
    let bytes_520 = packet(60, &[&half, &extension(6, &[0; 260]), &TCP]);
    assert_refused("520 bytes", &bytes_520, Ipv6ExtensionLimit, None);
}

#[test]
fn a_packet_does_not_end_in_an_extension_header() {
    let options = extension(6, &PADDING);
    for length in 0..8 {
        let cut = packet(60, &[&options[..length]]);
        assert_refused("cut", &cut, Ipv6ExtensionTruncated, None);
    }
    let header = fragment(6, 8, false);
    let cut = packet(44, &[&header[..7]]);
    assert_refused("cut fragment header", &cut, Ipv6ExtensionTruncated, None);
}

#[test]
fn hop_by_hop_options_come_first() {
    let (late, last) = (extension(0, &PADDING), extension(6, &PADDING));
    for (name, first) in [("behind another", 60), ("twice", 0)] {
        let bytes = packet(first, &[&late, &last, &TCP]);
        assert_refused(name, &bytes, Ipv6HopByHop, problem(1, 40));
    }
}

#[test]
fn options_end_in_their_header() {
    for (name, contents) in [
        ("data above the header", [1, 5, 0, 0, 0, 0]),
        ("no length", [1, 3, 0, 0, 0, 1]),
    ] {
        let bytes = packet(60, &[&extension(6, &contents), &TCP]);
        assert_refused(name, &bytes, Ipv6Option, None);
    }
}

#[test]
fn routing_headers_with_segments_left_are_refused() {
    let before = extension(43, &PADDING);
    for (kind, reason) in [(0, Ipv6RoutingType0), (2, Ipv6Routing), (4, Ipv6Routing)] {
        let routing = extension(6, &[kind, 1, 0, 0, 0, 0]);
        let bytes = packet(60, &[&before, &routing, &TCP]);
        assert_refused("routing", &bytes, reason, problem(0, 50));
    }
}

/// RFC 8200 §4.2: the upper two bits of an unknown option's type.
#[test]
fn unknown_options_say_what_to_do() {
    let bytes = |first, kind| {
        let options = extension(6, &[1, 0, kind, 1, 0, 0]);
        packet(first, &[&options, &TCP])
    };
    for first in [0, 60] {
        assert_passed("skip", &bytes(first, 0x1e));
        for (kind, answer, answer_to_group) in [
            (0x5e, None, None),
            (0x9e, problem(2, 44), problem(2, 44)),
            (0xde, problem(2, 44), None),
            (0xc2, problem(2, 44), None), // A jumbogram (RFC 2675).
        ] {
            let bytes = bytes(first, kind);
            assert_refused("unknown", &bytes, Ipv6UnknownOption, answer);
            let found = parameter_problem(&to_group(bytes));
            assert_eq!(found, answer_to_group, "{kind:x}");
        }
    }
}

#[test]
fn fragments_are_described() {
    let options = extension(44, &PADDING);
    let first = [&extension(6, &PADDING)[..], &TCP, &[0; 4]].concat();
    for (name, header, payload, expected) in [
        ("first", fragment(6, 0, true), &[7; 24][..], (0, true)),
        (
            "first with options",
            fragment(60, 0, true),
            &first,
            (0, true),
        ),
        ("first of UDP", fragment(17, 0, true), &[7; 8], (0, true)),
        ("first of ICMPv6", fragment(58, 0, true), &[7; 8], (0, true)),
        (
            "first of another",
            fragment(99, 0, true),
            &[7; 8],
            (0, true),
        ),
        ("middle", fragment(6, 1_232, true), &[7; 8], (1_232, true)),
        ("last", fragment(60, 1_240, false), &[7; 3], (1_240, false)),
        (
            "limit",
            fragment(6, 65_512, false),
            &[7; 15],
            (65_512, false),
        ),
    ] {
        let bytes = packet(60, &[&options, &header, payload]);
        let found = Packet::parse(&bytes).expect(name);
        let expected = Fragment {
            id: 0xdead_beef,
            offset: expected.0,
            more: expected.1,
        };
        assert_eq!(found.fragment, Some(expected), "{name}");
        assert!(found.fragment_header, "{name}");
        assert_eq!(found.header.protocol, Protocol(header[0]), "{name}");
        assert_eq!(found.payload, payload, "{name}");
        assert_eq!(parameter_problem(&bytes), None, "{name}");
    }
}

/// RFC 6946: a fragment header on a whole packet.
#[test]
fn a_whole_packet_may_have_a_fragment_header() {
    let last = extension(6, &PADDING);
    let bytes = packet(44, &[&fragment(60, 0, false), &last, &TCP]);
    let found = Packet::parse(&bytes).unwrap();
    assert_eq!((found.fragment, found.fragment_header), (None, true));
    assert_eq!(found.payload, TCP);
}

#[test]
fn impossible_fragments_are_refused() {
    let assert_fragment = |name, header: [u8; 8], length, pointer| {
        let bytes = packet(44, &[&header, &[7; 30][..length]]);
        assert_refused(name, &bytes, Ipv6Fragment, problem(0, pointer));
    };
    assert_fragment("23 bytes", fragment(6, 0, true), 23, 4);
    assert_fragment("empty", fragment(6, 8, true), 0, 42);
    assert_fragment("past the limit", fragment(6, 65_528, false), 8, 42);
    assert_fragment("past it, odd", fragment(6, 65_528, false), 9, 42);
    let options = extension(44, &PADDING);
    let header = fragment(6, 65_512, false);
    let bytes = packet(60, &[&options, &header, &[7; 16]]);
    assert_refused(
        "past it by the options",
        &bytes,
        Ipv6Fragment,
        problem(0, 50),
    );
    let twice = packet(44, &[&fragment(44, 0, false), &fragment(6, 8, false), &TCP]);
    assert_refused("two headers", &twice, Ipv6FragmentTwice, None);
}

/// RFC 7112 §5.
#[test]
fn the_first_fragment_holds_all_headers() {
    let assert_first = |name, next, parts: &[&[u8]], reason, answer| {
        let bytes = packet(44, &[&fragment(next, 0, true), &parts.concat()]);
        assert_refused(name, &bytes, reason, answer);
    };
    let incomplete = (Ipv6FragmentHeaders, problem(3, 0));
    let (reason, answer) = incomplete;
    assert_first("16 bytes of TCP", 6, &[&TCP[..16]], reason, answer);
    assert_first(
        "half of the options",
        60,
        &[&[6, 1, 0, 0, 0, 0, 0, 0]],
        reason,
        answer,
    );
    let udp = extension(17, &PADDING);
    assert_first("nothing of UDP", 60, &[&udp], reason, answer);
    let icmp = extension(58, &PADDING);
    assert_first("nothing of ICMPv6", 60, &[&icmp], reason, answer);
    let second = fragment(6, 8, false);
    assert_first("another fragment", 44, &[&second], Ipv6FragmentTwice, None);
    let late = extension(6, &PADDING);
    let answer = problem(1, 40);
    assert_first(
        "hop-by-hop",
        0,
        &[&late, &TCP, &[0; 4]],
        Ipv6HopByHop,
        answer,
    );
}

#[test]
fn unknown_protocols_have_an_answer() {
    let options = extension(99, &PADDING);
    for (name, bytes, answer) in [
        ("behind the header", packet(99, &[&TCP]), problem(1, 6)),
        ("behind options", packet(60, &[&options]), problem(1, 40)),
        ("to a group", to_group(packet(99, &[&TCP])), None),
        ("no next header", packet(59, &[]), None),
        ("a payload that may be damaged", packet(6, &[&TCP]), None),
    ] {
        assert!(Packet::parse(&bytes).is_ok(), "{name}");
        assert_eq!(parameter_problem(&bytes), answer, "{name}");
    }
}
