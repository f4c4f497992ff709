//! Messages byte by byte, and one breach of each rule of validity.

extern crate std;

use super::*;
use crate::checksum::Sum;
use crate::icmp6;
use crate::ip::{Protocol, TrafficClass};
use std::vec::Vec;

const A: &str = "fe80::a";
const MAC_A: Mac = Mac([2, 0, 0, 0, 0, 0xa]);
const MAC_B: Mac = Mac([2, 0, 0, 0, 0, 0xb]);

/// Solicits fe80::b; from fe80::a to ff02::1:ff00:b.
const SOLICITATION: [u8; 32] = [
    135, 0, 0x7a, 0x73, 0, 0, 0, 0, //
    0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xb, //
    1, 1, 2, 0, 0, 0, 0, 0xa,
];

/// The answer of fe80::b to fe80::a.
const ADVERTISEMENT: [u8; 32] = [
    136, 0, 0x17, 0xf6, 0x60, 0, 0, 0, //
    0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xb, //
    2, 1, 2, 0, 0, 0, 0, 0xb,
];

/// From fe80::a to ff02::2.
const ROUTER_QUESTION: [u8; 8] = [133, 0, 0x7d, 0x2d, 0, 0, 0, 0];

/// From fe80::1 to ff02::1: MAC address, MTU 1,500, prefix 2001:db8:1::/64, an unknown option.
const ROUTER: [u8; 72] = [
    134, 0, 0x5b, 0x07, 64, 0xc0, 0x07, 0x08, 0, 0, 0x75, 0x30, 0, 0, 0x03, 0xe8, //
    1, 1, 2, 0, 0, 0, 0, 1, //
    5, 1, 0, 0, 0, 0, 0x05, 0xdc, //
    3, 4, 64, 0xc0, 0, 0x27, 0x8d, 0, 0, 9, 0x3a, 0x80, 0, 0, 0, 0, //
    0x20, 0x01, 0x0d, 0xb8, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, //
    25, 1, 0, 0, 0, 0, 0, 0,
];

fn header(source: &str, destination: &str) -> ipv6::Header {
    ipv6::Header {
        source: source.parse().unwrap(),
        destination: destination.parse().unwrap(),
        protocol: Protocol::ICMP6,
        traffic_class: TrafficClass(0),
        flow_label: 0,
        hop_limit: 255,
    }
}

fn packet(header: ipv6::Header, payload: &[u8]) -> ipv6::Packet<'_> {
    ipv6::Packet {
        header,
        fragment: None,
        fragment_header: false,
        payload,
        bytes: payload,
    }
}

fn target() -> Ipv6Addr {
    "fe80::b".parse().unwrap()
}

#[test]
fn messages_are_read_and_written() {
    let solicitation = Message::NeighbourSolicitation {
        target: target(),
        source_mac: Some(MAC_A),
    };
    let advertisement = Message::NeighbourAdvertisement(NeighbourAdvertisement {
        router: false,
        solicited: true,
        overrides: true,
        target: target(),
        target_mac: Some(MAC_B),
    });
    let question = Message::RouterSolicitation { source_mac: None };
    let router = Message::RouterAdvertisement(RouterAdvertisement {
        hop_limit: 64,
        managed: true,
        other_config: true,
        lifetime_s: 1_800,
        reachable_ms: 30_000,
        retransmit_ms: 1_000,
        options: Options::parse(&ROUTER[16..]).unwrap(),
    });
    for (name, header, bytes, message) in [
        (
            "solicitation",
            header(A, "ff02::1:ff00:b"),
            &SOLICITATION[..],
            solicitation,
        ),
        (
            "advertisement",
            header("fe80::b", A),
            &ADVERTISEMENT,
            advertisement,
        ),
        ("question", header(A, "ff02::2"), &ROUTER_QUESTION, question),
        ("router", header("fe80::1", "ff02::1"), &ROUTER, router),
    ] {
        let message = icmp6::Message::Ndp(message);
        assert_eq!(
            icmp6::Message::parse(&packet(header, bytes)),
            Ok(message),
            "{name}"
        );
        assert_eq!(message.quoted(), None, "{name}");
        let mut buffer = [0xee; 80];
        let written = message.emit(&header.addresses(), &mut buffer);
        assert_eq!(written, Ok(bytes.len()), "{name}");
        assert_eq!(buffer[..bytes.len()], *bytes, "{name}");
    }
}

#[test]
fn each_flag_has_its_bit() {
    for (byte, router, solicited, overrides) in [
        (0x80, true, false, false),
        (0x40, false, true, false),
        (0x20, false, false, true),
        (0x1f, false, false, false),
    ] {
        let bytes = changed(&ADVERTISEMENT, 4, byte);
        let message = parse(header("fe80::b", A), &bytes).unwrap();
        let Message::NeighbourAdvertisement(found) = message else {
            panic!("{message:?}");
        };
        let flags = (found.router, found.solicited, found.overrides);
        assert_eq!(flags, (router, solicited, overrides));
        assert_eq!(emitted(&message)[4], byte & 0xe0);
    }
    for (byte, managed, other_config) in [(0x80, true, false), (0x40, false, true)] {
        let bytes = changed(&ROUTER, 5, byte);
        let message = parse(header("fe80::1", "ff02::1"), &bytes).unwrap();
        let Message::RouterAdvertisement(found) = message else {
            panic!("{message:?}");
        };
        assert_eq!((found.managed, found.other_config), (managed, other_config));
        assert_eq!(emitted(&message)[5], byte);
    }
}

#[test]
fn a_router_describes_its_link() {
    let options = Options::parse(&ROUTER[16..]).unwrap();
    assert_eq!(options.source_mac(), Some(Mac([2, 0, 0, 0, 0, 1])));
    assert_eq!(options.target_mac(), None);
    assert_eq!(options.mtu(), Some(1_500));
    let prefix = Prefix {
        address: "2001:db8:1::".parse().unwrap(),
        length_bits: 64,
        on_link: true,
        autonomous: true,
        valid_s: 2_592_000,
        preferred_s: 604_800,
    };
    assert_eq!(options.prefixes().collect::<Vec<_>>(), [prefix]);
    let two = [&ROUTER[32..64], &ROUTER[32..64]].concat();
    assert_eq!(Options::parse(&two).unwrap().prefixes().count(), 2);
    assert_eq!(Options::parse(&[]).unwrap().mtu(), None);
}

#[test]
fn the_solicited_node_has_the_lower_24_bits() {
    let address = "2001:db8::1234:56ab:cdef".parse().unwrap();
    assert_eq!(
        solicited_node(address).to_bits(),
        0xff02 << 112 | 0x1_ffab_cdef
    );
}

fn emitted(message: &Message<'_>) -> Vec<u8> {
    let mut buffer = std::vec![0; 80];
    message.layout().emit(Sum::ZERO, &mut buffer).unwrap();
    buffer
}

fn changed(bytes: &[u8], at: usize, byte: u8) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    bytes[at] = byte;
    bytes
}

/// Reads a message whose checksum is wrong, because a test changed its bytes.
fn parse(header: ipv6::Header, bytes: &[u8]) -> Result<Message<'_>, Malformed> {
    let (kind, code, body) = (bytes[0], bytes[1], &bytes[4..]);
    Message::parse(&packet(header, bytes), kind, code, body)
}

#[test]
fn rules_for_all_messages() {
    for (kind, length) in [(133, 8), (134, 16), (135, 24), (136, 24)] {
        let valid = {
            let mut bytes = std::vec![0; length];
            bytes[0] = kind;
            bytes
        };
        let header = header("fe80::1", "fe80::2");
        assert!(parse(header, &valid).is_ok(), "{kind}");
        let far = ipv6::Header {
            hop_limit: 254,
            ..header
        };
        assert_eq!(parse(far, &valid), Err(Malformed::NdpHopLimit), "{kind}");
        let code = parse(header, &changed(&valid, 1, 1)).map(|_| ());
        assert_eq!(code, Err(Malformed::NdpCode), "{kind}");
        let cut = parse(header, &valid[..length - 1]);
        assert_eq!(cut, Err(Malformed::NdpTruncated), "{kind}");
        let option = [&valid[..], &[1, 0, 0, 0, 0, 0, 0, 0]].concat();
        assert_eq!(parse(header, &option), Err(Malformed::NdpOption), "{kind}");
        let fragment = ipv6::Packet {
            fragment_header: true,
            ..packet(header, &valid)
        };
        let found = Message::parse(&fragment, kind, 0, &valid[4..]);
        assert_eq!(found, Err(Malformed::NdpFragment), "{kind}");
    }
}

/// From `source` to `destination`, the message is read, or refused for a reason.
fn assert_rule(
    name: &str,
    [source, destination]: [&str; 2],
    bytes: &[u8],
    reason: Option<Malformed>,
) {
    let found = parse(header(source, destination), bytes).err();
    assert_eq!(found, reason, "{name}");
}

#[test]
fn rules_for_routers() {
    use Malformed::NdpSource;
    let question = [&ROUTER_QUESTION[..], &SOLICITATION[24..]].concat();
    assert_rule("without address", ["::", "ff02::2"], &ROUTER_QUESTION, None);
    assert_rule(
        "MAC address alone",
        ["::", "ff02::2"],
        &question,
        Some(NdpSource),
    );
    assert_rule("both addresses", [A, "ff02::2"], &question, None);
    assert_rule("another link", ["2001:db8::1", A], &ROUTER, Some(NdpSource));
}

#[test]
fn rules_for_neighbours() {
    use Malformed::{NdpDestination, NdpSource, NdpTarget};
    let group = "ff02::1:ff00:b";
    let no_mac = &SOLICITATION[..24];
    assert_rule("probe for duplicates", ["::", group], no_mac, None);
    assert_rule(
        "probe to a host",
        ["::", "fe80::b"],
        no_mac,
        Some(NdpDestination),
    );
    assert_rule(
        "probe with a MAC address",
        ["::", group],
        &SOLICITATION,
        Some(NdpSource),
    );
    let target = changed(&SOLICITATION, 8, 0xff);
    assert_rule("solicited group", [A, group], &target, Some(NdpTarget));
    let target = changed(&ADVERTISEMENT, 8, 0xff);
    assert_rule("advertised group", [A, A], &target, Some(NdpTarget));
    assert_rule(
        "solicited, to all",
        [A, "ff02::1"],
        &ADVERTISEMENT,
        Some(NdpDestination),
    );
    let unsolicited = changed(&ADVERTISEMENT, 4, 0x20);
    assert_rule("unsolicited, to all", [A, "ff02::1"], &unsolicited, None);
}

#[test]
fn bad_options_are_refused() {
    let prefix = &ROUTER[32..64];
    for (name, bytes, valid) in [
        ("one byte", std::vec![1], false),
        ("length 0", std::vec![9, 0, 0, 0, 0, 0, 0, 0], false),
        (
            "above the message",
            std::vec![9, 2, 0, 0, 0, 0, 0, 0],
            false,
        ),
        ("cut", std::vec![9, 1, 0, 0, 0, 0, 0], false),
        (
            "MAC address of 14 bytes",
            [&[1, 2][..], &[0; 14]].concat(),
            false,
        ),
        (
            "target of 14 bytes",
            [&[2, 2][..], &[0; 14]].concat(),
            false,
        ),
        ("long MTU", [&[5, 2][..], &[0; 14]].concat(), false),
        ("short prefix", [&[3, 3][..], &[0; 22]].concat(), false),
        ("prefix of 129 bits", changed(prefix, 2, 129), false),
        ("prefix of 128 bits", changed(prefix, 2, 128), true),
        (
            "long unknown option",
            [&[9, 2][..], &[0; 14]].concat(),
            true,
        ),
    ] {
        assert_eq!(Options::parse(&bytes).is_ok(), valid, "{name}");
    }
}
