//! Quotes that end at every byte, and those of other protocols.

extern crate std;

use super::*;
use core::net::{Ipv4Addr, Ipv6Addr};
use std::vec::Vec;

const PORTS: Ports = Ports {
    source: 0xc001,
    destination: 6379,
};
const SEQ: SeqNum = SeqNum(0x1122_3344);
const TRANSPORT: [u8; 8] = [0xc0, 0x01, 0x18, 0xeb, 0x11, 0x22, 0x33, 0x44];

/// A packet with 4 bytes of options, a wrong checksum, and a length field above its length.
fn ipv4(protocol: Protocol, place: [u8; 2]) -> Vec<u8> {
    let [high, low] = place;
    let head = [0x46, 0, 5, 0xdc, 1, 2, high, low, 1, protocol.0, 0xba, 0xad];
    let addresses = [192, 0, 2, 1, 198, 51, 100, 2, 1, 1, 1, 1];
    [&head[..], &addresses, &TRANSPORT].concat()
}

fn ipv6(protocol: Protocol, extension: &[u8]) -> Vec<u8> {
    let head = [0x60, 0, 0, 0, 5, 0xdc, protocol.0, 1];
    let (source, destination) = (Ipv6Addr::LOCALHOST.octets(), [0x20; 16]);
    [&head[..], &source, &destination, extension, &TRANSPORT].concat()
}

#[test]
fn ipv4_packets() {
    for (name, protocol, place, ports, seq) in [
        ("TCP", Protocol::TCP, [0x40, 0], Some(PORTS), Some(SEQ)),
        ("UDP", Protocol::UDP, [0, 0], Some(PORTS), None),
        ("ICMP", Protocol::ICMP, [0, 0], None, None),
        (
            "first fragment",
            Protocol::TCP,
            [0x20, 0],
            Some(PORTS),
            Some(SEQ),
        ),
        ("second fragment", Protocol::TCP, [0x20, 1], None, None),
    ] {
        let expected = Quoted {
            addresses: Addresses::V4 {
                source: Ipv4Addr::new(192, 0, 2, 1),
                destination: Ipv4Addr::new(198, 51, 100, 2),
            },
            protocol,
            ports,
            seq,
        };
        let bytes = ipv4(protocol, place);
        assert_eq!(Quoted::of_ipv4(&bytes), Some(expected), "{name}");
    }
    let mut no_header = ipv4(Protocol::TCP, [0, 0]);
    no_header[0] = 0x44;
    assert_eq!(Quoted::of_ipv4(&no_header), None);
    assert_eq!(Quoted::of_ipv4(&ipv6(Protocol::TCP, &[])), None);
}

#[test]
fn ipv6_packets() {
    let options = [6, 0, 1, 4, 0, 0, 0, 0];
    let first = [6, 0, 0, 1, 0, 0, 0, 9];
    let second = [6, 0, 0, 9, 0, 0, 0, 9];
    let atomic = [6, 0, 0, 0, 0, 0, 0, 9];
    let found = (Some(PORTS), Some(SEQ));
    for (name, protocol, extension, (ports, seq)) in [
        ("TCP", Protocol::TCP, &[][..], found),
        ("UDP", Protocol::UDP, &[], (Some(PORTS), None)),
        ("options", Protocol::HOP_BY_HOP, &options, found),
        (
            "a fragment header alone",
            Protocol::FRAGMENT,
            &atomic,
            found,
        ),
        // The quote is shorter than the headers that a first fragment must hold.
        ("first fragment", Protocol::FRAGMENT, &first, (None, None)),
        ("second fragment", Protocol::FRAGMENT, &second, (None, None)),
        (
            "cut options",
            Protocol::ROUTING,
            &[6, 9, 0, 0],
            (None, None),
        ),
    ] {
        let passed = seq.is_some() && protocol != Protocol::TCP;
        let expected = Quoted {
            addresses: Addresses::V6 {
                source: Ipv6Addr::LOCALHOST,
                destination: Ipv6Addr::from([0x20; 16]),
            },
            protocol: if passed { Protocol::TCP } else { protocol },
            ports,
            seq,
        };
        let bytes = ipv6(protocol, extension);
        assert_eq!(Quoted::of_ipv6(&bytes), Some(expected), "{name}");
    }
    let mut no_header = ipv6(Protocol::TCP, &[]);
    no_header[0] = 0x45;
    assert_eq!(Quoted::of_ipv6(&no_header), None);
}

#[test]
fn a_quote_may_end_anywhere() {
    let (v4, v6) = (ipv4(Protocol::TCP, [0, 0]), ipv6(Protocol::TCP, &[]));
    let quotes = (0..=v4.len())
        .map(|end| (v4.len() - end, 12, Quoted::of_ipv4(&v4[..end])))
        .chain((0..=v6.len()).map(|end| (v6.len() - end, 8, Quoted::of_ipv6(&v6[..end]))));
    for (missing, behind_header, quoted) in quotes {
        assert_eq!(quoted.is_some(), missing <= behind_header, "{missing}");
        let ports = quoted.and_then(|quoted| quoted.ports);
        assert_eq!(ports, (missing <= 4).then_some(PORTS), "{missing}");
        let seq = quoted.and_then(|quoted| quoted.seq);
        assert_eq!(seq, (missing == 0).then_some(SEQ), "{missing}");
    }
}
