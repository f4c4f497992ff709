//! Ethernet headers with up to two VLAN tags.
//!
//! Spec: IEEE 802.3 §3.2, 802.1Q §9.3 (tags 0x8100 and 0x88a8). Frames come without preamble and
//! frame check sequence. Padding of short frames stays in the payload: the next layer has a length
//! field. Emitted frames are not padded to 60 bytes; devices pad them.

use crate::Malformed;
use crate::bytes::get_u16;
use crate::emit::{EmitError, room};
use core::fmt;
use core::net::{Ipv4Addr, Ipv6Addr};

/// Length of a header without tags.
pub const HEADER_BYTES: usize = 14;
const TAG_BYTES: usize = 4;

/// A MAC address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Mac(pub [u8; 6]);

impl Mac {
    /// The broadcast address.
    pub const BROADCAST: Self = Self([0xff; 6]);

    /// Whether this is a multicast address; the broadcast address is one.
    #[inline]
    #[must_use]
    pub const fn is_group(self) -> bool {
        self.0[0] & 1 != 0
    }

    /// The MAC address of an IPv4 multicast address (RFC 1112 §6.4).
    #[must_use]
    pub const fn of_ipv4_multicast(address: Ipv4Addr) -> Self {
        let [_, b, c, d] = address.octets();
        Self([0x01, 0x00, 0x5e, b & 0x7f, c, d])
    }

    /// The MAC address of an IPv6 multicast address (RFC 2464 §7).
    #[must_use]
    pub const fn of_ipv6_multicast(address: Ipv6Addr) -> Self {
        let [.., a, b, c, d] = address.octets();
        Self([0x33, 0x33, a, b, c, d])
    }
}

impl fmt::Display for Mac {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, g] = self.0;
        write!(f, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}")
    }
}

/// The type of a frame's payload. Values below 0x0600 are lengths of 802.3 frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct EtherType(pub u16);

impl EtherType {
    /// IPv4.
    pub const IPV4: Self = Self(0x0800);
    /// ARP.
    pub const ARP: Self = Self(0x0806);
    /// The tag of a customer's VLAN, 802.1Q.
    pub const VLAN: Self = Self(0x8100);
    /// IPv6.
    pub const IPV6: Self = Self(0x86dd);
    /// The tag of a provider's VLAN, 802.1ad.
    pub const PROVIDER_VLAN: Self = Self(0x88a8);

    const fn is_tag(self) -> bool {
        matches!(self, Self::VLAN | Self::PROVIDER_VLAN)
    }
}

/// A VLAN tag.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Tag {
    /// [`EtherType::VLAN`] or [`EtherType::PROVIDER_VLAN`].
    pub kind: EtherType,
    /// Priority (3 bits), drop eligibility (1 bit) and VLAN (12 bits).
    pub control: u16,
}

impl Tag {
    /// A tag of priority 0 for a customer's VLAN.
    #[must_use]
    pub const fn vlan(vlan: u16) -> Self {
        Self {
            kind: EtherType::VLAN,
            control: vlan & 0x0fff,
        }
    }

    /// VLAN identifier; 0 for a tag that carries a priority only.
    #[must_use]
    pub const fn vlan_id(self) -> u16 {
        self.control & 0x0fff
    }

    /// Priority, 0 to 7.
    #[must_use]
    pub const fn priority(self) -> u8 {
        self.control.to_be_bytes()[0] >> 5
    }
}

/// The tags of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Tags {
    /// The frame has no tag.
    #[default]
    None,
    /// The frame has one tag.
    One(Tag),
    /// The frame has two tags.
    Two {
        /// The first tag.
        outer: Tag,
        /// The second tag.
        inner: Tag,
    },
}

impl Tags {
    /// Length of the tags.
    #[inline]
    #[must_use]
    pub const fn len_bytes(self) -> usize {
        match self {
            Self::None => 0,
            Self::One(_) => TAG_BYTES,
            Self::Two { .. } => 2 * TAG_BYTES,
        }
    }
}

/// The header of an Ethernet frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Header {
    /// Address of the receiver, or a group address.
    pub destination: Mac,
    /// Address of the sender.
    pub source: Mac,
    /// VLAN tags.
    pub tags: Tags,
    /// Type of the payload.
    pub ether_type: EtherType,
}

impl Header {
    /// Reads the header of a frame; returns the header and the payload with its padding.
    #[inline]
    pub fn parse(frame: &[u8]) -> Result<(Self, &[u8]), Malformed> {
        let (fixed, rest) = frame
            .split_first_chunk::<HEADER_BYTES>()
            .ok_or(Malformed::EthernetTruncated)?;
        let [d0, d1, d2, d3, d4, d5, s0, s1, s2, s3, s4, s5, ..] = *fixed;
        let untagged = Self {
            destination: Mac([d0, d1, d2, d3, d4, d5]),
            source: Mac([s0, s1, s2, s3, s4, s5]),
            tags: Tags::None,
            ether_type: EtherType(get_u16(fixed, 12)),
        };
        if untagged.source.is_group() {
            return Err(Malformed::EthernetSource);
        }
        if untagged.ether_type.is_tag() {
            return untagged.parse_tags(rest);
        }
        Ok((untagged, rest))
    }

    /// Reads the tags; the type of the first tag is in `self.ether_type`.
    fn parse_tags(self, rest: &[u8]) -> Result<(Self, &[u8]), Malformed> {
        let (outer, ether_type, rest) = split_tag(self.ether_type, rest)?;
        let (tags, ether_type, rest) = if ether_type.is_tag() {
            let (inner, ether_type, rest) = split_tag(ether_type, rest)?;
            (Tags::Two { outer, inner }, ether_type, rest)
        } else {
            (Tags::One(outer), ether_type, rest)
        };
        if ether_type.is_tag() {
            return Err(Malformed::EthernetTags);
        }
        let header = Self {
            tags,
            ether_type,
            ..self
        };
        Ok((header, rest))
    }

    /// Length of the header.
    #[inline]
    #[must_use]
    pub const fn len_bytes(&self) -> usize {
        HEADER_BYTES + self.tags.len_bytes()
    }

    /// Writes the header to the front of `buffer`; returns its length.
    #[inline]
    pub fn emit(&self, buffer: &mut [u8]) -> Result<usize, EmitError> {
        let length = self.len_bytes();
        let buffer = room(buffer, length)?;
        buffer[..6].copy_from_slice(&self.destination.0);
        buffer[6..12].copy_from_slice(&self.source.0);
        let last = self.ether_type.0;
        let types = match self.tags {
            Tags::None => [last, 0, 0, 0, 0],
            Tags::One(tag) => [tag.kind.0, tag.control, last, 0, 0],
            Tags::Two { outer, inner } => [
                outer.kind.0,
                outer.control,
                inner.kind.0,
                inner.control,
                last,
            ],
        };
        for (place, value) in buffer[12..].as_chunks_mut::<2>().0.iter_mut().zip(types) {
            *place = value.to_be_bytes();
        }
        Ok(length)
    }
}

/// The tag of type `kind` at the front of `bytes`, the type behind it, and the rest.
fn split_tag(kind: EtherType, bytes: &[u8]) -> Result<(Tag, EtherType, &[u8]), Malformed> {
    let (tag, rest) = bytes
        .split_first_chunk::<TAG_BYTES>()
        .ok_or(Malformed::EthernetTruncated)?;
    let control = get_u16(tag, 0);
    Ok((Tag { kind, control }, EtherType(get_u16(tag, 2)), rest))
}

#[cfg(test)]
mod tests;
