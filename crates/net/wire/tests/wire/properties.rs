//! Properties: packets are read as they were written, checksums equal naive ones, and no input
//! panics or contradicts smoltcp.

use crate::fuzzed::{self, rewrite::without_lost_blocks};
use crate::packets::*;
use proptest::prelude::*;
use saiga_wire::checksum::{Sum, update};
use saiga_wire::frame::{Content, Frame, Layout, Network, Packet, Payload, Transport, Writer};
use saiga_wire::ip::Protocol;
use saiga_wire::offload::{ChecksumState, Fill, complete};
use saiga_wire::tcp::Segment;
use saiga_wire::{ethernet, icmp6, ipv4, ipv6};

/// RFC 1071 §1 word by word.
fn naive(bytes: &[u8]) -> u16 {
    let sum = bytes.chunks(2).fold(0_u32, |sum, pair| {
        let low = pair.get(1).copied().unwrap_or(0);
        let sum = sum + u32::from(u16::from_be_bytes([pair[0], low]));
        if sum > 0xffff { sum - 0xffff } else { sum }
    });
    u16::try_from(sum).expect("a folded sum")
}

/// The content of the frame that `write` writes behind `link`.
fn reread<'a>(
    link: &ethernet::Header,
    buffer: &'a mut [u8],
    write: impl Fn(&mut Writer<'_>) -> usize,
) -> Content<'a> {
    let mut writer = Writer {
        link: Some(link),
        buffer,
    };
    let length = write(&mut writer);
    let frame = Frame::parse(&buffer[..length], ChecksumState::Verify).expect("a valid frame");
    assert_eq!(frame.link.tags, link.tags);
    assert_eq!(
        (frame.link.source, frame.link.destination),
        (link.source, link.destination)
    );
    frame.content
}

fn packet<'a>(network: Network, transport: Transport<'a>, bytes: &'a [u8]) -> Content<'a> {
    Content::Ip(Packet {
        network,
        transport,
        bytes,
    })
}

/// The IP packet of a content.
fn bytes_of<'a>(content: &Content<'a>) -> &'a [u8] {
    match content {
        Content::Ip(packet) => packet.bytes,
        Content::Arp(_) | Content::Other(_) => panic!("{content:?}"),
    }
}

proptest! {
    #[test]
    fn sums_of_parts_equal_the_naive_sum(bytes in bytes(3_000), cuts in any::<[prop::sample::Index; 3]>()) {
        let mut cuts = cuts.map(|cut| cut.index(bytes.len() + 1));
        cuts.sort_unstable();
        let [a, b, c] = cuts;
        let parts = [&bytes[..a], &bytes[a..b], &bytes[b..c], &bytes[c..]];
        prop_assert_eq!(Sum::of_slices(&parts).value(), naive(&bytes));
        let joined = parts.iter().fold(Sum::ZERO, |sum, part| sum.then(Sum::of(part)));
        prop_assert_eq!(joined.value(), naive(&bytes));
    }

    #[test]
    fn an_update_equals_the_checksum_formed_anew(
        mut packet in bytes(200),
        at in any::<prop::sample::Index>(),
        new in bytes(20),
    ) {
        packet.extend([0x45, 0]); // A packet of zeros alone is the exception.
        let at = at.index(packet.len()) & !1;
        let end = packet.len().min(at + (new.len() & !1));
        let before = Sum::of(&packet);
        let old = Sum::of(&packet[at..end]);
        packet[at..end].copy_from_slice(&new[..end - at]);
        prop_assume!(packet.iter().any(|byte| *byte != 0));
        let found = update(before.checksum(), old, Sum::of(&packet[at..end]));
        prop_assert_eq!(found, !naive(&packet));
    }

    #[test]
    fn tcp_headers_are_read_as_they_were_written(header in tcp_header(), payload in bytes(9)) {
        let mut buffer = [0; 80];
        let length = header.emit(&mut buffer).unwrap();
        prop_assert_eq!(length, header.len_bytes());
        buffer[length..][..payload.len()].copy_from_slice(&payload);
        let found = Segment::parse(&buffer[..length + payload.len()]).unwrap();
        let expected = Segment { header: without_lost_blocks(&header), payload: &payload };
        prop_assert_eq!(found, expected);
    }

    #[test]
    fn segments_are_read_as_they_were_written(
        link in link(),
        network in network(),
        header in tcp_header(),
        payload in bytes(100),
    ) {
        let mut buffer = [0; 300];
        let content = reread(&link, &mut buffer, |writer| {
            writer.tcp(&network, &header, &[&payload], Fill::Checksum).unwrap()
        });
        let header = without_lost_blocks(&header);
        let segment = Segment { header, payload: &payload };
        let expected = packet(network, Transport::Tcp(segment), bytes_of(&content));
        prop_assert_eq!(content, expected);
    }

    #[test]
    fn icmp_messages_are_read_as_they_were_written(
        link in link(),
        header in ipv4_header(),
        ingredients in ingredients(),
    ) {
        let message = icmp4_message(&ingredients);
        let mut buffer = [0; 300];
        let content = reread(&link, &mut buffer, |writer| writer.icmp4(&header, &message).unwrap());
        let network = Network::V4(ipv4::Header { protocol: Protocol::ICMP, ..header });
        let expected = packet(network, Transport::Icmp4(message), bytes_of(&content));
        prop_assert_eq!(content, expected);
    }

    #[test]
    fn icmp6_messages_are_read_as_they_were_written(
        link in link(),
        header in ipv6_header(),
        ingredients in ingredients(),
    ) {
        let message = icmp6_message(&ingredients);
        let mut buffer = [0; 300];
        let content = reread(&link, &mut buffer, |writer| writer.icmp6(&header, &message).unwrap());
        let network = Network::V6(ipv6::Header { protocol: Protocol::ICMP6, ..header });
        let expected = packet(network, Transport::Icmp6(message), bytes_of(&content));
        prop_assert_eq!(content, expected);
    }

    #[test]
    fn neighbour_discovery_is_read_as_it_was_written(
        link in link(),
        header in ipv6_header(),
        ingredients in ingredients(),
    ) {
        let message = icmp6::Message::Ndp(ndp_message(&ingredients));
        let source = "fe80::1".parse().unwrap();
        let protocol = Protocol::ICMP6;
        let header = ipv6::Header { source, hop_limit: 255, protocol, ..header };
        let mut buffer = [0; 300];
        let content = reread(&link, &mut buffer, |writer| writer.icmp6(&header, &message).unwrap());
        let network = Network::V6(header);
        let expected = packet(network, Transport::Icmp6(message), bytes_of(&content));
        prop_assert_eq!(content, expected);
    }

    #[test]
    fn arp_packets_are_read_as_they_were_written(link in link(), packet in arp_packet()) {
        let mut buffer = [0; 64];
        let content = reread(&link, &mut buffer, |writer| writer.arp(&packet).unwrap());
        prop_assert_eq!(content, Content::Arp(packet));
    }

    #[test]
    fn a_device_completes_what_is_left_to_it(
        network in network(),
        header in tcp_header(),
        payload in bytes(200),
    ) {
        let (mut whole, mut partial) = ([0; 400], [0; 400]);
        let slices = [&payload[..]];
        let mut writer = Writer { link: None, buffer: &mut whole };
        let length = writer.tcp(&network, &header, &slices, Fill::Checksum).unwrap();
        let mut writer = Writer { link: None, buffer: &mut partial };
        let summed = Payload::Summed { length: payload.len(), sum: Sum::ZERO };
        let layout: Layout = writer
            .tcp_headers(&network, &header, summed, Fill::PseudoHeader)
            .unwrap();
        partial[layout.payload_at..length].copy_from_slice(&payload);
        prop_assert_eq!(complete(&mut partial[..length], layout.transport_at, 16), Ok(()));
        prop_assert_eq!(whole, partial);
    }

    #[test]
    fn any_bytes_are_survived(input in bytes(300)) {
        fuzzed::frame(&input);
        fuzzed::tcp(&input);
    }

    #[test]
    fn valid_frames_are_survived(frame in frame(), treatment in 0..4_u8) {
        fuzzed::frame(&[&[treatment], &frame[..]].concat());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4_096))]

    #[test]
    fn damaged_frames_are_survived(frame in frame(), damage in damage(), treatment in 0..16_u8) {
        let mut frame = frame;
        damage.apply(&mut frame);
        fuzzed::frame(&[&[treatment], &frame[..]].concat());
    }

    #[test]
    fn damaged_segments_are_survived(header in tcp_header(), damage in damage()) {
        let mut segment = vec![0; 80];
        header.emit(&mut segment).unwrap();
        damage.apply(&mut segment);
        fuzzed::tcp(&segment);
    }
}
