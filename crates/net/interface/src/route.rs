//! Routes, as `RTM_NEWROUTE` describes them.
//!
//! Source: rtnetlink(7), include/uapi/linux/rtnetlink.h. Deliberately absent: the members of a
//! route with several next hops, and metrics such as a path MTU.

use std::net::IpAddr;

use ipnet::IpNet;

use crate::family::Family;
use crate::message::{attributes, ip, number};

/// The next hop object of a route (include/uapi/linux/rtnetlink.h).
const RTA_NH_ID: u16 = 30;

/// A route of the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Route {
    /// Addresses of the route.
    pub destination: IpNet,
    /// What happens to packets to the destination.
    pub kind: RouteKind,
    /// Where the packets go next.
    pub next_hop: NextHop,
    /// Source address of packets whose sender has not chosen one.
    pub preferred_source: Option<IpAddr>,
    /// Of routes to the same destination, that with the smallest metric is used.
    pub metric: u32,
    /// Whether the route is for some packets only: those of a type of service (IPv4) or those from
    /// a source network (IPv6).
    pub is_selective: bool,
}

/// What happens to packets to the destination of a route (`RTN_*`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RouteKind {
    /// They are sent to the next hop.
    Unicast,
    /// They are for this host.
    Local,
    /// They are for all hosts of the link.
    Broadcast,
    /// They are for this host among others.
    Anycast,
    /// They are for a group of hosts.
    Multicast,
    /// They are dropped.
    Blackhole,
    /// They are refused: host unreachable.
    Unreachable,
    /// They are refused: administratively prohibited.
    Prohibit,
    /// The search goes on in the next table.
    Throw,
    /// A type that is not known here.
    Other(u8),
}

/// Where the packets of a route go next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NextHop {
    /// To the destination itself, which is on the link.
    Link,
    /// To a router. Its address can be of the other family (RFC 8950).
    Router(IpAddr),
    /// To one of several routers or interfaces, or to a next hop object of unknown members.
    Several,
    /// Into a tunnel that the route describes (`RTA_ENCAP`).
    Encapsulation,
}

/// A route with what says whether it concerns an interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RouteMessage {
    /// Index of the interface of the next hop.
    pub(crate) interface: Option<u32>,
    pub(crate) table: u32,
    /// Whether the kernel has learnt it for one destination, such as a path MTU.
    pub(crate) is_cloned: bool,
    pub(crate) route: Route,
}

impl RouteMessage {
    /// Reads a message (`struct rtmsg` and attributes). `None` if it is of another family.
    pub(crate) fn read(message: &[u8]) -> Option<Self> {
        let (fields, rest) = message.split_first_chunk::<12>()?;
        let [
            family,
            length,
            source_length,
            service,
            table,
            _,
            _,
            kind,
            flags @ ..,
        ] = *fields;
        let family = Family::from_number(family)?;
        let (mut destination, mut table) = (family.unspecified(), u32::from(table));
        let (mut interface, mut router, mut preferred_source) = (None, None, None);
        let (mut metric, mut has_object) = (0, false);
        let (mut has_several, mut has_encapsulation) = (false, false);
        for (kind, value) in attributes(rest) {
            match kind {
                libc::RTA_TABLE => table = number(value).unwrap_or(table),
                libc::RTA_DST => destination = ip(value)?,
                libc::RTA_OIF => interface = number(value),
                libc::RTA_GATEWAY => router = ip(value),
                // The family of the address comes first.
                libc::RTA_VIA => router = value.get(2..).and_then(ip),
                libc::RTA_PREFSRC => preferred_source = ip(value),
                libc::RTA_PRIORITY => metric = number(value).unwrap_or(0),
                libc::RTA_MULTIPATH => has_several = true,
                libc::RTA_ENCAP => has_encapsulation = true,
                RTA_NH_ID => has_object = true,
                _ => {}
            }
        }
        if Family::of(destination) != family {
            return None;
        }
        let next_hop = if has_encapsulation {
            NextHop::Encapsulation
        } else if has_several || (has_object && interface.is_none()) {
            NextHop::Several
        } else {
            router.map_or(NextHop::Link, NextHop::Router)
        };
        Some(Self {
            interface,
            table,
            is_cloned: u32::from_ne_bytes(flags) & libc::RTM_F_CLONED != 0,
            route: Route {
                destination: IpNet::new(destination, length).ok()?.trunc(),
                kind: RouteKind::from_number(kind),
                next_hop,
                preferred_source,
                metric,
                is_selective: service != 0 || source_length != 0,
            },
        })
    }
}

impl RouteKind {
    /// The kinds that refuse packets, or that end the search in the main table.
    pub(crate) const REFUSING: [Self; 4] = [
        Self::Blackhole,
        Self::Unreachable,
        Self::Prohibit,
        Self::Throw,
    ];

    const fn from_number(number: u8) -> Self {
        match number {
            libc::RTN_UNICAST => Self::Unicast,
            libc::RTN_LOCAL => Self::Local,
            libc::RTN_BROADCAST => Self::Broadcast,
            libc::RTN_ANYCAST => Self::Anycast,
            libc::RTN_MULTICAST => Self::Multicast,
            libc::RTN_BLACKHOLE => Self::Blackhole,
            libc::RTN_UNREACHABLE => Self::Unreachable,
            libc::RTN_PROHIBIT => Self::Prohibit,
            libc::RTN_THROW => Self::Throw,
            other => Self::Other(other),
        }
    }

    /// The number of the kind in messages.
    pub(crate) const fn number(self) -> u8 {
        match self {
            Self::Unicast => libc::RTN_UNICAST,
            Self::Local => libc::RTN_LOCAL,
            Self::Broadcast => libc::RTN_BROADCAST,
            Self::Anycast => libc::RTN_ANYCAST,
            Self::Multicast => libc::RTN_MULTICAST,
            Self::Blackhole => libc::RTN_BLACKHOLE,
            Self::Unreachable => libc::RTN_UNREACHABLE,
            Self::Prohibit => libc::RTN_PROHIBIT,
            Self::Throw => libc::RTN_THROW,
            Self::Other(number) => number,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::{Attributes, body};

    /// Reads a message for 10.1.0.0/16 in the main table.
    fn read(kind: u8, service: u8, attributes: Attributes<'_>) -> Option<RouteMessage> {
        let fields = [2, 16, 0, service, 254, 3, 0, kind, 0, 0, 0, 0];
        let destination: Attributes<'_> = &[(1, &[10, 1, 0, 0])];
        RouteMessage::read(&body(&fields, &[destination, attributes].concat()))
    }

    #[test]
    fn a_route_through_a_router_is_read() {
        let attributes: [(u16, &[u8]); 5] = [
            (4, &3_u32.to_ne_bytes()),
            (5, &[10, 0, 0, 254]),
            (6, &100_u32.to_ne_bytes()),
            (7, &[10, 0, 0, 1]),
            (15, &1000_u32.to_ne_bytes()),
        ];
        let expected = RouteMessage {
            interface: Some(3),
            table: 1000,
            is_cloned: false,
            route: Route {
                destination: "10.1.0.0/16".parse().unwrap(),
                kind: RouteKind::Unicast,
                next_hop: NextHop::Router([10, 0, 0, 254].into()),
                preferred_source: Some([10, 0, 0, 1].into()),
                metric: 100,
                is_selective: false,
            },
        };
        assert_eq!(read(1, 0, &attributes), Some(expected));
    }

    #[test]
    fn next_hops_are_told_apart() {
        let oif = 3_u32.to_ne_bytes();
        let mut via = vec![10, 0];
        via.extend([0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
        let neighbour = NextHop::Router("fe80::1".parse().unwrap());
        let cases: [(Attributes<'_>, NextHop); 6] = [
            (&[(4, &oif)], NextHop::Link),
            (&[(4, &oif), (30, &[1, 0, 0, 0])], NextHop::Link),
            (&[(4, &oif), (18, &via)], neighbour),
            (&[(30, &[1, 0, 0, 0])], NextHop::Several),
            (&[(9, &[])], NextHop::Several),
            (&[(4, &oif), (22, &[])], NextHop::Encapsulation),
        ];
        for (attributes, expected) in cases {
            let found = read(1, 0, attributes).unwrap().route.next_hop;
            assert_eq!(found, expected, "{attributes:?}");
        }
    }

    #[test]
    fn kinds_have_their_numbers() {
        for number in 0..=12 {
            assert_eq!(RouteKind::from_number(number).number(), number);
        }
        assert_eq!(RouteKind::REFUSING.map(RouteKind::number), [6, 7, 8, 9]);
        assert!(read(1, 0x10, &[]).unwrap().route.is_selective);
    }

    #[test]
    fn the_default_route_has_no_destination() {
        let fields = [10, 0, 0, 0, 254, 0, 0, 1, 0, 2, 0, 0];
        let found = RouteMessage::read(&fields).unwrap();
        assert_eq!(found.route.destination, "::/0".parse().unwrap());
        assert!(found.is_cloned);
    }

    #[test]
    fn messages_that_do_not_fit_their_family_are_not_read() {
        let fields = [10, 16, 0, 0, 254, 3, 0, 1, 0, 0, 0, 0];
        let wrong = body(&fields, &[(1, &[10, 1, 0, 0])]);
        assert_eq!(RouteMessage::read(&wrong), None);
        let too_long = [2, 33, 0, 0, 254, 3, 0, 1, 0, 0, 0, 0];
        assert_eq!(RouteMessage::read(&too_long), None);
        assert_eq!(RouteMessage::read(&[2; 11]), None);
    }
}
