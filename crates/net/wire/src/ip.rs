//! Fields that IPv4 and IPv6 share: protocol numbers, addresses, ports, traffic class, fragments.

use crate::checksum::Sum;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// An Internet protocol number: the protocol field of IPv4, the next header field of IPv6.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Protocol(pub u8);

impl Protocol {
    /// IPv6 hop-by-hop options.
    pub const HOP_BY_HOP: Self = Self(0);
    /// ICMP for IPv4.
    pub const ICMP: Self = Self(1);
    /// TCP.
    pub const TCP: Self = Self(6);
    /// UDP.
    pub const UDP: Self = Self(17);
    /// IPv6 routing header.
    pub const ROUTING: Self = Self(43);
    /// IPv6 fragment header.
    pub const FRAGMENT: Self = Self(44);
    /// ICMPv6.
    pub const ICMP6: Self = Self(58);
    /// Nothing follows the IPv6 header.
    pub const NO_NEXT: Self = Self(59);
    /// IPv6 destination options.
    pub const DESTINATION_OPTIONS: Self = Self(60);
}

/// Source and destination of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Addresses {
    /// Of an IPv4 packet.
    V4 {
        /// Address of the sender.
        source: Ipv4Addr,
        /// Address of the receiver, or a multicast address.
        destination: Ipv4Addr,
    },
    /// Of an IPv6 packet.
    V6 {
        /// Address of the sender.
        source: Ipv6Addr,
        /// Address of the receiver, or a multicast address.
        destination: Ipv6Addr,
    },
}

impl Addresses {
    /// The source address.
    #[must_use]
    pub const fn source(&self) -> IpAddr {
        match *self {
            Self::V4 { source, .. } => IpAddr::V4(source),
            Self::V6 { source, .. } => IpAddr::V6(source),
        }
    }

    /// The destination address.
    #[must_use]
    pub const fn destination(&self) -> IpAddr {
        match *self {
            Self::V4 { destination, .. } => IpAddr::V4(destination),
            Self::V6 { destination, .. } => IpAddr::V6(destination),
        }
    }

    /// The addresses of an answer: source and destination exchanged.
    #[must_use]
    pub const fn reversed(self) -> Self {
        match self {
            Self::V4 {
                source,
                destination,
            } => Self::V4 {
                source: destination,
                destination: source,
            },
            Self::V6 {
                source,
                destination,
            } => Self::V6 {
                source: destination,
                destination: source,
            },
        }
    }

    /// Sum of the pseudo header (RFC 9293 §3.1, RFC 8200 §8.1) of `length` bytes of `protocol`.
    #[inline]
    #[must_use]
    pub fn pseudo_header(&self, protocol: Protocol, length: u32) -> Sum {
        let addresses = match self {
            Self::V4 {
                source,
                destination,
            } => Sum::ZERO.u32(source.to_bits()).u32(destination.to_bits()),
            Self::V6 {
                source,
                destination,
            } => Sum::of(&source.octets()).bytes(&destination.octets()),
        };
        addresses.u16(protocol.0.into()).u32(length)
    }
}

/// Source and destination port.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Ports {
    /// Port of the sender.
    pub source: u16,
    /// Port of the receiver.
    pub destination: u16,
}

impl Ports {
    /// The ports of an answer: source and destination exchanged.
    #[must_use]
    pub const fn reversed(self) -> Self {
        Self {
            source: self.destination,
            destination: self.source,
        }
    }
}

/// Explicit congestion notification (RFC 3168 §5); the value is that of the field.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Ecn {
    /// The sender does not support ECN.
    NotCapable = 0,
    /// ECT(1): the sender supports ECN.
    Capable1 = 1,
    /// ECT(0): the sender supports ECN.
    Capable0 = 2,
    /// CE: a router on the path was congested.
    Congested = 3,
}

/// The traffic class of IPv6, the type of service of IPv4: DSCP and ECN (RFC 2474, RFC 3168).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct TrafficClass(pub u8);

impl TrafficClass {
    /// Differentiated services code point, 0 to 63.
    #[must_use]
    pub const fn dscp(self) -> u8 {
        self.0 >> 2
    }

    /// The congestion notification.
    #[inline]
    #[must_use]
    pub const fn ecn(self) -> Ecn {
        match self.0 & 3 {
            0 => Ecn::NotCapable,
            1 => Ecn::Capable1,
            2 => Ecn::Capable0,
            _ => Ecn::Congested,
        }
    }

    /// The same code point with another congestion notification.
    #[must_use]
    pub const fn with_ecn(self, ecn: Ecn) -> Self {
        Self(self.0 & !3 | ecn as u8)
    }
}

/// The place of a fragment in its packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Fragment {
    /// Identifier that all fragments of a packet share.
    pub id: u32,
    /// Offset of the fragment's payload in the packet's payload, in bytes; a multiple of 8.
    pub offset: u16,
    /// Whether this is not the last fragment.
    pub more: bool,
}

/// Whether a fragment with `length` bytes of payload is possible: all but the last fragment have a
/// multiple of 8 bytes, and the packet, with `before` bytes of headers, has at most 65,535 bytes.
pub(crate) fn is_possible(fragment: Fragment, before: usize, length: usize) -> bool {
    let divides = !fragment.more || (length > 0 && length.is_multiple_of(8));
    divides && before + usize::from(fragment.offset) + length <= usize::from(u16::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const V4: Addresses = Addresses::V4 {
        source: Ipv4Addr::new(192, 0, 2, 1),
        destination: Ipv4Addr::new(198, 51, 100, 2),
    };
    const V6: Addresses = Addresses::V6 {
        source: Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1),
        destination: Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 2),
    };

    #[test]
    fn pseudo_headers_are_summed_as_the_rfcs_lay_them_out() {
        let v4 = [192, 0, 2, 1, 198, 51, 100, 2, 0, 6, 0x12, 0x34];
        let sum = V4.pseudo_header(Protocol::TCP, 0x1234);
        assert_eq!(sum.value(), Sum::of(&v4).value());
        let mut v6 = [0; 40];
        v6[..4].copy_from_slice(&[0x20, 0x01, 0x0d, 0xb8]);
        v6[15..20].copy_from_slice(&[1, 0x20, 0x01, 0x0d, 0xb8]);
        v6[31..].copy_from_slice(&[2, 0, 1, 0xff, 0xfe, 0, 0, 0, 58]);
        let sum = V6.pseudo_header(Protocol::ICMP6, 0x1_fffe);
        assert_eq!(sum.value(), Sum::of(&v6).value());
    }

    #[test]
    fn an_answer_exchanges_source_and_destination() {
        for addresses in [V4, V6] {
            assert_eq!(addresses.reversed().source(), addresses.destination());
            assert_eq!(addresses.reversed().destination(), addresses.source());
            assert_eq!(addresses.reversed().reversed(), addresses);
        }
        let ports = Ports {
            source: 1,
            destination: 2,
        };
        assert_eq!(ports.reversed().source, 2);
        assert_eq!(ports.reversed().destination, 1);
    }

    #[test]
    fn traffic_classes() {
        for (byte, dscp, ecn) in [
            (0x00, 0, Ecn::NotCapable),
            (0x01, 0, Ecn::Capable1),
            (0xba, 46, Ecn::Capable0),
            (0xff, 63, Ecn::Congested),
        ] {
            let class = TrafficClass(byte);
            assert_eq!((class.dscp(), class.ecn()), (dscp, ecn));
            assert_eq!(class.with_ecn(Ecn::NotCapable).with_ecn(ecn), class);
        }
    }

    #[test]
    fn fragments_divide_at_8_bytes_and_end_within_64_kib() {
        for (name, offset, more, before, length, possible) in [
            ("the first one", 0, true, 20, 8, true),
            ("empty", 0, true, 20, 0, false),
            ("7 bytes", 0, true, 20, 7, false),
            ("the last one", 8, false, 20, 7, true),
            ("the last one, empty", 8, false, 20, 0, true),
            ("up to the limit", 65_512, false, 20, 3, true),
            ("past the limit", 65_512, false, 20, 4, false),
            ("past it with others to come", 65_528, true, 0, 8, false),
        ] {
            let fragment = Fragment {
                id: 1,
                offset,
                more,
            };
            assert_eq!(is_possible(fragment, before, length), possible, "{name}");
        }
    }
}
