//! Frames made by hand, from host 9 to host 2.

use std::net::IpAddr;

use saiga_wire::ethernet::{self, EtherType, Mac, Tags};
use saiga_wire::frame::{Network, Writer};
use saiga_wire::ip::{Ports, Protocol, TrafficClass};
use saiga_wire::offload::Fill;
use saiga_wire::tcp::{Flags, Header, Options};
use saiga_wire::{EmitError, SeqNum, arp, icmp4, icmp6, ipv4, ipv6};

use crate::world::mac;

/// The Ethernet header of the frames.
pub(crate) fn link(to: Mac) -> ethernet::Header {
    ethernet::Header {
        destination: to,
        source: mac(9),
        tags: Tags::None,
        ether_type: EtherType::IPV4,
    }
}

/// A frame to a MAC address.
pub(crate) fn frame_to(
    to: Mac,
    write: impl FnOnce(&mut Writer<'_>) -> Result<usize, EmitError>,
) -> Vec<u8> {
    let mut buffer = vec![0; 2_000];
    let link = link(to);
    let mut writer = Writer {
        link: Some(&link),
        buffer: &mut buffer,
    };
    let length = write(&mut writer).unwrap();
    buffer.truncate(length);
    buffer
}

/// An IP header.
pub(crate) fn ip(source: IpAddr, destination: IpAddr, protocol: Protocol) -> Network {
    match (source, destination) {
        (IpAddr::V4(source), IpAddr::V4(destination)) => Network::V4(ipv4::Header {
            source,
            destination,
            protocol,
            traffic_class: TrafficClass(0),
            ttl: 64,
            id: 77,
            dont_fragment: false,
            more_fragments: false,
            fragment_offset: 0,
        }),
        (IpAddr::V6(source), IpAddr::V6(destination)) => Network::V6(ipv6::Header {
            source,
            destination,
            protocol,
            traffic_class: TrafficClass(0),
            flow_label: 0,
            hop_limit: 64,
        }),
        other => panic!("two versions: {other:?}"),
    }
}

/// The two fragments of a packet of IPv4: up to byte `at` of its payload, and the rest.
pub(crate) fn fragments(header: ipv4::Header, payload: &[u8], at: u16) -> [Vec<u8>; 2] {
    let (first, rest) = payload.split_at(at.into());
    let piece = |more_fragments, fragment_offset, bytes| {
        let header = ipv4::Header {
            more_fragments,
            fragment_offset,
            ..header
        };
        raw(&Network::V4(header), bytes)
    };
    [piece(true, 0, first), piece(false, at, rest)]
}

/// A TCP segment.
pub(crate) fn tcp(
    (source, destination): (IpAddr, IpAddr),
    (from, to): (u16, u16),
    (seq, ack): (u32, Option<u32>),
    flags: Flags,
) -> Vec<u8> {
    let header = Header {
        ports: Ports {
            source: from,
            destination: to,
        },
        seq: SeqNum(seq),
        ack: ack.map(SeqNum),
        flags,
        window: 65_535,
        urgent: None,
        options: Options::NONE,
    };
    let network = ip(source, destination, Protocol::TCP);
    frame_to(mac(2), |writer| {
        writer.tcp(&network, &header, &[], Fill::Checksum)
    })
}

/// An ICMP message to a MAC address.
pub(crate) fn icmp4_to(
    to: Mac,
    (source, destination): (IpAddr, IpAddr),
    message: &icmp4::Message<'_>,
) -> Vec<u8> {
    let Network::V4(header) = ip(source, destination, Protocol::ICMP) else {
        panic!("not IPv4")
    };
    frame_to(to, |writer| writer.icmp4(&header, message))
}

/// See [`icmp4_to`].
pub(crate) fn icmp6_to(
    to: Mac,
    (source, destination): (IpAddr, IpAddr),
    message: &icmp6::Message<'_>,
) -> Vec<u8> {
    let Network::V6(header) = ip(source, destination, Protocol::ICMP6) else {
        panic!("not IPv6")
    };
    let is_discovery = matches!(message, icmp6::Message::Ndp(_));
    let hop_limit = if is_discovery { 255 } else { 64 };
    let header = ipv6::Header {
        hop_limit,
        ..header
    };
    frame_to(to, |writer| writer.icmp6(&header, message))
}

/// A packet whose payload is written as it is.
pub(crate) fn raw(network: &Network, payload: &[u8]) -> Vec<u8> {
    let (ether_type, address) = match network {
        Network::V4(_) => (EtherType::IPV4, mac(2)),
        Network::V6(_) => (EtherType::IPV6, mac(2)),
    };
    let mut frame = vec![0; 2_000];
    let link = ethernet::Header {
        ether_type,
        ..link(address)
    };
    let at = link.emit(&mut frame).unwrap();
    let header = network.emit(payload.len(), &mut frame[at..]).unwrap();
    frame.truncate(at + header);
    frame.extend_from_slice(payload);
    frame
}

/// An ARP packet of host 9.
pub(crate) fn arp_frame(
    to: Mac,
    operation: arp::Operation,
    sender: [u8; 4],
    target: [u8; 4],
) -> Vec<u8> {
    let packet = arp::Packet {
        operation,
        sender_mac: mac(9),
        sender: sender.into(),
        target_mac: to,
        target: target.into(),
    };
    frame_to(to, |writer| writer.arp(&packet))
}
