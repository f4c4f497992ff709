//! Messages byte by byte; those of neighbour discovery are tested in `ndp`.

extern crate std;

use super::*;
use crate::ip::TrafficClass;
use crate::{SeqNum, ipv6::ParameterProblem};
use core::net::Ipv6Addr;
use std::vec::Vec;

const HEADER: ipv6::Header = ipv6::Header {
    source: Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1),
    destination: Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 2),
    protocol: Protocol::ICMP6,
    traffic_class: TrafficClass(0),
    flow_label: 0,
    hop_limit: 64,
};

/// The front of a TCP packet from 2001:db8::2 port 49153 to 2001:db8::1 port 6379.
const QUOTE: [u8; 48] = [
    0x60, 0x00, 0x00, 0x00, 0x00, 0x14, 6, 64, //
    0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, //
    0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, //
    0xc0, 0x01, 0x18, 0xeb, 0x11, 0x22, 0x33, 0x44,
];

const ECHO: Echo<'_> = Echo {
    id: 0x1234,
    sequence: 7,
    data: b"ping!",
};

fn parse(payload: &[u8]) -> Result<Message<'_>, Malformed> {
    Message::parse(&ipv6::Packet {
        header: HEADER,
        fragment: None,
        fragment_header: false,
        payload,
        bytes: payload,
    })
}

fn with_quote(head: [u8; 8]) -> Vec<u8> {
    [&head[..], &QUOTE].concat()
}

#[test]
fn messages_are_read_and_written() {
    let quote = &QUOTE[..];
    let echo = |kind, high, low| [&[kind, 0, high, low, 0x12, 0x34, 0, 7], &b"ping!"[..]].concat();
    let other = |kind, code, body| Message::Other(Other { kind, code, body });
    let problem = ParameterProblem {
        code: 1,
        pointer: 6,
    };
    for (name, bytes, message) in [
        ("request", echo(128, 0x12, 0x37), Message::EchoRequest(ECHO)),
        ("reply", echo(129, 0x11, 0x37), Message::EchoReply(ECHO)),
        (
            "port unreachable",
            with_quote([1, 4, 0xc3, 0xf7, 0, 0, 0, 0]),
            Message::Unreachable {
                code: PORT_UNREACHABLE,
                quote,
            },
        ),
        (
            "packet too big",
            with_quote([2, 0, 0xbd, 0x83, 0, 0, 0x05, 0x78]),
            Message::PacketTooBig { mtu: 1_400, quote },
        ),
        (
            "time exceeded",
            with_quote([3, 1, 0xc1, 0xfa, 0, 0, 0, 0]),
            Message::TimeExceeded {
                code: REASSEMBLY_TIME_EXCEEDED,
                quote,
            },
        ),
        (
            "parameter problem",
            with_quote([4, 1, 0xc0, 0xf4, 0, 0, 0, 6]),
            Message::ParameterProblem { problem, quote },
        ),
        (
            "done with a group",
            [131, 0, 0x21, 0x48, 0, 0, 0, 0].to_vec(),
            other(131, 0, &[0; 4]),
        ),
        ("unknown", [100, 2, 0x40, 0x4a].to_vec(), other(100, 2, &[])),
    ] {
        assert_eq!(parse(&bytes), Ok(message), "{name}");
        let (mut buffer, addresses) = ([0xee; 64], HEADER.addresses());
        let written = message.emit(&addresses, &mut buffer);
        assert_eq!(written, Ok(bytes.len()), "{name}");
        assert_eq!(buffer[..bytes.len()], bytes, "{name}");
        let needed = message.len_bytes();
        assert_eq!(needed, bytes.len(), "{name}");
        let small = message.emit(&addresses, &mut buffer[..needed - 1]);
        assert_eq!(small, Err(EmitError::BufferTooSmall { needed }), "{name}");
    }
}

#[test]
fn errors_say_which_packet_caused_them() {
    let quote = &QUOTE[..];
    let quoted = Message::PacketTooBig { mtu: 1_400, quote }
        .quoted()
        .unwrap();
    assert_eq!(quoted.addresses, HEADER.addresses().reversed());
    assert_eq!(quoted.seq, Some(SeqNum(0x1122_3344)));
    assert_eq!(Message::EchoRequest(ECHO).quoted(), None);
}

#[test]
fn bad_messages_have_reasons() {
    use Malformed::{Icmp6Checksum, Icmp6Truncated};
    for (name, bytes, reason) in [
        ("empty", &[][..], Icmp6Truncated),
        ("three bytes", &[128, 0, 0], Icmp6Truncated),
        ("a wrong checksum", &[100, 2, 0x40, 0x4b], Icmp6Checksum),
        // The same checksum as that of the unknown message above: 0x6402 and 0x0302 + 0x6100.
        (
            "an error without its word",
            &[3, 2, 0xa1, 0x4a],
            Icmp6Truncated,
        ),
    ] {
        assert_eq!(parse(bytes), Err(reason), "{name}");
    }
}

#[test]
fn errors_have_at_most_the_smallest_mtu() {
    let packet = [7; 1_500];
    assert_eq!(quotable(&packet).len(), 1_232);
    assert_eq!(quotable(&packet[..60]).len(), 60);
}
