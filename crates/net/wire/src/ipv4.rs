//! IPv4 headers.
//!
//! Spec: RFC 791 §3.1, RFC 1122 §3.2.1. Options are checked and skipped; source routes are refused,
//! as hosts do by default (RFC 7126). Fragments are described, not reassembled. Absent on purpose:
//! options in emitted packets, and checks of addresses that depend on the host (loopback, directed
//! broadcast).

use crate::Malformed;
use crate::bytes::{get_ipv4, get_u16, put_words};
use crate::checksum::Sum;
use crate::emit::{EmitError, length_field, room_for};
use crate::ip::{Addresses, Fragment, Protocol, TrafficClass, is_possible};
use core::net::Ipv4Addr;

#[cfg(test)]
mod tests;

/// Length of a header without options.
pub const HEADER_BYTES: usize = 20;
/// Offset of the checksum field.
pub(crate) const CHECKSUM_AT: usize = 10;
const DONT_FRAGMENT: u16 = 0x4000;
const MORE_FRAGMENTS: u16 = 0x2000;
const OFFSET_MASK: u16 = 0x1fff;

/// The fields of a header.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Header {
    /// Address of the sender.
    pub source: Ipv4Addr,
    /// Address of the receiver, or a multicast address.
    pub destination: Ipv4Addr,
    /// Protocol of the payload.
    pub protocol: Protocol,
    /// DSCP and ECN.
    pub traffic_class: TrafficClass,
    /// Number of routers that may still forward the packet.
    pub ttl: u8,
    /// Identifier that all fragments of a packet share.
    pub id: u16,
    /// Routers must not fragment the packet.
    pub dont_fragment: bool,
    /// The packet is a fragment, and not the last one.
    pub more_fragments: bool,
    /// Offset of a fragment's payload in the payload of the packet, in bytes; a multiple of 8.
    pub fragment_offset: u16,
}

impl Header {
    /// Source and destination.
    #[inline]
    #[must_use]
    pub const fn addresses(&self) -> Addresses {
        Addresses::V4 {
            source: self.source,
            destination: self.destination,
        }
    }

    /// Place of the fragment; `None` for an unfragmented packet.
    #[inline]
    #[must_use]
    pub const fn fragment(&self) -> Option<Fragment> {
        if !self.more_fragments && self.fragment_offset == 0 {
            return None;
        }
        Some(Fragment {
            id: self.id as u32,
            offset: self.fragment_offset,
            more: self.more_fragments,
        })
    }

    /// Writes the header of a packet with `payload_bytes` to the front of `buffer`; returns the
    /// header's length. The lower three bits of the fragment offset are lost.
    #[inline]
    pub fn emit(&self, payload_bytes: usize, buffer: &mut [u8]) -> Result<usize, EmitError> {
        let total = length_field(payload_bytes.saturating_add(HEADER_BYTES))?;
        let bytes = room_for::<HEADER_BYTES>(buffer)?;
        let dont = if self.dont_fragment { DONT_FRAGMENT } else { 0 };
        let more = if self.more_fragments {
            MORE_FRAGMENTS
        } else {
            0
        };
        let place = dont | more | (self.fragment_offset / 8);
        let mut words = [
            u32::from_be_bytes([0x45, self.traffic_class.0, 0, 0]) | u32::from(total),
            u32::from(self.id) << 16 | u32::from(place),
            u32::from_be_bytes([self.ttl, self.protocol.0, 0, 0]),
            self.source.to_bits(),
            self.destination.to_bits(),
        ];
        words[CHECKSUM_AT / 4] |= u32::from(Sum::of_words(words).checksum());
        put_words(bytes, words);
        Ok(HEADER_BYTES)
    }
}

/// A packet or a fragment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Packet<'a> {
    /// The header without its options.
    pub header: Header,
    /// The bytes behind the header, without padding of the frame.
    pub payload: &'a [u8],
    /// Header and payload.
    pub bytes: &'a [u8],
}

impl<'a> Packet<'a> {
    /// Reads a packet. Bytes behind its total length are the frame's padding. The header checksum
    /// is always verified: [`crate::offload::ChecksumState`] is about the transport.
    #[inline(always)]
    pub fn parse(bytes: &'a [u8]) -> Result<Self, Malformed> {
        let fixed = bytes
            .first_chunk::<HEADER_BYTES>()
            .ok_or(Malformed::Ipv4Truncated)?;
        if fixed[0] >> 4 != 4 {
            return Err(Malformed::IpVersion);
        }
        let header_bytes = usize::from(fixed[0] & 15) * 4;
        let total = usize::from(get_u16(fixed, 2));
        if header_bytes < HEADER_BYTES || header_bytes > total {
            return Err(Malformed::Ipv4Length);
        }
        let bytes = bytes.get(..total).ok_or(Malformed::Ipv4Truncated)?;
        let (head, payload) = bytes.split_at(header_bytes);
        if header_bytes == HEADER_BYTES {
            verify(Sum::of(fixed))?;
        } else {
            verify(Sum::of(head))?;
            check_options(&head[HEADER_BYTES..])?;
        }
        let header = fields(fixed);
        check_fields(&header, header_bytes, payload.len())?;
        Ok(Self {
            header,
            payload,
            bytes,
        })
    }
}

#[inline]
fn verify(sum: Sum) -> Result<(), Malformed> {
    if sum.is_valid() {
        Ok(())
    } else {
        Err(Malformed::Ipv4Checksum)
    }
}

#[inline(always)]
fn fields(fixed: &[u8; HEADER_BYTES]) -> Header {
    let place = get_u16(fixed, 6);
    Header {
        source: get_ipv4(fixed, 12),
        destination: get_ipv4(fixed, 16),
        protocol: Protocol(fixed[9]),
        traffic_class: TrafficClass(fixed[1]),
        ttl: fixed[8],
        id: get_u16(fixed, 4),
        dont_fragment: place & DONT_FRAGMENT != 0,
        more_fragments: place & MORE_FRAGMENTS != 0,
        fragment_offset: (place & OFFSET_MASK) * 8,
    }
}

#[inline(always)]
fn check_fields(header: &Header, header_bytes: usize, length: usize) -> Result<(), Malformed> {
    if header.source.is_multicast() || header.source.is_broadcast() {
        return Err(Malformed::Ipv4Source);
    }
    match header.fragment() {
        Some(fragment) if !is_possible(fragment, header_bytes, length) => {
            Err(Malformed::Ipv4Fragment)
        }
        _ => Ok(()),
    }
}

/// Looks for source routes in the list of options.
fn check_options(mut options: &[u8]) -> Result<(), Malformed> {
    const END: u8 = 0;
    const NO_OPERATION: u8 = 1;
    const LOOSE_SOURCE_ROUTE: u8 = 131;
    const STRICT_SOURCE_ROUTE: u8 = 137;
    while let Some((&kind, rest)) = options.split_first() {
        let length = match (kind, rest.first()) {
            (END, _) => break,
            (NO_OPERATION, _) => 1,
            (LOOSE_SOURCE_ROUTE | STRICT_SOURCE_ROUTE, _) => {
                return Err(Malformed::Ipv4SourceRoute);
            }
            (_, Some(&length)) if length >= 2 => usize::from(length),
            _ => return Err(Malformed::Ipv4Option),
        };
        options = options.get(length..).ok_or(Malformed::Ipv4Option)?;
    }
    Ok(())
}

/// The header of a packet that an ICMP message quotes, and as many bytes of the payload as the
/// message holds; none of a fragment other than the first.
pub(crate) fn quoted(bytes: &[u8]) -> Option<(Header, &[u8])> {
    let fixed = bytes.first_chunk::<HEADER_BYTES>()?;
    let header_bytes = usize::from(fixed[0] & 15) * 4;
    if fixed[0] >> 4 != 4 || header_bytes < HEADER_BYTES {
        return None;
    }
    let header = fields(fixed);
    let payload = if header.fragment_offset == 0 {
        bytes.get(header_bytes..).unwrap_or_default()
    } else {
        &[]
    };
    Some((header, payload))
}
