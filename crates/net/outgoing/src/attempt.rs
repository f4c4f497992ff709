//! The SYN of a program, as it was read from the TUN device.

use std::net::SocketAddr;

use saiga_wire::SeqNum;
use saiga_wire::frame::{Network, Packet, Transport};
use saiga_wire::ip::Addresses;
use saiga_wire::offload::ChecksumState;
use saiga_wire::tcp::Flags;

/// A connection that a program asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attempt {
    /// The program's address and port.
    pub local: SocketAddr,
    /// Those of the remote host.
    pub remote: SocketAddr,
    pub(crate) seq: SeqNum,
    packet: Box<[u8]>,
}

impl Attempt {
    /// Reads an IP packet; `None` if it is not a SYN.
    pub(crate) fn parse(packet: &[u8]) -> Option<Self> {
        let parsed = Packet::parse(packet, ChecksumState::Verify).ok()?;
        let Transport::Tcp(segment) = parsed.transport else {
            return None;
        };
        let header = segment.header;
        let is_first = header.flags.contains(Flags::SYN) && header.ack.is_none();
        let addresses: Addresses = match parsed.network {
            Network::V4(header) => header.addresses(),
            Network::V6(header) => header.addresses(),
        };
        is_first.then(|| Self {
            local: SocketAddr::new(addresses.source(), header.ports.source),
            remote: SocketAddr::new(addresses.destination(), header.ports.destination),
            seq: header.seq,
            packet: packet.into(),
        })
    }

    /// The packet of the SYN.
    pub(crate) fn packet(&self) -> &[u8] {
        &self.packet
    }
}
