//! Packets byte by byte.

extern crate std;

use super::*;
use std::vec::Vec;

/// A TCP packet without payload and its padding to the length of a short frame.
const PLAIN: [u8; 26] = [
    0x45, 0x02, 0x00, 0x14, 0xbe, 0xef, 0x40, 0x00, 0x40, 0x06, 0x8f, 0xbb, // checksum 8fbb
    192, 0, 2, 1, 198, 51, 100, 2, // addresses
    0, 0, 0, 0, 0, 0, // padding
];

const HEADER: Header = Header {
    source: Ipv4Addr::new(192, 0, 2, 1),
    destination: Ipv4Addr::new(198, 51, 100, 2),
    protocol: Protocol::TCP,
    traffic_class: TrafficClass(2),
    ttl: 64,
    id: 0xbeef,
    dont_fragment: true,
    more_fragments: false,
    fragment_offset: 0,
};

/// [`PLAIN`] with options and payload, changed by `change`, with a right checksum.
fn packet(options: &[u8], payload: &[u8], change: impl Fn(&mut [u8])) -> Vec<u8> {
    let mut bytes = [&PLAIN[..20], options, payload].concat();
    bytes[0] = 0x45 + u8::try_from(options.len() / 4).unwrap();
    bytes[3] = u8::try_from(bytes.len()).unwrap();
    change(&mut bytes);
    bytes[10..12].fill(0);
    let head = usize::from(bytes[0] & 15) * 4;
    let checksum = Sum::of(&bytes[..head.min(bytes.len())]).checksum();
    bytes[10..12].copy_from_slice(&checksum.to_be_bytes());
    bytes
}

#[test]
fn a_packet_ends_before_the_padding() {
    let packet = Packet::parse(&PLAIN).unwrap();
    assert_eq!(packet.header, HEADER);
    assert_eq!(packet.payload, b"");
    assert_eq!(packet.bytes, &PLAIN[..20]);
    assert_eq!(packet.header.fragment(), None);
    let mut buffer = [0; 20];
    assert_eq!(HEADER.emit(0, &mut buffer), Ok(20));
    assert_eq!(buffer, PLAIN[..20]);
}

#[test]
fn options_are_skipped() {
    for (name, options) in [
        ("no operations", &[1, 1, 1, 1][..]),
        ("end", &[0, 2, 3, 4]),
        ("router alert", &[148, 4, 0, 0]),
        ("timestamp and end", &[68, 6, 5, 0, 9, 9, 0, 137]),
        (
            "timestamps of 40 bytes",
            &[&[68, 40][..], &[0; 38]].concat(),
        ),
    ] {
        let bytes = packet(options, b"data", |_| {});
        let packet = Packet::parse(&bytes).expect(name);
        assert_eq!(packet.header, HEADER, "{name}");
        assert_eq!(packet.payload, b"data", "{name}");
    }
}

/// [`PLAIN`] with a payload of 8 bytes and `value` at `at`.
fn with(at: usize, value: &[u8]) -> Vec<u8> {
    packet(&[], b"8 bytes.", |bytes| {
        bytes[at..at + value.len()].copy_from_slice(value);
    })
}

#[test]
fn bad_headers_have_reasons() {
    use Malformed::{Ipv4Checksum, Ipv4Fragment, Ipv4Length, Ipv4Source, Ipv4Truncated};
    let mut changed = PLAIN.to_vec();
    changed[9] = 17;
    for (name, bytes, reason) in [
        ("empty", std::vec![], Ipv4Truncated),
        ("19 bytes", PLAIN[..19].to_vec(), Ipv4Truncated),
        ("version 6", with(0, &[0x65]), Malformed::IpVersion),
        ("a header of 16 bytes", with(0, &[0x44]), Ipv4Length),
        ("header above total length", with(0, &[0x48]), Ipv4Length),
        ("total length 19", with(2, &[0, 19]), Ipv4Length),
        ("total length 0", with(2, &[0, 0]), Ipv4Length),
        ("above the frame", with(2, &[0, 29]), Ipv4Truncated),
        ("another protocol", changed, Ipv4Checksum),
        ("source multicast", with(12, &[224]), Ipv4Source),
        ("source broadcast", with(12, &[255; 4]), Ipv4Source),
        ("past the limit", with(6, &[0x1f, 0xff]), Ipv4Fragment),
        ("by the header", with(6, &[0x1f, 0xfd]), Ipv4Fragment),
    ] {
        assert_eq!(Packet::parse(&bytes), Err(reason), "{name}");
    }
}

#[test]
fn bad_options_have_reasons() {
    use Malformed::{Ipv4Checksum, Ipv4Option, Ipv4SourceRoute, Ipv4Truncated};
    let options = |options: &[u8]| packet(options, b"", |_| {});
    let route = [131, 7, 4, 10, 0, 0, 1, 0];
    let cut = options(&[1; 4])[..22].to_vec();
    let mut damaged = options(&[1; 4]);
    damaged[20] = 0;
    for (name, bytes, reason) in [
        ("length 0", options(&[68, 0, 0, 0]), Ipv4Option),
        ("length 1", options(&[68, 1, 0, 0]), Ipv4Option),
        ("above the header", options(&[68, 5, 0, 0]), Ipv4Option),
        ("without length", options(&[1, 1, 1, 7]), Ipv4Option),
        ("loose source route", options(&route), Ipv4SourceRoute),
        ("strict", options(&[1, 137, 3, 4]), Ipv4SourceRoute),
        ("cut in the options", cut, Ipv4Truncated),
        ("changed", damaged, Ipv4Checksum),
    ] {
        assert_eq!(Packet::parse(&bytes), Err(reason), "{name}");
    }
}

#[test]
fn fragments_are_described() {
    for (name, place, expected) in [
        ("whole", [0x00, 0x00], None),
        ("whole, not to be divided", [0x40, 0x00], None),
        ("the reserved bit", [0x80, 0x00], None),
        ("first", [0x20, 0x00], Some((0, true))),
        ("middle", [0x20, 0x02], Some((16, true))),
        ("last", [0x1f, 0xfa], Some((65_488, false))),
    ] {
        let bytes = packet(&[], b"8 bytes.", |bytes| {
            bytes[6..8].copy_from_slice(&place)
        });
        let packet = Packet::parse(&bytes).expect(name);
        let expected = expected.map(|(offset, more)| Fragment {
            id: 0xbeef,
            offset,
            more,
        });
        assert_eq!(packet.header.fragment(), expected, "{name}");
        assert_eq!(packet.payload, b"8 bytes.", "{name}");
        let mut buffer = [0; 20];
        assert_eq!(packet.header.emit(8, &mut buffer), Ok(20), "{name}");
        // The reserved bit is sent as zero (RFC 791 §3.1).
        assert_eq!(
            [buffer[6], buffer[7]],
            [place[0] & 0x7f, place[1]],
            "{name}"
        );
    }
}

#[test]
fn a_packet_must_fit_into_its_buffer_and_its_length_field() {
    let mut buffer = [0; 20];
    let small = HEADER.emit(0, &mut buffer[..19]);
    assert_eq!(small, Err(EmitError::BufferTooSmall { needed: 20 }));
    assert_eq!(HEADER.emit(65_515, &mut buffer), Ok(20));
    assert_eq!(buffer[2..4], [0xff, 0xff]);
    let long = HEADER.emit(65_516, &mut buffer);
    assert_eq!(long, Err(EmitError::PacketTooLong { length: 65_536 }));
}

#[test]
fn addresses_are_those_of_the_header() {
    let Addresses::V4 {
        source,
        destination,
    } = HEADER.addresses()
    else {
        panic!("not IPv4");
    };
    assert_eq!((source, destination), (HEADER.source, HEADER.destination));
}
