//! Writes frames into a caller's buffer.

#[cfg(test)]
mod tests;

use super::Network;
use crate::checksum::Sum;
use crate::emit::{EmitError, room};
use crate::ethernet::{self, EtherType};
use crate::ip::Protocol;
use crate::offload::Fill;
use crate::{arp, icmp4, icmp6, ipv4, ipv6, tcp};

/// Writes a frame to the front of a buffer. The types and protocols in the headers of the lower
/// layers are set to suit the layer above; the other fields are written as they are.
#[derive(Debug)]
pub struct Writer<'a> {
    /// The Ethernet header; `None` for devices without a link layer.
    pub link: Option<&'a ethernet::Header>,
    /// Receives the frame.
    pub buffer: &'a mut [u8],
}

/// The payload of a TCP segment, as the checksum needs it.
#[derive(Debug, Clone, Copy)]
pub enum Payload<'a> {
    /// Slices that follow each other.
    Slices(&'a [&'a [u8]]),
    /// A payload whose sum is known, or whose sum is not needed because a device forms the
    /// checksum.
    Summed {
        /// Length of the payload.
        length: usize,
        /// Sum of the payload.
        sum: Sum,
    },
}

/// Offsets of the layers in a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Layout {
    /// Offset of the IP header: length of the Ethernet header.
    pub network_at: usize,
    /// Offset of the TCP header.
    pub transport_at: usize,
    /// Offset of the payload: length of all headers.
    pub payload_at: usize,
}

impl Payload<'_> {
    /// Length of the payload.
    #[inline]
    #[must_use]
    pub fn len_bytes(&self) -> usize {
        match self {
            Self::Slices(slices) => slices
                .iter()
                .fold(0, |length, slice| length.saturating_add(slice.len())),
            Self::Summed { length, .. } => *length,
        }
    }

    #[inline]
    fn sum(&self) -> Sum {
        match self {
            Self::Slices(slices) => Sum::of_slices(slices),
            Self::Summed { sum, .. } => *sum,
        }
    }
}

impl Writer<'_> {
    /// Writes the headers of a TCP segment. The payload is not copied: it follows the headers on
    /// the network, and may be in other buffers.
    ///
    /// A payload above the connection's MSS makes a super-segment, which the device divides. The IP
    /// header has the length of the super-segment, and `fill` must be the sum that the device
    /// expects.
    #[inline]
    pub fn tcp_headers(
        &mut self,
        network: &Network,
        header: &tcp::Header,
        payload: Payload<'_>,
        fill: Fill,
    ) -> Result<Layout, EmitError> {
        let header_bytes = header.len_bytes();
        let segment_bytes = header_bytes.saturating_add(payload.len_bytes());
        let network = with_protocol(network, Protocol::TCP);
        let (layout, tcp) = self.lower(&network, segment_bytes, header_bytes)?;
        let sum = header.fill(tcp);
        let addresses = network.addresses();
        let field = match fill {
            Fill::Checksum => tcp::pseudo_header(&addresses, segment_bytes)
                .then(sum)
                .then(payload.sum())
                .checksum(),
            Fill::PseudoHeader => tcp::pseudo_header(&addresses, segment_bytes).value(),
            Fill::PseudoHeaderWithoutLength => tcp::pseudo_header(&addresses, 0).value(),
        };
        tcp[tcp::CHECKSUM_AT..][..2].copy_from_slice(&field.to_be_bytes());
        if let (Fill::PseudoHeaderWithoutLength, Network::V4(_)) = (fill, network) {
            self.buffer[layout.network_at + ipv4::CHECKSUM_AT..][..2].fill(0);
        }
        Ok(layout)
    }

    /// Writes a TCP segment with the slices as payload; returns the frame's length.
    pub fn tcp(
        &mut self,
        network: &Network,
        header: &tcp::Header,
        payload: &[&[u8]],
        fill: Fill,
    ) -> Result<usize, EmitError> {
        let slices = Payload::Slices(payload);
        let link_bytes = self.link.map_or(0, ethernet::Header::len_bytes);
        let headers_bytes = link_bytes + network.len_bytes() + header.len_bytes();
        let length = slices.len_bytes().saturating_add(headers_bytes);
        room(self.buffer, length)?;
        let layout = self.tcp_headers(network, header, slices, fill)?;
        let mut at = layout.payload_at;
        for slice in payload {
            self.buffer[at..][..slice.len()].copy_from_slice(slice);
            at += slice.len();
        }
        Ok(length)
    }

    /// Writes an ICMP message in an IPv4 packet; returns the frame's length.
    pub fn icmp4(
        &mut self,
        header: &ipv4::Header,
        message: &icmp4::Message<'_>,
    ) -> Result<usize, EmitError> {
        let length = message.len_bytes();
        let network = with_protocol(&Network::V4(*header), Protocol::ICMP);
        let (layout, icmp) = self.lower(&network, length, length)?;
        message.emit(icmp)?;
        Ok(layout.payload_at)
    }

    /// Writes an ICMPv6 message in an IPv6 packet; returns the frame's length.
    pub fn icmp6(
        &mut self,
        header: &ipv6::Header,
        message: &icmp6::Message<'_>,
    ) -> Result<usize, EmitError> {
        let length = message.len_bytes();
        let network = with_protocol(&Network::V6(*header), Protocol::ICMP6);
        let (layout, icmp) = self.lower(&network, length, length)?;
        message.emit(&header.addresses(), icmp)?;
        Ok(layout.payload_at)
    }

    /// Writes an ARP packet; returns the frame's length.
    pub fn arp(&mut self, packet: &arp::Packet) -> Result<usize, EmitError> {
        let at = self.link.map_or(0, ethernet::Header::len_bytes);
        room(self.buffer, at + arp::PACKET_BYTES)?;
        self.link(EtherType::ARP)?;
        Ok(at + packet.emit(&mut self.buffer[at..])?)
    }

    /// Writes the Ethernet header, if there is one.
    #[inline]
    fn link(&mut self, ether_type: EtherType) -> Result<(), EmitError> {
        if let Some(link) = self.link {
            let link = ethernet::Header {
                ether_type,
                ..*link
            };
            link.emit(self.buffer)?;
        }
        Ok(())
    }

    /// Writes the headers below a transport of `transport_bytes`. Returns the part of the buffer
    /// for the first `emitted_bytes` of the transport.
    #[inline]
    fn lower(
        &mut self,
        network: &Network,
        transport_bytes: usize,
        emitted_bytes: usize,
    ) -> Result<(Layout, &mut [u8]), EmitError> {
        let network_at = self.link.map_or(0, ethernet::Header::len_bytes);
        let transport_at = network_at + network.len_bytes();
        let payload_at = transport_at + emitted_bytes;
        room(self.buffer, payload_at)?;
        self.link(network.ether_type())?;
        network.emit(transport_bytes, &mut self.buffer[network_at..])?;
        let layout = Layout {
            network_at,
            transport_at,
            payload_at,
        };
        Ok((layout, &mut self.buffer[transport_at..payload_at]))
    }
}

/// The header of a packet that carries `protocol`.
#[inline]
fn with_protocol(network: &Network, protocol: Protocol) -> Network {
    match *network {
        Network::V4(header) => Network::V4(ipv4::Header { protocol, ..header }),
        Network::V6(header) => Network::V6(ipv6::Header { protocol, ..header }),
    }
}
