//! The packet that an ICMP error quotes.
//!
//! Spec: RFC 792 (header and 8 bytes of payload), RFC 1812 §4.3.2.3, RFC 4443 §2.4 c. Another host
//! wrote the quote, possibly an attacker: RFC 5927 §4 lists the checks that TCP makes.

use crate::ip::{Addresses, Ports, Protocol};
use crate::{SeqNum, ipv4, ipv6};

/// The fields of a quoted packet that a host needs to find the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Quoted {
    /// Addresses of the packet; the source is the host that receives the error.
    pub addresses: Addresses,
    /// Protocol of the packet.
    pub protocol: Protocol,
    /// Ports of a TCP segment or UDP datagram; `None` if the quote ends before the ports.
    pub ports: Option<Ports>,
    /// Sequence number of a TCP segment; `None` if the quote ends before the number.
    pub seq: Option<SeqNum>,
}

impl Quoted {
    /// Reads the first bytes of an IPv4 packet. Checksum and total length are not verified, because
    /// routers change the header and truncate the packet.
    #[must_use]
    pub fn of_ipv4(bytes: &[u8]) -> Option<Self> {
        let (header, payload) = ipv4::quoted(bytes)?;
        Some(Self::new(header.addresses(), header.protocol, payload))
    }

    /// Reads the first bytes of an IPv6 packet.
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
