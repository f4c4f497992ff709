//! Headers without extensions, byte by byte.

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
        let mut bytes = [&FIXED[..], &TCP].concat();
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
