//! Frames byte by byte, through all layers.

extern crate std;

use super::*;
use crate::checksum::Sum;
use crate::ethernet::{Mac, Tag, Tags};
use crate::ip::Ports;
use crate::offload::{Fill, complete};
use crate::tcp::{Flags, Options, Timestamps};
use crate::{SeqNum, icmp, ndp, virtio};
use core::net::{Ipv4Addr, Ipv6Addr};
use std::vec::Vec;

const LINK: ethernet::Header = ethernet::Header {
    destination: Mac([2, 0, 0, 0, 0, 0xb]),
    source: Mac([2, 0, 0, 0, 0, 0xa]),
    tags: Tags::None,
    ether_type: EtherType::IPV4,
};

const V4: ipv4::Header = ipv4::Header {
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

const V6: ipv6::Header = ipv6::Header {
    source: Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1),
    destination: Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 2),
    protocol: Protocol::TCP,
    traffic_class: TrafficClass(2),
    flow_label: 0x1_2345,
    hop_limit: 64,
};

const TCP: tcp::Header = tcp::Header {
    ports: Ports {
        source: 0xc001,
        destination: 6379,
    },
    seq: SeqNum(0x1122_3344),
    ack: Some(SeqNum(0x5566_7788)),
    flags: Flags::PSH,
    window: 502,
    urgent: None,
    options: Options {
        timestamps: Some(Timestamps {
            value: 0x0102_0304,
            echo: 0x0506_0708,
        }),
        ..Options::NONE
    },
};

/// A TCP segment with timestamps and `PING` as payload, and 4 bytes of padding.
const V4_FRAME: [u8; 74] = [
    2, 0, 0, 0, 0, 0x0b, 2, 0, 0, 0, 0, 0x0a, 0x08, 0x00, // Ethernet
    0x45, 0x02, 0x00, 0x38, 0xbe, 0xef, 0x40, 0x00, 0x40, 0x06, 0x8f, 0x97, // IPv4
    192, 0, 2, 1, 198, 51, 100, 2, //
    0xc0, 0x01, 0x18, 0xeb, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88, // TCP
    0x80, 0x18, 0x01, 0xf6, 0xef, 0x9d, 0x00, 0x00, //
    1, 1, 8, 10, 1, 2, 3, 4, 5, 6, 7, 8, b'P', b'I', b'N', b'G', 9, 9, 9, 9,
];

/// The same segment in an IPv6 packet with a VLAN tag.
const V6_FRAME: [u8; 94] = [
    2, 0, 0, 0, 0, 0x0b, 2, 0, 0, 0, 0, 0x0a, 0x81, 0x00, 0x00, 0x07, 0x86, 0xdd, // Ethernet
    0x60, 0x21, 0x23, 0x45, 0x00, 0x24, 6, 64, // IPv6
    0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, //
    0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, //
    0xc0, 0x01, 0x18, 0xeb, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88, // TCP
    0x80, 0x18, 0x01, 0xf6, 0x80, 0x60, 0x00, 0x00, //
    1, 1, 8, 10, 1, 2, 3, 4, 5, 6, 7, 8, b'P', b'I', b'N', b'G',
];

const fn tagged() -> ethernet::Header {
    ethernet::Header {
        tags: Tags::One(Tag::vlan(7)),
        ether_type: EtherType::IPV6,
        ..LINK
    }
}

const SEGMENT: Transport<'_> = Transport::Tcp(tcp::Segment {
    header: TCP,
    payload: b"PING",
});

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
fn tcp_segments_are_written_through_all_layers() {
    // The writer sets types and protocols.
    let link = ethernet::Header {
        ether_type: EtherType::ARP,
        ..tagged()
    };
    let v6 = ipv6::Header {
        protocol: Protocol::UDP,
        ..V6
    };
    for (name, link, network, expected) in [
        ("IPv4", Some(&LINK), Network::V4(V4), &V4_FRAME[..70]),
        ("IPv6", Some(&link), Network::V6(v6), &V6_FRAME),
        ("IPv6 alone", None, Network::V6(v6), &V6_FRAME[18..]),
    ] {
        let mut buffer = [0xee; 100];
        for payload in [&[&b"PING"[..]][..], &[b"P", b"", b"IN", b"G"]] {
            let buffer = &mut buffer[..];
            let written = Writer { link, buffer }.tcp(&network, &TCP, payload, Fill::Checksum);
            assert_eq!(written, Ok(expected.len()), "{name}");
            assert_eq!(buffer[..expected.len()], *expected, "{name}");
        }
        assert_eq!(buffer[expected.len()], 0xee, "{name}");
        let needed = expected.len();
        let buffer = &mut buffer[..needed - 1];
        let small = Writer { link, buffer }.tcp(&network, &TCP, &[b"PING"], Fill::Checksum);
        assert_eq!(small, Err(EmitError::BufferTooSmall { needed }), "{name}");
    }
}

#[test]
fn headers_alone_know_the_payload_by_its_sum() {
    let layout = Layout {
        network_at: 14,
        transport_at: 34,
        payload_at: 66,
    };
    let summed = Payload::Summed {
        length: 4,
        sum: Sum::of(b"PING"),
    };
    let slices = [&b"PI"[..], b"NG"];
    for payload in [summed, Payload::Slices(&slices)] {
        let (mut buffer, link, network) = ([0xee; 66], Some(&LINK), Network::V4(V4));
        let buffer = &mut buffer[..];
        let mut writer = Writer { link, buffer };
        let written = writer.tcp_headers(&network, &TCP, payload, Fill::Checksum);
        assert_eq!(written, Ok(layout));
        assert_eq!(writer.buffer, &V4_FRAME[..66]);
        let buffer = &mut writer.buffer[..65];
        let small = Writer { link, buffer }.tcp_headers(&network, &TCP, payload, Fill::Checksum);
        assert_eq!(small, Err(EmitError::BufferTooSmall { needed: 66 }));
    }
    let payload = Payload::Summed {
        length: 65_535 - 32,
        sum: Sum::ZERO,
    };
    for (network, long) in [(Network::V4(V4), true), (Network::V6(V6), false)] {
        let buffer = &mut [0; 92][..];
        let mut writer = Writer { link: None, buffer };
        let found = writer.tcp_headers(&network, &TCP, payload, Fill::PseudoHeader);
        let error = EmitError::PacketTooLong { length: 65_555 };
        assert_eq!(found.err(), long.then_some(error));
    }
}

/// A device with checksum offload completes a frame to the frame that is written without offload.
#[test]
fn a_device_completes_the_pseudo_header() {
    for (link, network, expected) in [
        (Some(&LINK), Network::V4(V4), &V4_FRAME[..70]),
        (None, Network::V6(V6), &V6_FRAME[18..]),
    ] {
        let mut buffer = [0; 100];
        let mut writer = Writer {
            link,
            buffer: &mut buffer,
        };
        let payload = Payload::Slices(&[b"PING"]);
        let layout = writer
            .tcp_headers(&network, &TCP, payload, Fill::PseudoHeader)
            .unwrap();
        let header = virtio::Header::of_tcp(&network, &TCP, &layout, None);
        let place = header.checksum.unwrap();
        assert_eq!(header.segmentation, None);
        let frame = &mut buffer[..expected.len()];
        frame[layout.payload_at..].copy_from_slice(b"PING");
        assert_ne!(frame, expected);
        let (start, offset) = (usize::from(place.start), usize::from(place.offset));
        assert_eq!(complete(frame, start, offset), Ok(()));
        assert_eq!(frame, expected);
    }
}

/// The sums of the pseudo headers of super-segments, computed by hand.
#[test]
fn super_segments_have_the_sums_that_devices_expect() {
    let cwr = tcp::Header {
        flags: Flags::CWR,
        ..TCP
    };
    let payload = Payload::Summed {
        length: 64_000,
        sum: Sum::ZERO,
    };
    for (network, fill, ip_sum, sum) in [
        (
            Network::V4(V4),
            Fill::PseudoHeader,
            Some([0x95, 0x9a]),
            [0xe6, 0x5e],
        ),
        (
            Network::V4(V4),
            Fill::PseudoHeaderWithoutLength,
            Some([0, 0]),
            [0xec, 0x3d],
        ),
        (Network::V6(V6), Fill::PseudoHeader, None, [0x55, 0x9c]),
        (
            Network::V6(V6),
            Fill::PseudoHeaderWithoutLength,
            None,
            [0x5b, 0x7b],
        ),
    ] {
        let mut buffer = [0xee; 100];
        let mut writer = Writer {
            link: Some(&LINK),
            buffer: &mut buffer,
        };
        let layout = writer.tcp_headers(&network, &cwr, payload, fill).unwrap();
        assert_eq!(buffer[layout.transport_at + 16..][..2], sum);
        let (length, expected) = match network {
            Network::V4(_) => (&buffer[16..18], 64_052_u16),
            Network::V6(_) => (&buffer[18..20], 64_032),
        };
        assert_eq!(length, expected.to_be_bytes());
        if let Some(ip_sum) = ip_sum {
            assert_eq!(buffer[24..26], ip_sum);
        }
        let header = virtio::Header::of_tcp(&network, &cwr, &layout, Some(1_448));
        let segmentation = header.segmentation.unwrap();
        let v6 = network.len_bytes() == 40;
        assert_eq!(segmentation.version == virtio::Version::V6, v6);
        assert!(segmentation.ecn);
        assert_eq!(usize::from(segmentation.headers_bytes), layout.payload_at);
        assert_eq!(segmentation.segment_bytes, 1_448);
    }
}

const ECHO: icmp::Echo<'_> = icmp::Echo {
    id: 1,
    sequence: 2,
    data: b"data",
};

#[test]
fn icmp_messages_are_written_and_read() {
    let v4 = icmp4::Message::EchoRequest(ECHO);
    let v6 = icmp6::Message::EchoReply(ECHO);
    for link in [None, Some(&LINK)] {
        let link_bytes = link.map_or(0, ethernet::Header::len_bytes);
        let mut buffer = [0; 80];
        let mut writer = Writer {
            link,
            buffer: &mut buffer,
        };
        assert_eq!(writer.icmp4(&V4, &v4), Ok(link_bytes + 32));
        let found = Packet::parse(&writer.buffer[link_bytes..], ChecksumState::Verify).unwrap();
        assert_eq!(found.transport, Transport::Icmp4(v4));
        assert_eq!(writer.icmp6(&V6, &v6), Ok(link_bytes + 52));
        let found = Packet::parse(&writer.buffer[link_bytes..], ChecksumState::Verify).unwrap();
        assert_eq!(found.transport, Transport::Icmp6(v6));
        writer.buffer = &mut writer.buffer[..link_bytes + 31];
        let needed = link_bytes + 32;
        let small = writer.icmp4(&V4, &v4);
        assert_eq!(small, Err(EmitError::BufferTooSmall { needed }));
        let needed = link_bytes + 52;
        let small = writer.icmp6(&V6, &v6);
        assert_eq!(small, Err(EmitError::BufferTooSmall { needed }));
    }
}

#[test]
fn arp_packets_are_written_and_read() {
    let arp = arp::Packet {
        operation: arp::Operation::Request,
        sender_mac: LINK.source,
        sender: V4.source,
        target_mac: Mac([0; 6]),
        target: V4.destination,
    };
    let mut buffer = [0; 60];
    let mut writer = Writer {
        link: Some(&LINK),
        buffer: &mut buffer,
    };
    assert_eq!(writer.arp(&arp), Ok(42));
    let found = Frame::parse(writer.buffer, ChecksumState::Verify).unwrap();
    assert_eq!(found.content, Content::Arp(arp));
    writer.buffer = &mut writer.buffer[..41];
    let small = writer.arp(&arp);
    assert_eq!(small, Err(EmitError::BufferTooSmall { needed: 42 }));
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
