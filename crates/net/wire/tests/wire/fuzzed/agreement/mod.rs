//! Agreement with `smoltcp::wire`: packets that both accept have the same fields. A packet that
//! only smoltcp accepts has a reason in [`STRICTER`]; one that only this crate accepts is described
//! by the function `is_looser` of its layer.

mod icmp;
mod internet;
mod tcp;

use saiga_wire::ip::{Addresses, Protocol};
use saiga_wire::{Malformed, ethernet, ipv4, ipv6};
use smoltcp::phy::ChecksumCapabilities;
use smoltcp::wire::{EthernetFrame, EthernetRepr, IpAddress, Ipv4Packet};

/// Reasons for which this crate refuses packets that smoltcp accepts.
const STRICTER: [(Malformed, &str); 15] = [
    (
        Malformed::EthernetSource,
        "smoltcp reads group addresses as sources",
    ),
    (
        Malformed::ArpOperation,
        "smoltcp hands out unknown operations",
    ),
    (
        Malformed::ArpSender,
        "smoltcp reads group addresses as senders",
    ),
    (
        Malformed::Ipv4Length,
        "smoltcp reads headers of less than 20 bytes",
    ),
    (
        Malformed::Ipv4Source,
        "smoltcp checks addresses in its interface",
    ),
    (
        Malformed::Ipv4Option,
        "smoltcp skips options without a look",
    ),
    (
        Malformed::Ipv4SourceRoute,
        "smoltcp skips options without a look",
    ),
    (
        Malformed::Ipv6Source,
        "smoltcp checks addresses in its interface",
    ),
    (
        Malformed::Ipv6Destination,
        "smoltcp checks addresses in its interface",
    ),
    (
        Malformed::NdpHopLimit,
        "smoltcp checks the hop limit in its interface",
    ),
    (
        Malformed::NdpOption,
        "smoltcp ignores known options of another length",
    ),
    (
        Malformed::NdpSource,
        "smoltcp does not check the rules of RFC 4861 §7.1",
    ),
    (
        Malformed::NdpDestination,
        "smoltcp does not check the rules of RFC 4861 §7.1",
    ),
    (
        Malformed::NdpTarget,
        "smoltcp checks targets in its interface",
    ),
    (
        Malformed::NdpFragment,
        "smoltcp does not implement RFC 6980",
    ),
];

/// Fails unless `reason` is in [`STRICTER`].
fn assert_stricter(reason: Malformed, accepted: &dyn std::fmt::Debug) {
    let known = STRICTER.iter().any(|(stricter, _)| *stricter == reason);
    assert!(
        known,
        "refused by {reason}, but smoltcp accepts {accepted:?}"
    );
}

/// smoltcp without verification of checksums, which is compared separately.
fn checksums() -> ChecksumCapabilities {
    ChecksumCapabilities::ignored()
}

/// Whether smoltcp verifies checksums: built for a fuzzer, it takes all of them to be right.
fn smoltcp_verifies() -> bool {
    !Ipv4Packet::new_unchecked([0x45; 20]).verify_checksum()
}

fn ip(address: std::net::IpAddr) -> IpAddress {
    address.into()
}

/// Compares the layers of a frame, one after the other.
pub(crate) fn frame(bytes: &[u8]) {
    let ours = ethernet::Header::parse(bytes);
    let theirs = EthernetFrame::new_checked(bytes)
        .and_then(|frame| Ok((EthernetRepr::parse(&frame)?, frame.payload())));
    let (header, payload) = match (ours, theirs) {
        (Err(reason), Ok(accepted)) => {
            // smoltcp does not know VLAN tags: they are payload.
            let tagged = matches!(u16::from(accepted.0.ethertype), 0x8100 | 0x88a8);
            let about_tags = [Malformed::EthernetTruncated, Malformed::EthernetTags];
            if !(tagged && about_tags.contains(&reason)) {
                assert_stricter(reason, &accepted);
            }
            return;
        }
        (Err(_), Err(_)) => return,
        (Ok(_), Err(error)) => panic!("accepted, but smoltcp says {error}"),
        (Ok(ours), Ok((theirs, payload))) => {
            assert_eq!(ours.0.source.0, theirs.src_addr.0);
            assert_eq!(ours.0.destination.0, theirs.dst_addr.0);
            if ours.0.tags == ethernet::Tags::None {
                assert_eq!(ours.0.ether_type.0, u16::from(theirs.ethertype));
                assert_eq!(ours.1, payload);
            }
            ours
        }
    };
    match header.ether_type {
        ethernet::EtherType::ARP => internet::arp(payload),
        ethernet::EtherType::IPV4 => ipv4(payload),
        ethernet::EtherType::IPV6 => ipv6(payload),
        _ => {}
    }
}

fn ipv4(bytes: &[u8]) {
    internet::ipv4(bytes);
    if let Ok(packet) = ipv4::Packet::parse(bytes)
        && packet.header.fragment().is_none()
    {
        match packet.header.protocol {
            Protocol::TCP => tcp::compare(&packet.header.addresses(), packet.payload),
            Protocol::ICMP => icmp::v4(packet.payload),
            _ => {}
        }
    }
}

fn ipv6(bytes: &[u8]) {
    internet::ipv6(bytes);
    if let Ok(packet) = ipv6::Packet::parse(bytes)
        && packet.fragment.is_none()
    {
        match packet.header.protocol {
            Protocol::TCP => tcp::compare(&packet.header.addresses(), packet.payload),
            Protocol::ICMP6 => icmp::v6(&packet),
            _ => {}
        }
    }
}

/// Compares a segment, given without its packet.
pub(crate) fn tcp(segment: &[u8]) {
    let addresses = Addresses::V4 {
        source: std::net::Ipv4Addr::new(192, 0, 2, 1),
        destination: std::net::Ipv4Addr::new(198, 51, 100, 2),
    };
    tcp::compare(&addresses, segment);
}
