//! Checksums that the sender on this host has not formed.
//!
//! Kernel: Documentation/networking/checksum-offloads.rst. A kernel sends over a veth pair without
//! forming the checksum of a segment (`CHECKSUM_PARTIAL`); the field holds the sum of the pseudo
//! header. XDP shows the bytes, but not this mark. So a segment whose field holds exactly that sum
//! counts as one whose checksum is not formed. Only interfaces of the driver veth are treated so:
//! from a real wire, such a segment is damaged.

use std::net::{Ipv4Addr, Ipv6Addr};

use saiga_wire::ethernet::{EtherType, HEADER_BYTES};
use saiga_wire::ip::Addresses;
use saiga_wire::tcp;
use saiga_wire::virtio::ChecksumPlace;

const TAG_BYTES: usize = 4;

/// The driver whose frames have such checksums.
pub(super) const DRIVER: &str = "veth";

/// The place of the checksum, if it is not formed. The frame is one that the XDP program redirects:
/// at most one tag, and no options or extension headers.
pub(super) fn place(frame: &[u8]) -> Option<ChecksumPlace> {
    let tags = if short(frame, 12)? == EtherType::VLAN.0 {
        TAG_BYTES
    } else {
        0
    };
    let packet_at = tags + HEADER_BYTES;
    let packet = frame.get(packet_at..)?;
    let (addresses, header_bytes, length) = match EtherType(short(frame, packet_at - 2)?) {
        EtherType::IPV4 => {
            let total = usize::from(short(packet, 2)?);
            (v4(packet)?, 20, total.checked_sub(20)?)
        }
        EtherType::IPV6 => (v6(packet)?, 40, usize::from(short(packet, 4)?)),
        _ => return None,
    };
    let field = short(packet, header_bytes + tcp::CHECKSUM_AT)?;
    let is_partial = field == tcp::pseudo_header(&addresses, length).value();
    is_partial.then_some(ChecksumPlace {
        start: u16::try_from(packet_at + header_bytes).ok()?,
        offset: u16::try_from(tcp::CHECKSUM_AT).ok()?,
    })
}

fn short(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn v4(packet: &[u8]) -> Option<Addresses> {
    let address = |at| Some(Ipv4Addr::from(*packet.get(at..)?.first_chunk::<4>()?));
    Some(Addresses::V4 {
        source: address(12)?,
        destination: address(16)?,
    })
}

fn v6(packet: &[u8]) -> Option<Addresses> {
    let address = |at| Some(Ipv6Addr::from(*packet.get(at..)?.first_chunk::<16>()?));
    Some(Addresses::V6 {
        source: address(8)?,
        destination: address(24)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A segment without data from 10.0.0.1 to 10.0.0.2; the sum of the pseudo header is 0x141d.
    fn v4(checksum: u16) -> Vec<u8> {
        let mut frame = vec![0; 12];
        frame.extend([8, 0, 0x45, 0, 0, 40, 0, 0, 0x40, 0, 64, 6, 0, 0]);
        frame.extend([10, 0, 0, 1, 10, 0, 0, 2]);
        frame.extend([0; 16]);
        frame.extend(checksum.to_be_bytes());
        frame.extend([0; 2]);
        frame
    }

    /// The same from fd00::1 to fd00::2; the sum is 0xfa1e.
    fn v6(checksum: u16) -> Vec<u8> {
        let mut frame = vec![0; 12];
        frame.extend([0x86, 0xdd, 0x60, 0, 0, 0, 0, 20, 6, 64]);
        for last in [1, 2] {
            frame.extend([0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, last]);
        }
        frame.extend([0; 16]);
        frame.extend(checksum.to_be_bytes());
        frame.extend([0; 2]);
        frame
    }

    fn tagged(mut frame: Vec<u8>) -> Vec<u8> {
        drop(frame.splice(12..12, [0x81, 0, 0, 5]));
        frame
    }

    #[test]
    fn the_sum_of_the_pseudo_header_is_not_a_checksum() {
        let at = |start| Some(ChecksumPlace { start, offset: 16 });
        for (name, frame, expected) in [
            ("IPv4", v4(0x141d), at(34)),
            ("IPv4, formed", v4(0xebe2), None),
            ("IPv4, tagged", tagged(v4(0x141d)), at(38)),
            ("IPv4, padded", [v4(0x141d), vec![7; 6]].concat(), at(34)),
            ("IPv6", v6(0xfa1e), at(54)),
            ("IPv6, formed", v6(0x05e1), None),
            ("IPv6, tagged", tagged(v6(0xfa1e)), at(58)),
        ] {
            assert_eq!(place(&frame), expected, "{name}");
        }
    }

    #[test]
    fn short_frames_have_no_checksum() {
        for frame in [v4(0x141d), v6(0xfa1e), tagged(v6(0xfa1e))] {
            for length in 0..frame.len() - 2 {
                assert_eq!(place(&frame[..length]), None, "{length}");
            }
        }
    }
}
