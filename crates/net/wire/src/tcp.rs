//! TCP headers.
//!
//! Spec: RFC 9293 §3.1 and §3.2, RFC 3168 §6.1 (ECE and CWR). Which segments are acceptable, and
//! which flags go together, is decided by the connection. Reserved bits are ignored and sent as
//! zero.

mod flags;
mod options;
mod sack;
#[cfg(test)]
mod tests;

pub use flags::Flags;
pub use options::{MAX_WINDOW_SCALE, Options, Timestamps};
pub use sack::{SackBlock, SackBlocks};

use crate::bytes::{get_u16, get_u32, put_words};
use crate::checksum::Sum;
use crate::emit::{EmitError, room};
use crate::ip::{Addresses, Ports, Protocol};
use crate::offload::ChecksumState;
use crate::{Malformed, SeqNum};

/// Length of a header without options.
pub const HEADER_BYTES: usize = 20;
/// Length of the longest header.
pub const MAX_HEADER_BYTES: usize = 60;
/// Offset of the checksum field in the header.
pub const CHECKSUM_AT: usize = 16;

/// The fields of a header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// Ports of sender and receiver.
    pub ports: Ports,
    /// Number of the first byte of the payload, or of the SYN.
    pub seq: SeqNum,
    /// Number of the next byte that the sender expects; `None` without the ACK bit.
    pub ack: Option<SeqNum>,
    /// The other control bits.
    pub flags: Flags,
    /// Receive window of the sender, before scaling.
    pub window: u16,
    /// Urgent pointer, relative to `seq`; `None` without the URG bit.
    pub urgent: Option<u16>,
    /// Options.
    pub options: Options,
}

/// A segment of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Segment<'a> {
    /// The fields of the header.
    pub header: Header,
    /// The bytes behind the header.
    pub payload: &'a [u8],
}

impl<'a> Segment<'a> {
    /// Reads a segment. Its checksum is not verified; see [`is_intact`].
    #[inline(always)]
    pub fn parse(bytes: &'a [u8]) -> Result<Self, Malformed> {
        let fixed = bytes
            .first_chunk::<HEADER_BYTES>()
            .ok_or(Malformed::TcpTruncated)?;
        let header_bytes = usize::from(fixed[12] >> 4) * 4;
        if header_bytes < HEADER_BYTES {
            return Err(Malformed::TcpDataOffset);
        }
        let (head, payload) = bytes
            .split_at_checked(header_bytes)
            .ok_or(Malformed::TcpTruncated)?;
        let bits = fixed[13];
        let header = Header {
            ports: Ports {
                source: get_u16(fixed, 0),
                destination: get_u16(fixed, 2),
            },
            seq: SeqNum(get_u32(fixed, 4)),
            ack: (bits & flags::ACK != 0).then_some(SeqNum(get_u32(fixed, 8))),
            flags: Flags::from_bits(bits),
            window: get_u16(fixed, 14),
            urgent: (bits & flags::URG != 0).then_some(get_u16(fixed, 18)),
            options: Options::parse(&head[HEADER_BYTES..]),
        };
        Ok(Self { header, payload })
    }

    /// Reads the payload of a packet with these addresses. `state` decides whether the checksum is
    /// verified.
    #[inline(always)]
    pub fn parse_in(
        addresses: &Addresses,
        bytes: &'a [u8],
        state: ChecksumState,
    ) -> Result<Self, Malformed> {
        let segment = Self::parse(bytes)?;
        if state == ChecksumState::Verify && !is_intact(addresses, bytes) {
            return Err(Malformed::TcpChecksum);
        }
        Ok(segment)
    }
}

impl Header {
    /// Length of the header with its options.
    #[inline]
    #[must_use]
    pub const fn len_bytes(&self) -> usize {
        HEADER_BYTES + self.options.len_bytes()
    }

    /// Writes the header with a checksum of 0 to the front of `buffer`; returns its length.
    pub fn emit(&self, buffer: &mut [u8]) -> Result<usize, EmitError> {
        let length = self.len_bytes();
        self.fill(room(buffer, length)?);
        Ok(length)
    }

    /// Fills `buffer`, which has [`Self::len_bytes`]; returns the sum of the bytes. Reading the
    /// bytes back would have to wait for the writes.
    #[inline]
    pub(crate) fn fill(&self, buffer: &mut [u8]) -> Sum {
        let ack_bit = if self.ack.is_some() { flags::ACK } else { 0 };
        let urgent_bit = if self.urgent.is_some() { flags::URG } else { 0 };
        let bits = self.flags.bits() | ack_bit | urgent_bit;
        let offset = offset_field(buffer.len());
        let words = [
            u32::from(self.ports.source) << 16 | u32::from(self.ports.destination),
            self.seq.0,
            self.ack.unwrap_or_default().0,
            u32::from_be_bytes([offset, bits, 0, 0]) | u32::from(self.window),
            self.urgent.unwrap_or_default().into(),
        ];
        let (fixed, options) = buffer.split_at_mut(HEADER_BYTES);
        put_words(fixed, words);
        Sum::of_words(words).then(self.options.fill(options))
    }
}

/// The data offset: the header's length in units of 4 bytes, in the upper half of a byte.
#[inline]
#[expect(
    clippy::cast_possible_truncation,
    reason = "a header has at most 60 bytes"
)]
const fn offset_field(header_bytes: usize) -> u8 {
    (header_bytes as u8 / 4) << 4
}

/// Whether the checksum of a segment is right. `segment` begins with the header.
#[inline]
#[must_use]
pub fn is_intact(addresses: &Addresses, segment: &[u8]) -> bool {
    pseudo_header(addresses, segment.len())
        .bytes(segment)
        .is_valid()
}

/// Sum of the pseudo header of a segment of `length` bytes with its header.
#[inline]
#[must_use]
pub fn pseudo_header(addresses: &Addresses, length: usize) -> Sum {
    // A segment in an IP packet is shorter than 64 KiB.
    let length = u32::try_from(length).unwrap_or(u32::MAX);
    addresses.pseudo_header(Protocol::TCP, length)
}
