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
        let (sliced, network) = match link {
            Link::Ethernet => {
                let sliced = LaxSlicedPacket::from_ethernet(frame).ok();
                let network = sliced.as_ref().and_then(network_of_type);
                (sliced, network)
            }
            Link::Ip => (
                LaxSlicedPacket::from_ip(frame).ok(),
                network_of_version(frame),
            ),
        };
        let headers = match sliced.and_then(|sliced| sliced.net) {
            Some(LaxNetSlice::Ipv4(packet)) => {
                let header = packet.header();
                let addresses = [header.source_addr(), header.destination_addr()];
                Self::of_ip(addresses.map(IpAddr::V4), packet.payload())
            }
            Some(LaxNetSlice::Ipv6(packet)) => {
                let header = packet.header();
                let addresses = [header.source_addr(), header.destination_addr()];
                Self::of_ip(addresses.map(IpAddr::V6), packet.payload())
            }
            Some(LaxNetSlice::Arp(packet)) => Self {
                addresses: arp_addresses(&packet),
                ..Self::default()
            },
            None => Self::default(),
        };
        Self { network, ..headers }
    }

    fn of_ip(addresses: [IpAddr; 2], payload: &LaxIpPayloadSlice<'_>) -> Self {
        let has_ports = !payload.fragmented && [TCP, UDP].contains(&payload.ip_number);
        let first = payload.payload.first_chunk::<4>();
        let ports = first
            .filter(|_| has_ports)
            .map(|&[a, b, c, d]| [u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d])]);
        Self {
            network: None,
            addresses: Some(addresses),
            transport: Some(payload.ip_number),
            ports,
        }
    }
}

/// What the EtherType behind the tags says.
fn network_of_type(sliced: &LaxSlicedPacket<'_>) -> Option<Network> {
    match sliced.ether_payload()?.ether_type {
        ether_type::IPV4 => Some(Network::Ip),
        ether_type::IPV6 => Some(Network::Ip6),
        ether_type::ARP => Some(Network::Arp),
        _ => None,
    }
}

/// What the version of a packet says.
fn network_of_version(packet: &[u8]) -> Option<Network> {
    match packet.first()? >> 4 {
        4 => Some(Network::Ip),
        6 => Some(Network::Ip6),
        _ => None,
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
