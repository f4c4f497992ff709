//! ARP for IPv4 over Ethernet.
//!
//! Spec: RFC 826; hardware type 1, protocol type 0x0800. The neighbour table and its rules are not
//! here.

use crate::Malformed;
use crate::bytes::{get_ipv4, put};
use crate::emit::{EmitError, room_for};
use crate::ethernet::Mac;
use core::net::Ipv4Addr;

/// Length of a packet.
pub const PACKET_BYTES: usize = 28;
/// Ethernet, IPv4, addresses of 6 and 4 bytes.
const FORMAT: [u8; 6] = [0, 1, 8, 0, 6, 4];

/// Kind of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Operation {
    /// Asks for the MAC address of the target.
    Request,
    /// Answers with the MAC address of the sender.
    Reply,
}

/// An ARP packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Packet {
    /// Request or reply.
    pub operation: Operation,
    /// MAC address of the sender.
    pub sender_mac: Mac,
    /// IPv4 address of the sender; 0.0.0.0 in a probe (RFC 5227 §2.1.1).
    pub sender: Ipv4Addr,
    /// MAC address of the target; ignored in a request.
    pub target_mac: Mac,
    /// IPv4 address of the target.
    pub target: Ipv4Addr,
}

impl Packet {
    /// Reads a packet. Further bytes are padding.
    pub fn parse(bytes: &[u8]) -> Result<Self, Malformed> {
        let bytes = bytes
            .first_chunk::<PACKET_BYTES>()
            .ok_or(Malformed::ArpTruncated)?;
        if bytes[..6] != FORMAT {
            return Err(Malformed::ArpFormat);
        }
        let operation = match [bytes[6], bytes[7]] {
            [0, 1] => Operation::Request,
            [0, 2] => Operation::Reply,
            _ => return Err(Malformed::ArpOperation),
        };
        let sender_mac = mac(bytes, 8);
        if sender_mac.is_group() {
            return Err(Malformed::ArpSender);
        }
        Ok(Self {
            operation,
            sender_mac,
            sender: get_ipv4(bytes, 14),
            target_mac: mac(bytes, 18),
            target: get_ipv4(bytes, 24),
        })
    }

    /// Writes the packet to the front of `buffer`; returns its length.
    pub fn emit(&self, buffer: &mut [u8]) -> Result<usize, EmitError> {
        let bytes = room_for::<PACKET_BYTES>(buffer)?;
        let operation = match self.operation {
            Operation::Request => 1,
            Operation::Reply => 2,
        };
        put(bytes, 0, FORMAT);
        put(bytes, 6, [0, operation]);
        put(bytes, 8, self.sender_mac.0);
        put(bytes, 14, self.sender.octets());
        put(bytes, 18, self.target_mac.0);
        put(bytes, 24, self.target.octets());
        Ok(PACKET_BYTES)
    }
}

fn mac(bytes: &[u8; PACKET_BYTES], at: usize) -> Mac {
    let mut octets = [0; 6];
    octets.copy_from_slice(&bytes[at..at + 6]);
    Mac(octets)
}

#[cfg(test)]
mod tests {
    use super::*;

    const REPLY: [u8; PACKET_BYTES] = [
        0x00, 0x01, 0x08, 0x00, 6, 4, 0x00, 0x02, // Ethernet, IPv4, reply
        0x02, 0x00, 0x00, 0x00, 0x00, 0x0a, 192, 0, 2, 1, // sender
        0x02, 0x00, 0x00, 0x00, 0x00, 0x0b, 192, 0, 2, 2, // target
    ];

    #[test]
    fn packets_are_read_and_written() {
        let mut packet = Packet {
            operation: Operation::Reply,
            sender_mac: Mac([2, 0, 0, 0, 0, 10]),
            sender: Ipv4Addr::new(192, 0, 2, 1),
            target_mac: Mac([2, 0, 0, 0, 0, 11]),
            target: Ipv4Addr::new(192, 0, 2, 2),
        };
        let mut bytes = REPLY;
        let mut padded = [0; 46];
        padded[..PACKET_BYTES].copy_from_slice(&REPLY);
        assert_eq!(Packet::parse(&padded), Ok(packet));
        let mut buffer = [0; PACKET_BYTES];
        assert_eq!(packet.emit(&mut buffer), Ok(PACKET_BYTES));
        assert_eq!(buffer, bytes);

        packet.operation = Operation::Request;
        bytes[7] = 1;
        assert_eq!(Packet::parse(&bytes), Ok(packet));
        assert_eq!(packet.emit(&mut buffer), Ok(PACKET_BYTES));
        assert_eq!(buffer, bytes);
        let small = packet.emit(&mut buffer[..27]);
        assert_eq!(small, Err(EmitError::BufferTooSmall { needed: 28 }));
    }

    #[test]
    fn bad_packets_have_reasons() {
        let parse = |at: usize, byte| {
            let mut bytes = REPLY;
            bytes[at] = byte;
            Packet::parse(&bytes)
        };
        for (name, at, byte, reason) in [
            ("hardware type", 1, 6, Malformed::ArpFormat),
            ("protocol type", 2, 0x86, Malformed::ArpFormat),
            ("length of MAC addresses", 4, 8, Malformed::ArpFormat),
            ("length of IP addresses", 5, 16, Malformed::ArpFormat),
            ("operation 0", 7, 0, Malformed::ArpOperation),
            ("operation 258", 6, 1, Malformed::ArpOperation),
            ("sender is a group", 8, 0x03, Malformed::ArpSender),
        ] {
            assert_eq!(parse(at, byte), Err(reason), "{name}");
        }
        let cut = Packet::parse(&REPLY[..27]);
        assert_eq!(cut, Err(Malformed::ArpTruncated));
    }
}
