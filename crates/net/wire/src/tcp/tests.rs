//! Segments and lists of options byte by byte.

extern crate std;

use super::*;
use core::net::{Ipv4Addr, Ipv6Addr};
use std::vec::Vec;

const PORTS: Ports = Ports {
    source: 0xc001,
    destination: 6379,
};

/// The SYN of a Linux client: MSS 1,460, SACK, timestamps, scale 7, ECN; checksum for [`ADDRESSES`].
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

const fn block(left: u32, right: u32) -> SackBlock {
    SackBlock {
        left: SeqNum(left),
        right: SeqNum(right),
    }
}

const BLOCKS: [SackBlock; 4] = [
    block(0x0101_0101, 0x0202_0202),
    block(0x0303_0303, 0x0404_0404),
    block(0x0505_0505, 0x0606_0606),
    block(0x0707_0707, 0x0808_0808),
];

/// The bytes of the first `n` blocks.
fn block_bytes(n: usize) -> Vec<u8> {
    (1..=8).flat_map(|byte| [byte; 4]).take(n * 8).collect()
}

fn blocks(n: usize) -> Options {
    Options {
        sack: BLOCKS.into_iter().take(n).collect(),
        ..Options::NONE
    }
}

#[test]
fn lists_of_options() {
    let none = Options::NONE;
    let times = Some(TIMES);
    let malformed = Options {
        malformed: true,
        ..none
    };
    let mss = |mss| Options {
        mss: Some(mss),
        ..none
    };
    let scale = |scale| Options {
        window_scale: Some(scale),
        ..none
    };
    let stamps = [8, 10, 1, 2, 3, 4, 5, 6, 7, 8];
    for (name, bytes, expected) in [
        ("none", &[][..], none),
        ("padding", &[1, 1, 1, 0], none),
        ("end before others", &[0, 2, 4, 5], none),
        ("MSS", &[2, 4, 0x05, 0xb4], mss(1_460)),
        (
            "MSS twice: the last one",
            &[2, 4, 1, 0, 2, 4, 2, 0],
            mss(512),
        ),
        (
            "MSS of 3 bytes, skipped",
            &[2, 3, 9, 3, 3, 7, 0, 0],
            scale(7),
        ),
        ("scale", &[1, 3, 3, 14], scale(14)),
        ("scale above 14", &[1, 3, 3, 15], scale(14)),
        ("scale 255", &[3, 3, 255, 0], scale(14)),
        ("scale of 4 bytes", &[3, 4, 1, 1], none),
        (
            "SACK permitted",
            &[4, 2, 1, 1],
            Options {
                sack_permitted: true,
                ..none
            },
        ),
        ("SACK permitted of 3 bytes", &[4, 3, 0, 1], none),
        (
            "timestamps in front",
            &[&stamps[..], &[1, 1]].concat(),
            Options {
                timestamps: times,
                ..none
            },
        ),
        (
            "timestamps behind",
            &[&[1, 1][..], &stamps].concat(),
            Options {
                timestamps: times,
                ..none
            },
        ),
        (
            "timestamps of 9 bytes",
            &[8, 9, 1, 2, 3, 4, 5, 6, 7, 0, 0, 0],
            none,
        ),
        (
            "unknown",
            &[28, 4, 0x80, 9, 254, 2, 3, 3, 1, 0, 0, 0],
            scale(1),
        ),
        (
            "one block",
            &[&[1, 1, 5, 10], &block_bytes(1)[..]].concat(),
            blocks(1),
        ),
        (
            "four blocks",
            &[&[1, 1, 5, 34], &block_bytes(4)[..]].concat(),
            blocks(4),
        ),
        ("no block", &[5, 2, 1, 1], none),
        ("half a block", &[5, 6, 1, 1, 1, 1, 1, 1], none),
        ("length 0", &[2, 0, 1, 1], malformed),
        ("length 1", &[2, 1, 1, 1], malformed),
        ("length above the list", &[2, 5, 1, 1], malformed),
        ("no length", &[1, 1, 1, 2], malformed),
        (
            "options before a bad length hold",
            &[3, 3, 2, 9],
            Options {
                malformed: true,
                ..scale(2)
            },
        ),
    ] {
        assert_eq!(Options::parse(bytes), expected, "{name}");
    }
}

#[test]
fn a_list_that_is_not_a_multiple_of_4_is_read() {
    // No header has such a list; the property tests give any bytes.
    assert!(Options::parse(&[2]).malformed);
    assert!(Options::parse(&[4, 2]).sack_permitted);
}

#[test]
fn options_have_one_layout() {
    let none = Options::NONE;
    let times = Some(TIMES);
    let stamps = [8, 10, 1, 2, 3, 4, 5, 6, 7, 8];
    let aligned = [&[1, 1][..], &stamps].concat();
    for (name, options, expected) in [
        ("none", none, Vec::new()),
        (
            "timestamps",
            Options {
                timestamps: times,
                ..none
            },
            aligned.clone(),
        ),
        (
            "SACK permitted",
            Options {
                sack_permitted: true,
                ..none
            },
            std::vec![1, 1, 4, 2],
        ),
        (
            "both",
            Options {
                sack_permitted: true,
                timestamps: times,
                ..none
            },
            [&[4, 2][..], &stamps].concat(),
        ),
        (
            "MSS",
            Options {
                mss: Some(536),
                ..none
            },
            std::vec![2, 4, 0x02, 0x18],
        ),
        (
            "scale",
            Options {
                window_scale: Some(9),
                ..none
            },
            std::vec![1, 3, 3, 9],
        ),
        (
            "one block",
            blocks(1),
            [&[1, 1, 5, 10], &block_bytes(1)[..]].concat(),
        ),
        (
            "four blocks",
            blocks(4),
            [&[1, 1, 5, 34], &block_bytes(4)[..]].concat(),
        ),
        (
            "three of four blocks beside timestamps",
            Options {
                timestamps: times,
                ..blocks(4)
            },
            [&aligned[..], &[1, 1, 5, 26], &block_bytes(3)].concat(),
        ),
        (
            "two beside all others",
            Options {
                sack: blocks(3).sack,
                ..syn().options
            },
            [&SYN[20..], &[1, 1, 5, 18], &block_bytes(2)].concat(),
        ),
    ] {
        let header = Header { options, ..data() };
        let mut buffer = [0xee; MAX_HEADER_BYTES + 1];
        let length = header.emit(&mut buffer).expect(name);
        assert_eq!(length, 20 + expected.len(), "{name}");
        assert_eq!(buffer[20..length], expected, "{name}");
        assert_eq!(usize::from(buffer[12] >> 4) * 4, length, "{name}");
        assert_eq!(buffer[length], 0xee, "{name}");
    }
}
