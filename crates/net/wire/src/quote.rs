//! The packet that an ICMP error quotes.
//!
//! Spec: RFC 792 (header and 8 bytes of payload), RFC 1812 §4.3.2.3, RFC 4443 §2.4 c. Another host
//! wrote the quote, so that all of it is a claim: RFC 5927 §4 says how TCP checks the claim.

use crate::ip::{Addresses, Ports, Protocol};
use crate::{SeqNum, ipv4, ipv6};

/// What a quote says of the packet, up to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Quoted {
    /// Addresses of the packet: its source is the host that receives the error.
    pub addresses: Addresses,
    /// Protocol of the packet.
    pub protocol: Protocol,
    /// Ports of a TCP segment or UDP datagram, if the quote holds them.
    pub ports: Option<Ports>,
    /// Sequence number of a TCP segment, if the quote holds it.
    pub seq: Option<SeqNum>,
}

impl Quoted {
    /// Reads the front of an IPv4 packet. Neither its checksum nor its length are checked: routers
    /// change the header, and cut the packet.
    #[must_use]
    pub fn of_ipv4(bytes: &[u8]) -> Option<Self> {
        let (header, payload) = ipv4::quoted(bytes)?;
        Some(Self::new(header.addresses(), header.protocol, payload))
    }

    /// Reads the front of an IPv6 packet.
    #[must_use]
    pub fn of_ipv6(bytes: &[u8]) -> Option<Self> {
        let (header, payload) = ipv6::quoted(bytes)?;
        Some(Self::new(header.addresses(), header.protocol, payload))
    }

    fn new(addresses: Addresses, protocol: Protocol, payload: &[u8]) -> Self {
        let has_ports = matches!(protocol, Protocol::TCP | Protocol::UDP);
        let ports = payload.first_chunk().filter(|_| has_ports);
        let seq = payload[payload.len().min(4)..]
            .first_chunk()
            .filter(|_| protocol == Protocol::TCP);
        Self {
            addresses,
            protocol,
            ports: ports.map(|&[s, o, d, e]| Ports {
                source: u16::from_be_bytes([s, o]),
                destination: u16::from_be_bytes([d, e]),
            }),
            seq: seq.map(|seq| SeqNum(u32::from_be_bytes(*seq))),
        }
    }
}

#[cfg(test)]
mod tests;
