//! A snapshot of the kernel's interface as the network of a stack.
//!
//! The stack serves the addresses of the interface and its VLANs, and sends by their routes. What a
//! stack cannot serve is left out with a reason: the kernel goes on serving such addresses, and
//! packets to the destination of such a route take another one of the stack, or none. Link-local
//! addresses of IPv6 stay with the kernel, because a connection to one needs its interface. Routes
//! that follow from the addresses are not mentioned. Pure: no I/O.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::net::IpAddr;

use ipnet::IpNet;
use saiga_stack::{Interface as StackInterface, Link, Network, Route as StackRoute};
use saiga_wire::ethernet::Tags;

use crate::address::{Address, Scope};
use crate::route::{NextHop, Route, RouteKind};
use crate::snapshot::{Interface, Snapshot};

/// Least MTU of a stack with addresses of IPv6, and without them ([`saiga_stack::NetworkError`]).
const LEAST_MTU_V6: u32 = 1280;
const LEAST_MTU_V4: u32 = 576;

/// The network of a stack.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Translation {
    /// The network. [`saiga_stack::Stack::configure`] takes it, unless it exceeds the limits of a
    /// stack.
    pub network: Network,
    /// Index in the kernel of each interface of the network, in its order.
    pub indexes: Vec<u32>,
    /// What the kernel has and the network has not.
    pub left_out: Vec<LeftOut>,
}

/// A part of a snapshot that is not in the network of a stack.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftOut {
    /// Name of the interface.
    pub interface: OsString,
    /// The part.
    pub what: What,
    /// Why it is left out.
    pub reason: Reason,
}

/// A part of a snapshot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum What {
    /// The interface with everything on it.
    Interface,
    /// An address of the interface.
    Address(IpAddr),
    /// A route to this destination.
    Route(IpNet),
}

/// Why a part is left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// The interface is down.
    Down,
    /// The interface is not an Ethernet interface.
    NotEthernet,
    /// The MTU is less than 1,280 (with addresses of IPv6) or 576.
    SmallMtu,
    /// The frames have the VLAN numbers of another interface, and differ in the type of tag only.
    SameVlan,
    /// Address or destination is link-local (`fe80::/10`).
    LinkLocal,
    /// Address or destination is that of a group of hosts.
    Multicast,
    /// The address is valid inside the host only.
    HostOnly,
    /// The detection of duplicates has not finished.
    Tentative,
    /// Another host has the address.
    Duplicate,
    /// Another interface has the address, too.
    Repeated,
    /// The kernel takes packets to a whole network for its own.
    LocalNetwork,
    /// The kernel refuses to send to the destination: blackhole, unreachable, prohibit or throw.
    /// The stack sends.
    Refused,
    /// The route is for some packets only, by type of service or source.
    Selective,
    /// The route has several next hops.
    Multipath,
    /// The route leads into a tunnel.
    Encapsulation,
    /// Destination and router are not of the same version of IP.
    OtherVersion,
    /// The router is not in the network of an address.
    RouterOffLink,
    /// Another route to the destination has a smaller metric, or the same and comes first.
    Outranked,
    /// The type of the route is unknown.
    UnknownKind,
}

/// What becomes of a route.
enum Fate {
    /// It follows from the addresses.
    Follows,
    /// The stack can use it, unless a better one exists.
    Usable,
    LeftOut(Reason),
}

/// Translates a snapshot.
#[must_use]
pub fn network(snapshot: &Snapshot) -> Translation {
    let mut translation = Translation::default();
    for interface in snapshot.interfaces() {
        translation.add_interface(interface);
    }
    let name = &snapshot.device.link.name;
    for route in &snapshot.refused {
        translation.leave_out(name, What::Route(route.destination), Reason::Refused);
    }
    translation
}

impl Translation {
    /// The number of an interface in the network, from its index in the kernel.
    #[must_use]
    pub fn number(&self, index: u32) -> Option<usize> {
        self.indexes.iter().position(|one| *one == index)
    }

    fn add_interface(&mut self, interface: &Interface) {
        let name = &interface.link.name;
        let link = match self.link(interface) {
            Ok(link) => link,
            Err(reason) => {
                self.leave_out(name, What::Interface, reason);
                return;
            }
        };
        let mut addresses = Vec::new();
        for address in &interface.addresses {
            match self.address_reason(address, &addresses) {
                None => addresses.push(with_prefix(address, &interface.routes)),
                Some(reason) => self.leave_out(name, What::Address(address.address), reason),
            }
        }
        self.add_routes(interface, &addresses);
        self.indexes.push(interface.link.index);
        self.network.interfaces.push(StackInterface {
            link,
            mtu: u16::try_from(interface.link.mtu).unwrap_or(u16::MAX),
            addresses,
        });
    }

    fn link(&self, interface: &Interface) -> Result<Link, Reason> {
        let Interface {
            link,
            tags,
            addresses,
            ..
        } = interface;
        let has_v6 = addresses.iter().any(|one| one.address.is_ipv6());
        let least = if has_v6 { LEAST_MTU_V6 } else { LEAST_MTU_V4 };
        let is_same = |other: &StackInterface| match other.link {
            Link::Ethernet { tags: others, .. } => vlan_ids(others) == vlan_ids(*tags),
            Link::None => true,
        };
        match link.mac {
            _ if !link.is_up => Err(Reason::Down),
            None => Err(Reason::NotEthernet),
            Some(_) if link.mtu < least => Err(Reason::SmallMtu),
            Some(_) if self.network.interfaces.iter().any(is_same) => Err(Reason::SameVlan),
            Some(mac) => Ok(Link::Ethernet { mac, tags: *tags }),
        }
    }

    /// Why an address cannot be the stack's, which has `here` on the same interface already.
    fn address_reason(&self, address: &Address, here: &[IpNet]) -> Option<Reason> {
        let Address {
            address,
            scope,
            flags,
            ..
        } = *address;
        let elsewhere = self
            .network
            .interfaces
            .iter()
            .flat_map(|one| &one.addresses);
        let is_own = here
            .iter()
            .chain(elsewhere)
            .any(|own| own.addr() == address);
        [
            (address.is_multicast(), Reason::Multicast),
            (is_link_local(address), Reason::LinkLocal),
            (scope == Scope::Host, Reason::HostOnly),
            (address.is_loopback(), Reason::HostOnly),
            (flags.is_duplicate(), Reason::Duplicate),
            (flags.is_tentative(), Reason::Tentative),
            (is_own, Reason::Repeated),
        ]
        .into_iter()
        .find_map(|(holds, reason)| holds.then_some(reason))
    }

    /// Adds the routes of the next interface, whose addresses are `own`.
    fn add_routes(&mut self, interface: &Interface, own: &[IpNet]) {
        let (name, number) = (&interface.link.name, self.network.interfaces.len());
        let mut routes = Vec::new();
        for route in &interface.routes {
            match fate(route, interface, own) {
                Fate::Follows => {}
                Fate::Usable => routes.push(route),
                Fate::LeftOut(reason) => {
                    self.leave_out(name, What::Route(route.destination), reason);
                }
            }
        }
        routes.sort_by_key(|route| route.metric);
        let mut destinations = BTreeSet::new();
        for route in routes {
            let destination = route.destination;
            if !destinations.insert(destination) {
                self.leave_out(name, What::Route(destination), Reason::Outranked);
                continue;
            }
            let gateway = router(route.next_hop);
            // The stack knows the networks of its addresses.
            let is_own = own.iter().any(|own| own.trunc() == destination);
            if gateway.is_some() || !is_own {
                self.network.routes.push(StackRoute {
                    destination,
                    gateway,
                    interface: number,
                });
            }
        }
    }

    fn leave_out(&mut self, interface: &OsStr, what: What, reason: Reason) {
        self.left_out.push(LeftOut {
            interface: interface.to_owned(),
            what,
            reason,
        });
    }
}

/// The address with the prefix of its network if the network is on the link, which a peer's network
/// or one without a route (`IFA_F_NOPREFIXROUTE`) need not be.
fn with_prefix(address: &Address, routes: &[Route]) -> IpNet {
    let Address {
        address, network, ..
    } = *address;
    let is_on_link = routes.iter().any(|route| {
        route.kind == RouteKind::Unicast
            && route.next_hop == NextHop::Link
            && !route.is_selective
            && route.destination == network
    });
    let alone = IpNet::from(address);
    if !is_on_link || !network.contains(&address) {
        return alone;
    }
    IpNet::new(address, network.prefix_len()).unwrap_or(alone)
}

fn fate(route: &Route, interface: &Interface, own: &[IpNet]) -> Fate {
    match route.kind {
        RouteKind::Unicast => unicast_reason(route, own).map_or(Fate::Usable, Fate::LeftOut),
        RouteKind::Local if is_of_address(route, interface) => Fate::Follows,
        RouteKind::Local => Fate::LeftOut(Reason::LocalNetwork),
        RouteKind::Broadcast | RouteKind::Anycast => Fate::Follows,
        RouteKind::Multicast => Fate::LeftOut(Reason::Multicast),
        RouteKind::Blackhole | RouteKind::Unreachable | RouteKind::Prohibit | RouteKind::Throw => {
            Fate::LeftOut(Reason::Refused)
        }
        RouteKind::Other(_) => Fate::LeftOut(Reason::UnknownKind),
    }
}

/// Whether a local route is the one that the kernel makes for an address.
fn is_of_address(route: &Route, interface: &Interface) -> bool {
    let destination = route.destination;
    let mut addresses = interface.addresses.iter();
    addresses.any(|one| IpNet::from(one.address) == destination)
}

/// Why the stack cannot use a route of an interface where it has the addresses `own`.
fn unicast_reason(route: &Route, own: &[IpNet]) -> Option<Reason> {
    let destination = route.destination.addr();
    if route.is_selective {
        return Some(Reason::Selective);
    }
    if destination.is_multicast() {
        return Some(Reason::Multicast);
    }
    if is_link_local(destination) {
        return Some(Reason::LinkLocal);
    }
    match route.next_hop {
        NextHop::Link => None,
        NextHop::Several => Some(Reason::Multipath),
        NextHop::Encapsulation => Some(Reason::Encapsulation),
        NextHop::Router(router) if router.is_ipv4() != destination.is_ipv4() => {
            Some(Reason::OtherVersion)
        }
        NextHop::Router(router) if is_link_local(router) => None,
        NextHop::Router(router) => {
            let is_neighbour = |own: &IpNet| own.contains(&router) && own.addr() != router;
            (!own.iter().any(is_neighbour)).then_some(Reason::RouterOffLink)
        }
    }
}

const fn router(next_hop: NextHop) -> Option<IpAddr> {
    match next_hop {
        NextHop::Router(router) => Some(router),
        NextHop::Link | NextHop::Several | NextHop::Encapsulation => None,
    }
}

const fn is_link_local(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(_) => false,
        IpAddr::V6(address) => address.is_unicast_link_local(),
    }
}

/// A stack tells interfaces apart by these alone.
fn vlan_ids(tags: Tags) -> (u16, u16) {
    match tags {
        Tags::None => (0, 0),
        Tags::One(tag) => (tag.vlan_id(), 0),
        Tags::Two { outer, inner } => (outer.vlan_id(), inner.vlan_id()),
    }
}

impl fmt::Display for LeftOut {
    /// The name is quoted, because it may hold control characters.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            interface,
            what,
            reason,
        } = self;
        match what {
            What::Interface => write!(f, "interface {interface:?}: {reason}"),
            What::Address(address) => write!(f, "address {address} of {interface:?}: {reason}"),
            What::Route(to) => write!(f, "route to {to} of {interface:?}: {reason}"),
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Down => "it is down",
            Self::NotEthernet => "it is not an Ethernet interface",
            Self::SmallMtu => "its MTU is less than 576, or than 1280 with addresses of IPv6",
            Self::SameVlan => "another interface has frames with the same VLAN numbers",
            Self::LinkLocal => "it is link-local and stays with the kernel",
            Self::Multicast => "it is a multicast address",
            Self::HostOnly => "it is valid inside the host only",
            Self::Tentative => "the detection of duplicates has not finished",
            Self::Duplicate => "another host has the same address",
            Self::Repeated => "another interface has the same address",
            Self::LocalNetwork => "it makes a whole network local, which the kernel serves",
            Self::Refused => "the kernel refuses to send there, but the gateway does not",
            Self::Selective => "it is for some packets only, by type of service or source",
            Self::Multipath => "it has several next hops",
            Self::Encapsulation => "it leads into a tunnel",
            Self::OtherVersion => "its router has an address of the other version of IP",
            Self::RouterOffLink => "its router is not in the network of an address",
            Self::Outranked => "another route to the same destination comes first",
            Self::UnknownKind => "its type is unknown",
        })
    }
}

#[cfg(test)]
mod tests;
