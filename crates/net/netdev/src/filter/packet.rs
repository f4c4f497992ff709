//! The headers that filters look at.

use std::net::{IpAddr, Ipv4Addr};

pub(super) use etherparse::ip_number::{ICMP, IPV6_ICMP as ICMP6, TCP, UDP};
use etherparse::{
    ArpPacketSlice, IpNumber, LaxIpPayloadSlice, LaxNetSlice, LaxSlicedPacket, ether_type,
};

use crate::device::Link;

/// What is known about a frame. A field that cannot be read is `None`.
#[derive(Debug, PartialEq, Eq, Default)]
pub(super) struct Packet {
    pub(super) network: Option<Network>,
    /// Source and destination; of ARP for IPv4, sender and target.
    pub(super) addresses: Option<[IpAddr; 2]>,
    /// Protocol of the IP payload.
    pub(super) transport: Option<IpNumber>,
    /// Source and destination port of TCP and UDP; `None` for fragments.
    pub(super) ports: Option<[u16; 2]>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Network {
    Ip,
    Ip6,
    Arp,
}

impl Packet {
    pub(super) fn read(frame: &[u8], link: Link) -> Self {
        let sliced = match link {
            Link::Ethernet => LaxSlicedPacket::from_ethernet(frame).ok(),
            Link::Ip => LaxSlicedPacket::from_ip(frame).ok(),
        };
        match sliced.and_then(|sliced| sliced.net) {
            Some(LaxNetSlice::Ipv4(packet)) => {
                let header = packet.header();
                let addresses = [header.source_addr(), header.destination_addr()];
                Self::of_ip(Network::Ip, addresses.map(IpAddr::V4), packet.payload())
            }
            Some(LaxNetSlice::Ipv6(packet)) => {
                let header = packet.header();
                let addresses = [header.source_addr(), header.destination_addr()];
                Self::of_ip(Network::Ip6, addresses.map(IpAddr::V6), packet.payload())
            }
            Some(LaxNetSlice::Arp(packet)) => Self {
                network: Some(Network::Arp),
                addresses: arp_addresses(&packet),
                ..Self::default()
            },
            None => Self::default(),
        }
    }

    fn of_ip(network: Network, addresses: [IpAddr; 2], payload: &LaxIpPayloadSlice<'_>) -> Self {
        let has_ports = !payload.fragmented && [TCP, UDP].contains(&payload.ip_number);
        let first = payload.payload.first_chunk::<4>();
        let ports = first.filter(|_| has_ports).map(|&[a, b, c, d]| {
            [u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d])]
        });
        Self {
            network: Some(network),
            addresses: Some(addresses),
            transport: Some(payload.ip_number),
            ports,
        }
    }
}

/// Addresses of sender and target, if they are of IPv4.
fn arp_addresses(packet: &ArpPacketSlice<'_>) -> Option<[IpAddr; 2]> {
    if packet.proto_addr_type() != ether_type::IPV4 {
        return None;
    }
    let address = |bytes: &[u8]| {
        let octets: [u8; 4] = bytes.try_into().ok()?;
        Some(IpAddr::V4(Ipv4Addr::from(octets)))
    };
    Some([
        address(packet.sender_protocol_addr())?,
        address(packet.target_protocol_addr())?,
    ])
}
