//! Written frames byte by byte, and with the sums that devices expect.

use super::*;
use crate::ethernet::Mac;
use crate::frame::samples::*;
use crate::frame::{Content, Frame, Packet, Transport};
use crate::offload::{ChecksumState, complete};
use crate::tcp::Flags;
use crate::{icmp, virtio};

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
    for length in [usize::MAX, usize::MAX - 20] {
        let sum = Sum::ZERO;
        let mut writer = Writer {
            link: None,
            buffer: &mut [0; 92],
        };
        let payload = Payload::Summed { length, sum };
        let found = writer.tcp_headers(&Network::V4(V4), &TCP, payload, Fill::PseudoHeader);
        let length = usize::MAX;
        assert_eq!(found, Err(EmitError::PacketTooLong { length }));
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
