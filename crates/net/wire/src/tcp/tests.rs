//! Segments byte by byte.

extern crate std;

use super::*;
use core::net::{Ipv4Addr, Ipv6Addr};

const PORTS: Ports = Ports {
    source: 0xc001,
    destination: 6379,
};

/// The SYN of a Linux client: MSS 1,460, SACK, timestamps, scale 7, ECN; checksum for
/// [`ADDRESSES`].
const SYN: [u8; 40] = [
    0xc0, 0x01, 0x18, 0xeb, 0x11, 0x22, 0x33, 0x44, 0x00, 0x00, 0x00, 0x00, // seq, no ack
    0xa0, 0xc2, 0xfa, 0xf0, 0x3e, 0xbf, 0x00, 0x00, // 40 bytes, CWR ECE SYN, window 64,240
    2, 4, 0x05, 0xb4, 4, 2, 8, 10, 1, 2, 3, 4, 0, 0, 0, 0, 1, 3, 3, 7,
];

/// Data with the common options and an urgent pointer.
const DATA: [u8; 35] = [
    0xc0, 0x01, 0x18, 0xeb, 0xff, 0xff, 0xff, 0xff, 0x00, 0x00, 0x00, 0x01, //
    0x80, 0x38, 0x01, 0xf6, 0xda, 0xfe, 0x00, 0x02, // 32 bytes, URG ACK PSH, window 502
    1, 1, 8, 10, 1, 2, 3, 4, 5, 6, 7, 8, b'a', b'b', b'c',
];

const ADDRESSES: Addresses = Addresses::V4 {
    source: Ipv4Addr::new(192, 0, 2, 1),
    destination: Ipv4Addr::new(198, 51, 100, 2),
};

const TIMES: Timestamps = Timestamps {
    value: 0x0102_0304,
    echo: 0x0506_0708,
};

const fn syn() -> Header {
    Header {
        ports: PORTS,
        seq: SeqNum(0x1122_3344),
        ack: None,
        flags: Flags::SYN.union(Flags::ECE).union(Flags::CWR),
        window: 64_240,
        urgent: None,
        options: Options {
            mss: Some(1_460),
            window_scale: Some(7),
            sack_permitted: true,
            timestamps: Some(Timestamps { echo: 0, ..TIMES }),
            ..Options::NONE
        },
    }
}

const fn data() -> Header {
    Header {
        ports: PORTS,
        seq: SeqNum(u32::MAX),
        ack: Some(SeqNum(1)),
        flags: Flags::PSH,
        window: 502,
        urgent: Some(2),
        options: Options {
            timestamps: Some(TIMES),
            ..Options::NONE
        },
    }
}

#[test]
fn segments_are_read_and_written() {
    for (name, bytes, header, payload) in [
        ("SYN", &SYN[..], syn(), &b""[..]),
        ("data", &DATA, data(), b"abc"),
    ] {
        let segment = Segment { header, payload };
        assert_eq!(Segment::parse(bytes), Ok(segment), "{name}");
        assert!(is_intact(&ADDRESSES, bytes), "{name}");
        let mut expected = bytes[..header.len_bytes()].to_vec();
        expected[CHECKSUM_AT..][..2].fill(0);
        let mut buffer = [0xee; MAX_HEADER_BYTES];
        assert_eq!(header.emit(&mut buffer), Ok(expected.len()), "{name}");
        assert_eq!(buffer[..expected.len()], expected, "{name}");
        assert_eq!(buffer[expected.len()], 0xee, "{name}");
        let needed = expected.len();
        let small = header.emit(&mut buffer[..needed - 1]);
        assert_eq!(small, Err(EmitError::BufferTooSmall { needed }), "{name}");
    }
}

#[test]
fn any_changed_bit_is_found_by_the_checksum() {
    for bit in 0..DATA.len() * 8 {
        let mut bytes = DATA;
        bytes[bit / 8] ^= 1 << (bit % 8);
        assert!(!is_intact(&ADDRESSES, &bytes), "bit {bit}");
    }
    assert!(!is_intact(&ADDRESSES, &DATA[..34]));
    let v6 = Addresses::V6 {
        source: Ipv6Addr::LOCALHOST,
        destination: Ipv6Addr::LOCALHOST,
    };
    assert!(!is_intact(&v6, &DATA));
}

#[test]
fn fields_without_their_bits_are_ignored() {
    let mut bytes = DATA;
    bytes[12] |= 0x0f; // The reserved bits.
    bytes[13] = 0x01;
    let header = Segment::parse(&bytes).unwrap().header;
    let expected = Header {
        ack: None,
        urgent: None,
        flags: Flags::FIN,
        ..data()
    };
    assert_eq!(header, expected);
}

#[test]
fn bad_headers_have_reasons() {
    let with_offset = |units: u8| {
        let mut bytes = DATA;
        bytes[12] = units << 4;
        bytes
    };
    for (name, bytes, reason) in [
        ("empty", &[][..], Malformed::TcpTruncated),
        ("19 bytes", &DATA[..19], Malformed::TcpTruncated),
        ("offset 16", &with_offset(4), Malformed::TcpDataOffset),
        ("offset 0", &with_offset(0), Malformed::TcpDataOffset),
        ("offset 36", &with_offset(9), Malformed::TcpTruncated),
        ("cut in the options", &DATA[..31], Malformed::TcpTruncated),
    ] {
        assert_eq!(Segment::parse(bytes), Err(reason), "{name}");
    }
    assert_eq!(Segment::parse(&with_offset(5)[..20]).unwrap().payload, b"");
}
