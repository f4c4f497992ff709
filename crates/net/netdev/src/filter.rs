//! Filters of frames: the expressions of pcap-filter(7) that users of the gateway type.
//!
//! Source: man 7 pcap-filter. As there, `and` and `or` have the same precedence and associate from
//! the left; `not` binds tighter. Primitives: a protocol (`ip`, `ip6`, `arp`, `tcp`, `udp`, `icmp`,
//! `icmp6`), or an optional protocol, an optional direction (`src`, `dst`, `src or dst`,
//! `src and dst`) and `host`, `net`, `port` or `portrange` with its value.
//!
//! Unlike there, tagged frames match without the keyword `vlan`, IPv6 extension headers are
//! skipped, and fragments have no ports. Deliberately absent: names of hosts and services, and
//! tests of single bytes.

mod packet;
mod parse;
#[cfg(test)]
mod tests;

use std::net::IpAddr;
use std::ops::RangeInclusive;
use std::str::FromStr;

use ipnet::IpNet;

use crate::device::Link;
use packet::{Network, Packet};
pub use parse::FilterError;

/// Which frames are meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Filter {
    text: String,
    /// `None`: all frames.
    expression: Option<Expression>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Expression {
    Primitive(Primitive),
    Not(Box<Expression>),
    And(Box<Expression>, Box<Expression>),
    Or(Box<Expression>, Box<Expression>),
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Primitive {
    /// Frames of a protocol.
    Protocol(Protocol),
    /// Packets from or to a network; an address is a network of one.
    Net {
        protocol: Option<Protocol>,
        direction: Direction,
        net: IpNet,
    },
    /// TCP segments or UDP datagrams from or to ports.
    Ports {
        protocol: Option<Protocol>,
        direction: Direction,
        ports: RangeInclusive<u16>,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Protocol {
    Ip,
    Ip6,
    Arp,
    Tcp,
    Udp,
    Icmp,
    Icmp6,
}

/// Which ends of a packet are tested.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Direction {
    Source,
    Destination,
    Either,
    Both,
}

impl Filter {
    /// The filter that all frames match.
    #[must_use]
    pub const fn all() -> Self {
        Self {
            text: String::new(),
            expression: None,
        }
    }

    /// Whether the frame matches. A malformed frame matches by the headers that can be read.
    #[must_use]
    pub fn matches(&self, frame: &[u8], link: Link) -> bool {
        let Some(expression) = &self.expression else {
            return true;
        };
        expression.matches(&Packet::read(frame, link))
    }

    /// The text of the filter, empty for all frames.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }
}

impl FromStr for Filter {
    type Err = FilterError;

    /// Reads an expression. White space alone means all frames.
    ///
    /// # Errors
    /// Each [`FilterError`] names the word and its position.
    fn from_str(text: &str) -> Result<Self, FilterError> {
        Ok(Self {
            text: text.trim().to_owned(),
            expression: parse::expression(text)?,
        })
    }
}

impl Expression {
    fn matches(&self, packet: &Packet) -> bool {
        match self {
            Self::Primitive(primitive) => primitive.matches(packet),
            Self::Not(inner) => !inner.matches(packet),
            Self::And(left, right) => left.matches(packet) && right.matches(packet),
            Self::Or(left, right) => left.matches(packet) || right.matches(packet),
        }
    }
}

impl Primitive {
    fn matches(&self, packet: &Packet) -> bool {
        match self {
            Self::Protocol(protocol) => protocol.matches(packet),
            Self::Net {
                protocol,
                direction,
                net,
            } => {
                let contains = |address: &IpAddr| net.contains(address);
                protocol.is_none_or(|protocol| protocol.matches(packet))
                    && direction.matches(packet.addresses.as_ref(), contains)
            }
            Self::Ports {
                protocol,
                direction,
                ports,
            } => {
                let contains = |port: &u16| ports.contains(port);
                protocol.is_none_or(|protocol| protocol.matches(packet))
                    && direction.matches(packet.ports.as_ref(), contains)
            }
        }
    }
}

impl Protocol {
    fn matches(self, packet: &Packet) -> bool {
        match self {
            Self::Ip => packet.network == Some(Network::Ip),
            Self::Ip6 => packet.network == Some(Network::Ip6),
            Self::Arp => packet.network == Some(Network::Arp),
            Self::Tcp => packet.transport == Some(packet::TCP),
            Self::Udp => packet.transport == Some(packet::UDP),
            Self::Icmp => {
                packet.network == Some(Network::Ip) && packet.transport == Some(packet::ICMP)
            }
            Self::Icmp6 => {
                packet.network == Some(Network::Ip6) && packet.transport == Some(packet::ICMP6)
            }
        }
    }
}

impl Direction {
    /// Whether source and destination meet the condition. Packets without them do not.
    fn matches<T>(self, ends: Option<&[T; 2]>, condition: impl Fn(&T) -> bool) -> bool {
        let Some([source, destination]) = ends else {
            return false;
        };
        match self {
            Self::Source => condition(source),
            Self::Destination => condition(destination),
            Self::Either => condition(source) || condition(destination),
            Self::Both => condition(source) && condition(destination),
        }
    }
}
