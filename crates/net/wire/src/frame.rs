//! Frames: all layers of a received frame are read in one pass, and [`Writer`] writes frames.
//!
//! A frame is an Ethernet frame, or an IP packet alone on devices without a link layer (TUN).
//! Layers are plain values; payloads are slices of the frame. Of the transports, TCP and ICMP are
//! read; the bytes of others are handed out.
//!
//! The parsers of IPv4 and TCP are always inlined: otherwise each layer copies its fields from one
//! place in memory to another. A caller that needs few of the fields calls `parse` of each layer
//! instead, because a [`Frame`] is written as a whole.

#[cfg(test)]
mod samples;
#[cfg(test)]
mod tests;
mod writer;

pub use writer::{Layout, Payload, Writer};

use crate::emit::EmitError;
use crate::ethernet::{self, EtherType};
use crate::ip::{Addresses, Fragment, Protocol, TrafficClass};
use crate::offload::ChecksumState;
use crate::{Malformed, arp, icmp4, icmp6, ipv4, ipv6, tcp};

/// A received Ethernet frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frame<'a> {
    /// The Ethernet header.
    pub link: ethernet::Header,
    /// Payload of the frame.
    pub content: Content<'a>,
}

/// Payload of an Ethernet frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Content<'a> {
    /// An ARP packet.
    Arp(arp::Packet),
    /// An IP packet.
    Ip(Packet<'a>),
    /// The payload of a frame of another type, padding included.
    Other(&'a [u8]),
}

/// A received IP packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Packet<'a> {
    /// The IP header.
    pub network: Network,
    /// Payload of the packet.
    pub transport: Transport<'a>,
    /// The packet without padding of the frame, to be quoted in ICMP errors.
    pub bytes: &'a [u8],
}

/// An IP header.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Network {
    /// An IPv4 header.
    V4(ipv4::Header),
    /// An IPv6 header.
    V6(ipv6::Header),
}

/// Payload of an IP packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transport<'a> {
    /// A TCP segment. Its checksum is right, or trusted.
    Tcp(tcp::Segment<'a>),
    /// An ICMP message in an IPv4 packet.
    Icmp4(icmp4::Message<'a>),
    /// An ICMPv6 message in an IPv6 packet.
    Icmp6(icmp6::Message<'a>),
    /// A fragment of a packet, and its place.
    Fragment(Fragment, &'a [u8]),
    /// Payload of the protocol in the IP header.
    Other(&'a [u8]),
}

impl<'a> Frame<'a> {
    /// Reads an Ethernet frame. `state` decides whether the checksum of a TCP segment is verified.
    #[inline]
    pub fn parse(frame: &'a [u8], state: ChecksumState) -> Result<Self, Malformed> {
        let (link, payload) = ethernet::Header::parse(frame)?;
        let content = match link.ether_type {
            EtherType::IPV4 => Content::Ip(Packet::parse_ipv4(payload, state)?),
            EtherType::IPV6 => Content::Ip(Packet::parse_ipv6(payload, state)?),
            EtherType::ARP => Content::Arp(arp::Packet::parse(payload)?),
            _ => Content::Other(payload),
        };
        Ok(Self { link, content })
    }
}

impl<'a> Packet<'a> {
    /// Reads an IP packet of either version.
    pub fn parse(packet: &'a [u8], state: ChecksumState) -> Result<Self, Malformed> {
        match packet.first().map(|first| first >> 4) {
            Some(6) => Self::parse_ipv6(packet, state),
            _ => Self::parse_ipv4(packet, state),
        }
    }

    /// Reads an IP packet that was reassembled: the header of the first fragment, emitted by
    /// [`Network::emit`], and the payloads of all fragments. The checksum is verified, because a
    /// device sees fragments only. Neighbour discovery is refused (RFC 6980 §5).
    pub fn parse_reassembled(packet: &'a [u8]) -> Result<Self, Malformed> {
        let whole = Self::parse(packet, ChecksumState::Verify)?;
        if let Transport::Icmp6(icmp6::Message::Ndp(_)) = whole.transport {
            return Err(Malformed::NdpFragment);
        }
        Ok(whole)
    }

    /// Reads an IPv4 packet.
    #[inline(always)]
    pub fn parse_ipv4(packet: &'a [u8], state: ChecksumState) -> Result<Self, Malformed> {
        let packet = ipv4::Packet::parse(packet)?;
        let header = packet.header;
        let transport = match (header.fragment(), header.protocol) {
            (Some(fragment), _) => Transport::Fragment(fragment, packet.payload),
            (None, Protocol::TCP) => Transport::Tcp(tcp::Segment::parse_in(
                &header.addresses(),
                packet.payload,
                state,
            )?),
            (None, Protocol::ICMP) => Transport::Icmp4(icmp4::Message::parse(packet.payload)?),
            _ => Transport::Other(packet.payload),
        };
        Ok(Self {
            network: Network::V4(header),
            transport,
            bytes: packet.bytes,
        })
    }

    /// Reads an IPv6 packet.
    #[inline(always)]
    pub fn parse_ipv6(packet: &'a [u8], state: ChecksumState) -> Result<Self, Malformed> {
        let packet = ipv6::Packet::parse(packet)?;
        let header = packet.header;
        let transport = match (packet.fragment, header.protocol) {
            (Some(fragment), _) => Transport::Fragment(fragment, packet.payload),
            (None, Protocol::TCP) => Transport::Tcp(tcp::Segment::parse_in(
                &header.addresses(),
                packet.payload,
                state,
            )?),
            (None, Protocol::ICMP6) => Transport::Icmp6(icmp6::Message::parse(&packet)?),
            _ => Transport::Other(packet.payload),
        };
        Ok(Self {
            network: Network::V6(header),
            transport,
            bytes: packet.bytes,
        })
    }
}

impl Network {
    /// Source and destination.
    #[inline]
    #[must_use]
    pub const fn addresses(&self) -> Addresses {
        match self {
            Self::V4(header) => header.addresses(),
            Self::V6(header) => header.addresses(),
        }
    }

    /// Protocol of the payload.
    #[inline]
    #[must_use]
    pub const fn protocol(&self) -> Protocol {
        match self {
            Self::V4(header) => header.protocol,
            Self::V6(header) => header.protocol,
        }
    }

    /// DSCP and ECN.
    #[inline]
    #[must_use]
    pub const fn traffic_class(&self) -> TrafficClass {
        match self {
            Self::V4(header) => header.traffic_class,
            Self::V6(header) => header.traffic_class,
        }
    }

    /// Length of the header.
    #[inline]
    #[must_use]
    pub const fn len_bytes(&self) -> usize {
        match self {
            Self::V4(_) => ipv4::HEADER_BYTES,
            Self::V6(_) => ipv6::HEADER_BYTES,
        }
    }

    /// Writes the header of a packet with `payload_bytes` to the front of `buffer`; returns the
    /// header's length.
    #[inline]
    pub fn emit(&self, payload_bytes: usize, buffer: &mut [u8]) -> Result<usize, EmitError> {
        match self {
            Self::V4(header) => header.emit(payload_bytes, buffer),
            Self::V6(header) => header.emit(payload_bytes, buffer),
        }
    }

    #[inline]
    const fn ether_type(&self) -> EtherType {
        match self {
            Self::V4(_) => EtherType::IPV4,
            Self::V6(_) => EtherType::IPV6,
        }
    }
}
