//! Checksums that a device forms or verifies.
//!
//! A device that forms the checksum of a TCP segment sums the bytes from the TCP header to the end
//! of the packet. The device does not know the pseudo header, so the sender stores the sum of the
//! pseudo header in the checksum field. For super-segments, virtio-net expects the same; drivers of
//! DPDK expect a sum without the length, because each of the divided segments has another length.

use crate::Malformed;
use crate::checksum::Sum;

/// State of the TCP checksum of a received packet, according to the driver.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ChecksumState {
    /// Unknown: the checksum must be verified.
    Verify,
    /// The device verified the checksum: `VIRTIO_NET_HDR_F_DATA_VALID`, DPDK's
    /// `RTE_MBUF_F_RX_L4_CKSUM_GOOD`.
    Trusted,
    /// Not formed yet, because the packet comes from this host: the field holds the sum of the
    /// pseudo header (`VIRTIO_NET_HDR_F_NEEDS_CSUM`). [`complete`] forms the checksum.
    Partial,
}

/// Content of the checksum field of an emitted TCP segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Fill {
    /// The checksum.
    Checksum,
    /// The sum of the pseudo header: for `VIRTIO_NET_HDR_F_NEEDS_CSUM`, also with segmentation, and
    /// for DPDK's `RTE_MBUF_F_TX_TCP_CKSUM`.
    PseudoHeader,
    /// The sum of the pseudo header with a length of 0: for DPDK's `RTE_MBUF_F_TX_TCP_SEG`. The
    /// checksum of the IPv4 header is 0, because the device forms that checksum for each segment.
    PseudoHeaderWithoutLength,
}

/// Forms the checksum of a packet whose field holds the sum of the pseudo header.
///
/// The checksum covers the bytes from `start` (`csum_start`) to the end of `packet`, and its field
/// is `offset` bytes after `start` (`csum_offset`). A field outside the packet is refused with
/// [`Malformed::OffloadHeader`].
pub fn complete(packet: &mut [u8], start: usize, offset: usize) -> Result<(), Malformed> {
    let covered = packet.get_mut(start..).ok_or(Malformed::OffloadHeader)?;
    let checksum = Sum::of(covered).checksum();
    covered
        .get_mut(offset..)
        .and_then(|rest| rest.first_chunk_mut())
        .map(|field| *field = checksum.to_be_bytes())
        .ok_or(Malformed::OffloadHeader)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_checksum_is_completed_in_place() {
        // The bytes of the example in RFC 1071 §3, with the field in front and 0x0001 as the sum of
        // a pseudo header.
        let mut packet = [0xaa, 0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7];
        assert_eq!(complete(&mut packet, 1, 0), Ok(()));
        assert_eq!(
            packet,
            [0xaa, 0x22, 0x0d, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7]
        );
    }

    #[test]
    fn the_field_lies_in_the_packet() {
        let mut packet = [7; 8];
        for (start, offset, valid) in [
            (6, 0, true),
            (0, 6, true),
            (7, 0, false),
            (0, 7, false),
            (9, 0, false),
            (4, usize::MAX, false),
            (usize::MAX, 1, false),
        ] {
            let found = complete(&mut packet.clone(), start, offset);
            assert_eq!(found.is_ok(), valid, "{start} + {offset}");
        }
        assert_eq!(complete(&mut packet, 8, 0), Err(Malformed::OffloadHeader));
    }
}
