//! The header in front of packets of virtio-net devices, and of TAP devices with `IFF_VNET_HDR`.
//!
//! Spec: virtio 1.2 §5.1.6. The integers are little-endian, as in virtio 1 and after
//! `TUNSETVNETLE`. Only the first 10 bytes are read and written: `num_buffers` belongs to the
//! driver. Absent on purpose: segmentation of UDP.

use crate::Malformed;
use crate::emit::{EmitError, room_for};
use crate::frame::{Layout, Network};
use crate::offload::ChecksumState;
use crate::tcp;

/// Length of a header without `num_buffers`.
pub const HEADER_BYTES: usize = 10;

const NEEDS_CHECKSUM: u8 = 1;
const DATA_VALID: u8 = 2;
const NOT_SEGMENTED: u8 = 0;
const TCP_V4: u8 = 1;
const TCP_V6: u8 = 4;
const ECN: u8 = 0x80;

/// Offload request of a sent packet, or result for a received packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// The checksum that must be formed (`VIRTIO_NET_HDR_F_NEEDS_CSUM`).
    pub checksum: Option<ChecksumPlace>,
    /// The device verified the checksum (`VIRTIO_NET_HDR_F_DATA_VALID`).
    pub verified: bool,
    /// The packet is a super-segment.
    pub segmentation: Option<Segmentation>,
}

/// Arguments of [`crate::offload::complete`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChecksumPlace {
    /// Offset of the first byte that the checksum covers, up to the end of the packet.
    pub start: u16,
    /// The field, as a distance from `start`.
    pub offset: u16,
}

/// How a super-segment is divided into segments, or was merged from them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Segmentation {
    /// Version of IP.
    pub version: Version,
    /// The first segment has the CWR flag, which the others must not have.
    pub ecn: bool,
    /// Length of all headers.
    pub headers_bytes: u16,
    /// Payload of each segment but the last.
    pub segment_bytes: u16,
}

/// Version of IP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Version {
    /// `VIRTIO_NET_HDR_GSO_TCPV4`.
    V4,
    /// `VIRTIO_NET_HDR_GSO_TCPV6`.
    V6,
}

impl Header {
    /// A header without any request.
    pub const NONE: Self = Self {
        checksum: None,
        verified: false,
        segmentation: None,
    };

    /// The header for a TCP segment written with [`crate::offload::Fill::PseudoHeader`]. With
    /// `segment_bytes`, the device divides the segment into segments of that payload.
    #[must_use]
    pub fn of_tcp(
        network: &Network,
        header: &tcp::Header,
        layout: &Layout,
        segment_bytes: Option<u16>,
    ) -> Self {
        let segmentation = segment_bytes.map(|segment_bytes| Segmentation {
            version: match network {
                Network::V4(_) => Version::V4,
                Network::V6(_) => Version::V6,
            },
            ecn: header.flags.contains(tcp::Flags::CWR),
            headers_bytes: short(layout.payload_at),
            segment_bytes,
        });
        Self {
            checksum: Some(ChecksumPlace {
                start: short(layout.transport_at),
                offset: short(tcp::CHECKSUM_AT),
            }),
            verified: false,
            segmentation,
        }
    }

    /// State of the checksum of a received packet.
    #[inline]
    #[must_use]
    pub const fn checksum_state(&self) -> ChecksumState {
        match (self.checksum, self.verified) {
            (Some(_), _) => ChecksumState::Partial,
            (None, true) => ChecksumState::Trusted,
            (None, false) => ChecksumState::Verify,
        }
    }

    /// Reads the header at the front of `bytes`.
    #[inline]
    pub fn parse(bytes: &[u8]) -> Result<Self, Malformed> {
        let bytes = bytes
            .first_chunk::<HEADER_BYTES>()
            .ok_or(Malformed::OffloadHeader)?;
        let field = |at: usize| u16::from_le_bytes([bytes[at], bytes[at + 1]]);
        let (flags, kind) = (bytes[0], bytes[1]);
        let version = match kind & !ECN {
            NOT_SEGMENTED => None,
            TCP_V4 => Some(Version::V4),
            TCP_V6 => Some(Version::V6),
            _ => return Err(Malformed::OffloadHeader),
        };
        let checksum = ChecksumPlace {
            start: field(6),
            offset: field(8),
        };
        Ok(Self {
            checksum: (flags & NEEDS_CHECKSUM != 0).then_some(checksum),
            verified: flags & DATA_VALID != 0,
            segmentation: version.map(|version| Segmentation {
                version,
                ecn: kind & ECN != 0,
                headers_bytes: field(2),
                segment_bytes: field(4),
            }),
        })
    }

    /// Writes the header to the front of `buffer`; returns its length.
    #[inline]
    pub fn emit(&self, buffer: &mut [u8]) -> Result<usize, EmitError> {
        let bytes = room_for::<HEADER_BYTES>(buffer)?;
        let needs = if self.checksum.is_some() {
            NEEDS_CHECKSUM
        } else {
            0
        };
        let valid = if self.verified { DATA_VALID } else { 0 };
        let kind = self.segmentation.map_or(NOT_SEGMENTED, |super_segment| {
            let kind = match super_segment.version {
                Version::V4 => TCP_V4,
                Version::V6 => TCP_V6,
            };
            if super_segment.ecn { kind | ECN } else { kind }
        });
        let fields = [
            self.segmentation.map_or(0, |one| one.headers_bytes),
            self.segmentation.map_or(0, |one| one.segment_bytes),
            self.checksum.map_or(0, |place| place.start),
            self.checksum.map_or(0, |place| place.offset),
        ];
        bytes[0] = needs | valid;
        bytes[1] = kind;
        for (place, field) in bytes[2..].as_chunks_mut().0.iter_mut().zip(fields) {
            *place = field.to_le_bytes();
        }
        Ok(HEADER_BYTES)
    }
}

/// An offset in the headers of a frame.
fn short(place: usize) -> u16 {
    u16::try_from(place).unwrap_or(u16::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NONE: Header = Header::NONE;
    const PLACE: ChecksumPlace = ChecksumPlace {
        start: 34,
        offset: 16,
    };

    #[test]
    fn headers_are_read_and_written() {
        let checksum = Some(PLACE);
        let segmentation = Some(Segmentation {
            version: Version::V4,
            ecn: false,
            headers_bytes: 66,
            segment_bytes: 1_448,
        });
        let v6 = segmentation.map(|one| Segmentation {
            version: Version::V6,
            ecn: true,
            ..one
        });
        for (name, bytes, header) in [
            ("nothing", [0; 10], NONE),
            (
                "valid",
                [2, 0, 0, 0, 0, 0, 0, 0, 0, 0],
                Header {
                    verified: true,
                    ..NONE
                },
            ),
            (
                "checksum",
                [1, 0, 0, 0, 0, 0, 34, 0, 16, 0],
                Header { checksum, ..NONE },
            ),
            (
                "segmentation",
                [1, 1, 66, 0, 0xa8, 5, 34, 0, 16, 0],
                Header {
                    checksum,
                    segmentation,
                    ..NONE
                },
            ),
            (
                "segmentation of IPv6 with CWR",
                [3, 0x84, 66, 0, 0xa8, 5, 34, 0, 16, 0],
                Header {
                    checksum,
                    verified: true,
                    segmentation: v6,
                },
            ),
        ] {
            assert_eq!(Header::parse(&bytes), Ok(header), "{name}");
            let mut buffer = [0xee; 12];
            assert_eq!(header.emit(&mut buffer), Ok(HEADER_BYTES), "{name}");
            assert_eq!(buffer[..10], bytes, "{name}");
        }
    }

    #[test]
    fn fields_without_their_flags_are_ignored() {
        let bytes = [0x04, 0x80, 1, 2, 3, 4, 5, 6, 7, 8, 9];
        assert_eq!(Header::parse(&bytes), Ok(NONE));
    }

    #[test]
    fn what_is_not_a_header_is_refused() {
        for (name, bytes) in [
            ("short", &[0; 9][..]),
            ("UDP fragmentation", &[0, 3, 0, 0, 0, 0, 0, 0, 0, 0]),
            ("UDP segmentation", &[0, 5, 0, 0, 0, 0, 0, 0, 0, 0]),
        ] {
            assert_eq!(
                Header::parse(bytes),
                Err(Malformed::OffloadHeader),
                "{name}"
            );
        }
        let small = NONE.emit(&mut [0; 9]);
        assert_eq!(small, Err(EmitError::BufferTooSmall { needed: 10 }));
    }

    #[test]
    fn a_checksum_is_missing_verified_or_neither() {
        let header = |checksum, verified| Header {
            checksum,
            verified,
            segmentation: None,
        };
        for (header, state) in [
            (header(None, false), ChecksumState::Verify),
            (header(None, true), ChecksumState::Trusted),
            (header(Some(PLACE), false), ChecksumState::Partial),
            (header(Some(PLACE), true), ChecksumState::Partial),
        ] {
            assert_eq!(header.checksum_state(), state);
        }
    }

    #[test]
    fn places_beyond_16_bits_are_not_those_of_headers() {
        assert_eq!((short(94), short(65_536)), (94, 65_535));
    }
}
