//! Received frames byte by byte, through all layers.

extern crate std;

use super::samples::*;
use super::*;
use crate::ndp;
use std::vec::Vec;

/// The content of a frame, which must be an IP packet.
fn packet(frame: &[u8], state: ChecksumState) -> Result<Packet<'_>, Malformed> {
    match Frame::parse(frame, state)?.content {
        Content::Ip(packet) => Ok(packet),
        other @ (Content::Arp(_) | Content::Other(_)) => panic!("{other:?}"),
    }
}

#[test]
fn tcp_segments_are_read_through_all_layers() {
    for (name, bytes, link, network, ip) in [
        (
            "IPv4",
            &V4_FRAME[..],
            LINK,
            Network::V4(V4),
            &V4_FRAME[14..70],
        ),
        (
            "IPv6",
            &V6_FRAME,
            tagged(),
            Network::V6(V6),
            &V6_FRAME[18..],
        ),
    ] {
        for state in [
            ChecksumState::Verify,
            ChecksumState::Trusted,
            ChecksumState::Partial,
        ] {
            let frame = Frame::parse(bytes, state).expect(name);
            assert_eq!(frame.link, link, "{name}");
            let expected = Packet {
                network,
                transport: SEGMENT,
                bytes: ip,
            };
            assert_eq!(frame.content, Content::Ip(expected), "{name}");
            assert_eq!(Packet::parse(ip, state), Ok(expected), "{name}");
        }
        let mut damaged = bytes.to_vec();
        let last = link.len_bytes() + ip.len() - 1;
        damaged[last] ^= 1;
        let found = packet(&damaged, ChecksumState::Verify);
        assert_eq!(found, Err(Malformed::TcpChecksum), "{name}");
        assert!(packet(&damaged, ChecksumState::Trusted).is_ok(), "{name}");
        assert!(packet(&damaged, ChecksumState::Partial).is_ok(), "{name}");
    }
}

#[test]
fn a_bad_layer_is_the_reason() {
    let set = |at: usize, byte: u8| {
        let mut bytes = V4_FRAME;
        bytes[at] = byte;
        bytes
    };
    for (name, bytes, reason) in [
        ("Ethernet", set(6, 3), Malformed::EthernetSource),
        ("ARP", set(13, 6), Malformed::ArpFormat),
        ("IPv4", set(15, 0), Malformed::Ipv4Checksum),
        ("TCP", set(46, 0x40), Malformed::TcpDataOffset),
    ] {
        let found = Frame::parse(&bytes, ChecksumState::Trusted);
        assert_eq!(found, Err(reason), "{name}");
    }
    let mut bytes = V4_FRAME;
    bytes[12..14].copy_from_slice(&[0x86, 0xdd]);
    let found = Frame::parse(&bytes, ChecksumState::Verify);
    assert_eq!(found, Err(Malformed::IpVersion), "IPv4 announced as IPv6");
    let found = Packet::parse(&[0x55; 20], ChecksumState::Verify);
    assert_eq!(found, Err(Malformed::IpVersion));
    let found = Packet::parse(&[], ChecksumState::Verify);
    assert_eq!(found, Err(Malformed::Ipv4Truncated));
}

#[test]
fn other_contents_are_handed_out() {
    let mut lldp = V4_FRAME;
    lldp[12..14].copy_from_slice(&[0x88, 0xcc]);
    let found = Frame::parse(&lldp, ChecksumState::Verify).unwrap();
    assert_eq!(found.content, Content::Other(&V4_FRAME[14..]));

    let mut buffer = [0; 64];
    let udp = ipv4::Header {
        protocol: Protocol::UDP,
        ..V4
    };
    let fragment = ipv4::Header {
        more_fragments: true,
        dont_fragment: false,
        ..V4
    };
    let described = Fragment {
        id: 0xbeef,
        offset: 0,
        more: true,
    };
    let icmp6 = ipv4::Header {
        protocol: Protocol::ICMP6,
        ..V4
    };
    for (name, header, expected) in [
        ("UDP", udp, Transport::Other(b"8 bytes.")),
        ("ICMPv6 in IPv4", icmp6, Transport::Other(b"8 bytes.")),
        (
            "fragment",
            fragment,
            Transport::Fragment(described, b"8 bytes."),
        ),
    ] {
        let at = header.emit(8, &mut buffer).unwrap();
        buffer[at..][..8].copy_from_slice(b"8 bytes.");
        let found = Packet::parse(&buffer[..at + 8], ChecksumState::Verify).expect(name);
        assert_eq!(found.transport, expected, "{name}");
        assert_eq!(found.network.protocol(), header.protocol, "{name}");
    }
    let udp6 = ipv6::Header {
        protocol: Protocol::UDP,
        ..V6
    };
    let at = udp6.emit(8, &mut buffer).unwrap();
    let found = Packet::parse(&buffer[..at + 8], ChecksumState::Verify).unwrap();
    assert_eq!(found.transport, Transport::Other(&[0; 8]));
    assert_eq!(found.network.protocol(), Protocol::UDP);

    // A fragment header: next header 7, offset 8, the last fragment.
    buffer[6] = 44;
    buffer[40..48].copy_from_slice(&[7, 0, 0, 8, 0, 0, 0, 1]);
    let found = Packet::parse(&buffer[..at + 8], ChecksumState::Verify).unwrap();
    let described = Fragment {
        id: 1,
        offset: 8,
        more: false,
    };
    assert_eq!(found.transport, Transport::Fragment(described, &[]));
}

#[test]
fn networks_have_common_fields() {
    for network in [Network::V4(V4), Network::V6(V6)] {
        assert_eq!(network.protocol(), Protocol::TCP);
        assert_eq!(network.traffic_class(), TrafficClass(2));
        assert_eq!(
            network.addresses().reversed().reversed(),
            network.addresses()
        );
    }
}

#[test]
fn reassembled_packets_are_verified() {
    let ip = |frame: &[u8]| -> Vec<u8> { frame[14..70].to_vec() };
    let found = ip(&V4_FRAME);
    let found = Packet::parse_reassembled(&found).unwrap();
    assert_eq!(found.transport, SEGMENT);
    let mut damaged = ip(&V4_FRAME);
    damaged[55] ^= 1;
    let found = Packet::parse_reassembled(&damaged);
    assert_eq!(found, Err(Malformed::TcpChecksum));
    let solicitation = ndp::Message::NeighbourSolicitation {
        target: V6.destination,
        source_mac: None,
    };
    let header = ipv6::Header {
        hop_limit: 255,
        ..V6
    };
    let mut buffer = [0; 64];
    let mut writer = Writer {
        link: None,
        buffer: &mut buffer,
    };
    let written = writer.icmp6(&header, &icmp6::Message::Ndp(solicitation));
    assert_eq!(written, Ok(64));
    assert!(Packet::parse(&buffer, ChecksumState::Verify).is_ok());
    let found = Packet::parse_reassembled(&buffer);
    assert_eq!(found, Err(Malformed::NdpFragment));
}
