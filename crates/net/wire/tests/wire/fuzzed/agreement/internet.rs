//! ARP and the IP headers.

use super::{assert_stricter, checksums, smoltcp_verifies};
use saiga_wire::{Malformed, arp, ipv4, ipv6};
use smoltcp::wire::{ArpOperation, ArpPacket, ArpRepr, Ipv4Packet, Ipv4Repr, Ipv6Packet, Ipv6Repr};

pub(super) fn arp(bytes: &[u8]) {
    let theirs = ArpPacket::new_checked(bytes).and_then(|packet| ArpRepr::parse(&packet));
    match (arp::Packet::parse(bytes), theirs) {
        (Ok(ours), Ok(theirs)) => {
            let operation = match ours.operation {
                arp::Operation::Request => ArpOperation::Request,
                arp::Operation::Reply => ArpOperation::Reply,
            };
            let expected = ArpRepr::EthernetIpv4 {
                operation,
                source_hardware_addr: smoltcp::wire::EthernetAddress(ours.sender_mac.0),
                source_protocol_addr: ours.sender,
                target_hardware_addr: smoltcp::wire::EthernetAddress(ours.target_mac.0),
                target_protocol_addr: ours.target,
            };
            assert_eq!(theirs, expected);
        }
        (Err(reason), Ok(accepted)) => assert_stricter(reason, &accepted),
        (Ok(ours), Err(error)) => panic!("{ours:?}, but smoltcp says {error}"),
        (Err(_), Err(_)) => {}
    }
}

pub(super) fn ipv4(bytes: &[u8]) {
    let theirs = Ipv4Packet::new_checked(bytes)
        .and_then(|packet| Ok((Ipv4Repr::parse(&packet, &checksums())?, packet)));
    match (ipv4::Packet::parse(bytes), theirs) {
        (Ok(ours), Ok((theirs, packet))) => {
            let header = ours.header;
            assert_eq!(header.source, theirs.src_addr);
            assert_eq!(header.destination, theirs.dst_addr);
            assert_eq!(header.protocol.0, u8::from(theirs.next_header));
            assert_eq!(header.ttl, theirs.hop_limit);
            assert_eq!(header.traffic_class.dscp(), packet.dscp());
            assert_eq!(header.traffic_class.ecn() as u8, packet.ecn());
            assert_eq!(header.id, packet.ident());
            assert_eq!(header.dont_fragment, packet.dont_frag());
            assert_eq!(ours.payload.len(), theirs.payload_len);
            assert_eq!(ours.payload, packet.payload());
            assert!(packet.verify_checksum());
        }
        (Err(Malformed::Ipv4Checksum), Ok((_, packet))) => {
            assert!(!smoltcp_verifies() || !packet.verify_checksum());
        }
        (Err(reason), Ok((accepted, _))) => assert_stricter(reason, &accepted),
        // smoltcp is built without fragments here.
        (Ok(ours), Err(_)) => assert!(ours.header.fragment().is_some(), "{ours:?}"),
        (Err(_), Err(_)) => {}
    }
}

pub(super) fn ipv6(bytes: &[u8]) {
    let theirs =
        Ipv6Packet::new_checked(bytes).and_then(|packet| Ok((Ipv6Repr::parse(&packet)?, packet)));
    match (ipv6::Packet::parse(bytes), theirs) {
        (Ok(ours), Ok((theirs, packet))) => {
            let header = ours.header;
            assert_eq!(header.source, theirs.src_addr);
            assert_eq!(header.destination, theirs.dst_addr);
            assert_eq!(header.hop_limit, theirs.hop_limit);
            assert_eq!(header.traffic_class.0, packet.traffic_class());
            assert_eq!(header.flow_label, packet.flow_label());
            assert_eq!(ours.bytes.len(), 40 + theirs.payload_len);
            // smoltcp reads extension headers in its interface.
            if ours.payload.len() == theirs.payload_len {
                assert_eq!(header.protocol.0, u8::from(theirs.next_header));
                assert_eq!(ours.payload, packet.payload());
            }
        }
        (Err(reason), Ok((accepted, _))) => {
            if !is_about_extensions(reason) {
                assert_stricter(reason, &accepted);
            }
        }
        (Ok(ours), Err(error)) => panic!("{ours:?}, but smoltcp says {error}"),
        (Err(_), Err(_)) => {}
    }
}

/// smoltcp reads extension headers in its interface.
fn is_about_extensions(reason: Malformed) -> bool {
    use Malformed::{
        Ipv6ExtensionLimit, Ipv6ExtensionTruncated, Ipv6Fragment, Ipv6FragmentHeaders,
        Ipv6FragmentTwice, Ipv6HopByHop, Ipv6Option, Ipv6Routing, Ipv6RoutingType0,
        Ipv6UnknownOption,
    };
    matches!(
        reason,
        Ipv6ExtensionTruncated
            | Ipv6ExtensionLimit
            | Ipv6HopByHop
            | Ipv6Option
            | Ipv6UnknownOption
            | Ipv6RoutingType0
            | Ipv6Routing
            | Ipv6Fragment
            | Ipv6FragmentTwice
            | Ipv6FragmentHeaders
    )
}
