//! Messages byte by byte.

extern crate std;

use super::*;
use crate::SeqNum;
use crate::ip::Protocol;
use std::vec::Vec;

/// The front of a TCP packet from 192.0.2.1:49153 to 198.51.100.2:6379.
const QUOTE: [u8; 28] = [
    0x45, 0x00, 0x00, 0x28, 0xbe, 0xef, 0x40, 0x00, 0x40, 0x06, 0x00, 0x00, //
    192, 0, 2, 1, 198, 51, 100, 2, 0xc0, 0x01, 0x18, 0xeb, 0x11, 0x22, 0x33, 0x44,
];

const ECHO: Echo<'_> = Echo {
    id: 0x1234,
    sequence: 7,
    data: b"ping!",
};

fn with_quote(head: [u8; 8]) -> Vec<u8> {
    [&head[..], &QUOTE].concat()
}

#[test]
fn messages_are_read_and_written() {
    let quote = &QUOTE[..];
    let echo = |kind, high, low| [&[kind, 0, high, low, 0x12, 0x34, 0, 7], &b"ping!"[..]].concat();
    let other = |kind, code, body| Message::Other(Other { kind, code, body });
    let problem = Message::ParameterProblem {
        pointer: 20,
        code: 0,
        quote,
    };
    for (name, bytes, message) in [
        ("request", echo(8, 0xe5, 0xf3), Message::EchoRequest(ECHO)),
        ("reply", echo(0, 0xed, 0xf3), Message::EchoReply(ECHO)),
        (
            "port unreachable",
            with_quote([3, 3, 0x6f, 0x53, 0, 0, 0, 0]),
            Message::Unreachable {
                code: PORT_UNREACHABLE,
                quote,
            },
        ),
        (
            "fragmentation needed",
            with_quote([3, 4, 0x69, 0xda, 0, 0, 0x05, 0x78]),
            Message::FragmentationNeeded { mtu: 1_400, quote },
        ),
        (
            "time exceeded",
            with_quote([11, 1, 0x67, 0x55, 0, 0, 0, 0]),
            Message::TimeExceeded {
                code: REASSEMBLY_TIME_EXCEEDED,
                quote,
            },
        ),
        (
            "parameter problem",
            with_quote([12, 0, 0x52, 0x56, 20, 0, 0, 0]),
            problem,
        ),
        (
            "timestamp",
            [13, 0, 0xf2, 0xfc, 0, 1, 0, 2].to_vec(),
            other(13, 0, &[0, 1, 0, 2]),
        ),
        ("no body", [10, 0, 0xf5, 0xff].to_vec(), other(10, 0, &[])),
        (
            "request with a code",
            [8, 1, 0xe5, 0xc3, 0x12, 0x34, 0, 7].to_vec(),
            other(8, 1, &[0x12, 0x34, 0, 7]),
        ),
    ] {
        assert_eq!(Message::parse(&bytes), Ok(message), "{name}");
        let mut buffer = [0xee; 64];
        assert_eq!(message.emit(&mut buffer), Ok(bytes.len()), "{name}");
        assert_eq!(buffer[..bytes.len()], bytes, "{name}");
        let needed = message.len_bytes();
        assert_eq!(needed, bytes.len(), "{name}");
        let small = message.emit(&mut buffer[..needed - 1]);
        assert_eq!(small, Err(EmitError::BufferTooSmall { needed }), "{name}");
    }
}

#[test]
fn errors_say_which_packet_caused_them() {
    let message = Message::FragmentationNeeded {
        mtu: 1_400,
        quote: &QUOTE,
    };
    let quoted = message.quoted().unwrap();
    assert_eq!(quoted.protocol, Protocol::TCP);
    assert_eq!(quoted.seq, Some(SeqNum(0x1122_3344)));
    assert_eq!(Message::EchoReply(ECHO).quoted(), None);
    for quote in [&[][..], &QUOTE[..19]] {
        assert_eq!(Message::TimeExceeded { code: 0, quote }.quoted(), None);
        assert_eq!(Message::Unreachable { code: 1, quote }.quoted(), None);
    }
}

#[test]
fn bad_messages_have_reasons() {
    use Malformed::{IcmpChecksum, IcmpTruncated};
    for (name, bytes, reason) in [
        ("empty", &[][..], IcmpTruncated),
        ("three bytes", &[8, 0, 0xf7], IcmpTruncated),
        (
            "a wrong checksum",
            &[8, 0, 0xf7, 0xfe, 0, 0, 0, 0],
            IcmpChecksum,
        ),
        (
            "a request without its sequence",
            &[8, 0, 0xf7, 0xff, 0, 0],
            IcmpTruncated,
        ),
        (
            "an error without its word",
            &[3, 1, 0xfc, 0xfe],
            IcmpTruncated,
        ),
    ] {
        assert_eq!(Message::parse(bytes), Err(reason), "{name}");
    }
}

#[test]
fn errors_quote_548_bytes() {
    let packet = [7; 1_500];
    assert_eq!(quotable(&packet).len(), 548);
    assert_eq!(quotable(&packet[..60]).len(), 60);
}
