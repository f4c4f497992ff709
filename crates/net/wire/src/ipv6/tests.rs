//! Packets with every extension header, and what a host answers.

extern crate std;

use super::*;
use std::vec::Vec;

const HEADER: Header = Header {
    source: Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1),
    destination: Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 2),
    protocol: Protocol::TCP,
    traffic_class: TrafficClass(0xba),
    flow_label: 0x1_2345,
    hop_limit: 64,
};

/// The header of a packet with 20 bytes of TCP.
const FIXED: [u8; 40] = [
    0x6b, 0xa1, 0x23, 0x45, 0x00, 0x14, 6, 64, //
    0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, //
    0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2,
];

const TCP: [u8; 20] = [7; 20];

/// A packet with `first` as next header, extension headers and a payload.
fn packet(first: u8, extensions: &[&[u8]], payload: &[u8]) -> Vec<u8> {
    let mut bytes = [&FIXED[..], &extensions.concat(), payload].concat();
    let length = u16::try_from(bytes.len() - 40).unwrap();
    bytes[4..6].copy_from_slice(&length.to_be_bytes());
    bytes[6] = first;
    bytes
}

fn to_group(mut packet: Vec<u8>) -> Vec<u8> {
    packet[24..28].copy_from_slice(&[0xff, 2, 0, 0]);
    packet
}

const fn problem(code: u8, pointer: u32) -> Option<ParameterProblem> {
    Some(ParameterProblem { code, pointer })
}

#[test]
fn a_packet_ends_before_the_padding() {
    let bytes = [&FIXED[..], &TCP, &[0; 6]].concat();
    let packet = Packet::parse(&bytes).unwrap();
    let expected = Packet {
        header: HEADER,
        fragment: None,
        fragment_header: false,
        payload: &TCP,
        bytes: &bytes[..60],
    };
    assert_eq!(packet, expected);
    let mut buffer = [0; 40];
    assert_eq!(HEADER.emit(20, &mut buffer), Ok(40));
    assert_eq!(buffer, FIXED);
}

#[test]
fn a_packet_must_fit_into_its_buffer_and_its_length_field() {
    let mut buffer = [0; 40];
    let small = HEADER.emit(0, &mut buffer[..39]);
    assert_eq!(small, Err(EmitError::BufferTooSmall { needed: 40 }));
    assert_eq!(HEADER.emit(65_535, &mut buffer), Ok(40));
    assert_eq!(buffer[4..6], [0xff, 0xff]);
    let long = HEADER.emit(65_536, &mut buffer);
    assert_eq!(long, Err(EmitError::PacketTooLong { length: 65_536 }));
}

#[test]
fn bad_headers_have_reasons() {
    let set = |at: usize, value: &[u8]| {
        let mut bytes = packet(6, &[], &TCP);
        bytes[at..at + value.len()].copy_from_slice(value);
        bytes
    };
    for (name, bytes, reason) in [
        ("empty", Vec::new(), Malformed::Ipv6Truncated),
        ("39 bytes", FIXED[..39].to_vec(), Malformed::Ipv6Truncated),
        ("version 4", set(0, &[0x4b]), Malformed::IpVersion),
        (
            "length above the frame",
            set(4, &[0, 21]),
            Malformed::Ipv6Truncated,
        ),
        ("source multicast", set(8, &[0xff]), Malformed::Ipv6Source),
        (
            "destination unspecified",
            set(24, &[0; 16]),
            Malformed::Ipv6Destination,
        ),
    ] {
        assert_eq!(Packet::parse(&bytes), Err(reason), "{name}");
        assert_eq!(parameter_problem(&bytes), None, "{name}");
    }
}

/// PadN; a router alert (RFC 2711), which may be skipped; PadN; Pad1 four times.
const OPTIONS: [u8; 14] = [1, 1, 0, 5, 2, 0, 0, 1, 1, 0, 0, 0, 0, 0];
/// PadN alone.
const PADDING: [u8; 6] = [1, 4, 0, 0, 0, 0];

/// An extension header: next header, length, and contents padded to a multiple of 8 bytes.
fn extension(next: u8, contents: &[u8]) -> Vec<u8> {
    let length = (2 + contents.len()).next_multiple_of(8);
    let mut bytes = [&[next, u8::try_from(length / 8 - 1).unwrap()], contents].concat();
    bytes.resize(length, 0);
    bytes
}

#[test]
fn extension_headers_are_skipped() {
    let hop_by_hop = extension(43, &OPTIONS);
    let routing = extension(60, &[4, 0, 0, 0, 0, 0]);
    let routing_0 = extension(6, &[0, 0, 9, 9, 9, 9]);
    let destination = extension(6, &OPTIONS);
    let pad = extension(6, &PADDING);
    let more = extension(60, &PADDING);
    let largest = [extension(60, &[0; 254]), extension(6, &[0; 254])];
    let eight = [&[&more[..]; 7][..], &[&pad[..]]].concat();
    for (name, first, extensions) in [
        (
            "hop-by-hop, routing, destination",
            0,
            &[&hop_by_hop[..], &routing, &destination][..],
        ),
        ("routing type 0 without segments left", 43, &[&routing_0]),
        ("eight headers", 60, &eight),
        ("512 bytes", 60, &[&largest[0], &largest[1]]),
    ] {
        let bytes = packet(first, extensions, &TCP);
        let found = Packet::parse(&bytes).expect(name);
        assert_eq!(found.header, HEADER, "{name}");
        assert_eq!(found.payload, TCP, "{name}");
        assert_eq!(
            (found.fragment, found.fragment_header),
            (None, false),
            "{name}"
        );
        assert_eq!(found.bytes, bytes, "{name}");
    }
}

#[test]
fn bad_extension_headers_have_reasons_and_answers() {
    use Malformed::{
        Ipv6ExtensionLimit, Ipv6ExtensionTruncated, Ipv6HopByHop, Ipv6Option, Ipv6Routing,
        Ipv6RoutingType0,
    };
    let pad = extension(6, &PADDING);
    let more = extension(60, &PADDING);
    let late = extension(0, &PADDING);
    let nine = [&[&more[..]; 8][..], &[&pad[..]]].concat();
    let bytes_520 = [extension(60, &[0; 254]), extension(6, &[0; 260])];
    let option = |contents: &[u8]| packet(60, &[&extension(6, contents)], &TCP);
    let before = extension(43, &PADDING);
    let routing = |kind, left| {
        packet(
            60,
            &[&before, &extension(6, &[kind, left, 0, 0, 0, 0])],
            &TCP,
        )
    };
    let cut = |length: usize| {
        let mut bytes = packet(60, &[&pad], &[]);
        bytes.truncate(length);
        bytes[5] = u8::try_from(length - 40).unwrap();
        bytes
    };
    for (name, bytes, reason, answer) in [
        ("nothing", cut(40), Ipv6ExtensionTruncated, None),
        ("one byte", cut(41), Ipv6ExtensionTruncated, None),
        ("seven bytes", cut(47), Ipv6ExtensionTruncated, None),
        (
            "nine headers",
            packet(60, &nine, &TCP),
            Ipv6ExtensionLimit,
            None,
        ),
        (
            "520 bytes",
            packet(60, &[&bytes_520[0], &bytes_520[1]], &TCP),
            Ipv6ExtensionLimit,
            None,
        ),
        (
            "hop-by-hop behind another",
            packet(60, &[&late, &pad], &TCP),
            Ipv6HopByHop,
            problem(1, 40),
        ),
        (
            "hop-by-hop twice",
            packet(0, &[&late, &pad], &TCP),
            Ipv6HopByHop,
            problem(1, 40),
        ),
        (
            "option above its header",
            option(&[1, 5, 0, 0, 0, 0]),
            Ipv6Option,
            None,
        ),
        (
            "option without length",
            option(&[1, 3, 0, 0, 0, 1]),
            Ipv6Option,
            None,
        ),
        (
            "routing type 0",
            routing(0, 1),
            Ipv6RoutingType0,
            problem(0, 50),
        ),
        ("routing type 2", routing(2, 1), Ipv6Routing, problem(0, 50)),
    ] {
        assert_eq!(Packet::parse(&bytes).unwrap_err(), reason, "{name}");
        assert_eq!(parameter_problem(&bytes), answer, "{name}");
        assert_eq!(
            parameter_problem(&to_group(bytes)),
            None,
            "{name} to a group"
        );
    }
}

/// RFC 8200 §4.2: the upper two bits of an unknown option's type.
#[test]
fn unknown_options_say_what_to_do() {
    for (kind, accepted, answer, answer_to_group) in [
        (0x1e, true, None, None),
        (0x5e, false, None, None),
        (0x9e, false, problem(2, 44), problem(2, 44)),
        (0xde, false, problem(2, 44), None),
        (0xc2, false, problem(2, 44), None), // A jumbogram (RFC 2675).
    ] {
        let options = extension(6, &[1, 0, kind, 1, 0, 0]);
        for first in [0, 60] {
            let bytes = packet(first, &[&options], &TCP);
            let found = Packet::parse(&bytes).map(|packet| packet.payload);
            let refused = Err(Malformed::Ipv6UnknownOption);
            assert_eq!(
                found,
                if accepted { Ok(&TCP[..]) } else { refused },
                "{kind:x}"
            );
            if !accepted {
                assert_eq!(parameter_problem(&bytes), answer, "{kind:x}");
                let found = parameter_problem(&to_group(bytes));
                assert_eq!(found, answer_to_group, "{kind:x}");
            }
        }
    }
}

/// A fragment header.
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

#[test]
fn fragments_are_described() {
    let options = extension(44, &PADDING);
    let inner = extension(6, &PADDING);
    let first = [&inner[..], &TCP, &[0; 4]].concat();
    for (name, header, payload, expected) in [
        ("first", fragment(6, 0, true), &[7; 24][..], Some((0, true))),
        (
            "first with options inside",
            fragment(60, 0, true),
            &first,
            Some((0, true)),
        ),
        (
            "first of another protocol",
            fragment(99, 0, true),
            &[7; 8],
            Some((0, true)),
        ),
        (
            "middle",
            fragment(6, 1_232, true),
            &[7; 8],
            Some((1_232, true)),
        ),
        (
            "last",
            fragment(60, 1_240, false),
            &[7; 3],
            Some((1_240, false)),
        ),
        (
            "up to the limit",
            fragment(6, 65_512, false),
            &[7; 15],
            Some((65_512, false)),
        ),
        ("whole", fragment(6, 0, false), &TCP, None),
    ] {
        let bytes = packet(60, &[&options, &header], payload);
        let found = Packet::parse(&bytes).expect(name);
        let expected = expected.map(|(offset, more)| Fragment {
            id: 0xdead_beef,
            offset,
            more,
        });
        assert_eq!(found.fragment, expected, "{name}");
        assert!(found.fragment_header, "{name}");
        assert_eq!(found.header.protocol, Protocol(header[0]), "{name}");
        assert_eq!(found.payload, payload, "{name}");
        let unknown = if expected.is_some() {
            None
        } else {
            problem(1, 48)
        };
        assert_eq!(parameter_problem(&bytes), unknown, "{name}");
    }
}

#[test]
fn bad_fragments_have_reasons_and_answers() {
    use Malformed::{Ipv6Fragment, Ipv6FragmentHeaders, Ipv6FragmentTwice};
    let whole = fragment(44, 0, false);
    let second = fragment(6, 8, false);
    let udp = fragment(17, 0, true);
    let icmp = fragment(58, 0, true);
    let first = fragment(6, 0, true);
    let late = extension(0, &PADDING);
    let split = |header: &[u8], payload: &[u8]| packet(44, &[header], payload);
    let no_header = Malformed::Ipv6ExtensionTruncated;
    for (name, bytes, reason, answer) in [
        ("cut", split(&first[..7], &[]), no_header, None),
        (
            "23 bytes",
            split(&first, &[7; 23]),
            Ipv6Fragment,
            problem(0, 4),
        ),
        (
            "empty",
            split(&fragment(6, 8, true), &[]),
            Ipv6Fragment,
            problem(0, 42),
        ),
        (
            "past the limit",
            split(&fragment(6, 65_528, false), &[7; 8]),
            Ipv6Fragment,
            problem(0, 42),
        ),
        (
            "past the limit by 1 byte",
            split(&fragment(6, 65_528, false), &[7; 9]),
            Ipv6Fragment,
            problem(0, 42),
        ),
        (
            "two headers",
            packet(44, &[&whole, &second], &TCP),
            Ipv6FragmentTwice,
            None,
        ),
        (
            "a header in the first fragment",
            packet(44, &[&fragment(44, 0, true), &second], &TCP[..8]),
            Ipv6FragmentTwice,
            None,
        ),
        (
            "16 bytes of TCP",
            split(&first, &[7; 16]),
            Ipv6FragmentHeaders,
            problem(3, 0),
        ),
        (
            "no options",
            split(&fragment(60, 0, true), &[6, 1, 0, 0, 0, 0, 0, 0]),
            Ipv6FragmentHeaders,
            problem(3, 0),
        ),
        (
            "hop-by-hop inside",
            split(&fragment(0, 0, true), &[&late[..], &TCP, &[0; 4]].concat()),
            Malformed::Ipv6HopByHop,
            problem(1, 40),
        ),
    ] {
        assert_eq!(Packet::parse(&bytes).unwrap_err(), reason, "{name}");
        assert_eq!(parameter_problem(&bytes), answer, "{name}");
    }
    for (header, payload) in [(udp, [7; 8]), (icmp, [7; 8])] {
        assert!(Packet::parse(&split(&header, &payload)).is_ok());
    }
}

#[test]
fn unknown_protocols_have_an_answer() {
    let options = extension(99, &PADDING);
    for (name, bytes, answer) in [
        ("behind the header", packet(99, &[], &TCP), problem(1, 6)),
        (
            "behind options",
            packet(60, &[&options], &TCP),
            problem(1, 40),
        ),
        ("to a group", to_group(packet(99, &[], &TCP)), None),
        ("no next header", packet(59, &[], &[]), None),
    ] {
        assert!(Packet::parse(&bytes).is_ok(), "{name}");
        assert_eq!(parameter_problem(&bytes), answer, "{name}");
    }
}
