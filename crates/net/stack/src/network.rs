//! Interfaces, addresses and routes of a host, as its owner configures them.
//!
//! Spec: RFC 1122 §3.3.1 and RFC 4861 §5.2 (next hop), RFC 1812 §5.2.4.3 (longest match). The
//! networks of the addresses are routes, too. Deliberately absent: DHCP, router discovery, and
//! addresses that the host gives itself; the owner copies what the kernel's interface has.

use alloc::vec::Vec;
use core::net::IpAddr;

use ipnet::IpNet;
use saiga_wire::ethernet::{Mac, Tags};

/// Most interfaces of a network.
pub const MAX_INTERFACES: usize = 64;
/// Most addresses of all interfaces.
pub const MAX_ADDRESSES: usize = 1024;
/// Most routes, without those of the addresses.
pub const MAX_ROUTES: usize = 1024;
/// Least MTU in bytes: that of IPv6 (RFC 8200 §5) for interfaces with such addresses, and 576 for
/// others (RFC 1122 §3.3.2).
const LEAST_MTU_V4: u16 = 576;
const LEAST_MTU_V6: u16 = 1280;

/// The network of a host.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Network {
    /// Interfaces on the device: one, or one for each VLAN.
    pub interfaces: Vec<Interface>,
    /// Routes to networks beyond those of the interfaces' addresses.
    pub routes: Vec<Route>,
}

impl Network {
    /// Whether [`Stack::configure`](crate::Stack::configure) takes the network.
    ///
    /// # Errors
    /// Why not.
    pub fn check(&self) -> Result<(), NetworkError> {
        Routing::new(self.clone()).map(drop)
    }
}

/// An interface.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Interface {
    /// The link layer.
    pub link: Link,
    /// Largest IP packet in bytes.
    pub mtu: u16,
    /// Addresses with the length of their network's prefix.
    pub addresses: Vec<IpNet>,
}

/// The link layer of an interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Link {
    /// Ethernet, with the tags of a VLAN or none. Tags of priority alone are of no VLAN.
    Ethernet {
        /// MAC address of this host.
        mac: Mac,
        /// Tags of all frames of the interface.
        tags: Tags,
    },
    /// None: frames are IP packets (TUN).
    None,
}

/// A route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Route {
    /// Addresses of the route.
    pub destination: IpNet,
    /// The router; `None` if the destinations are on the link.
    pub gateway: Option<IpAddr>,
    /// Index of the interface.
    pub interface: usize,
}

/// Why a network is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NetworkError {
    /// More than [`MAX_INTERFACES`], [`MAX_ADDRESSES`] or [`MAX_ROUTES`].
    #[error("{count} {what} exceed the limit of {limit}")]
    TooMany {
        /// What there is too much of.
        what: &'static str,
        /// How many there are.
        count: usize,
        /// The limit.
        limit: usize,
    },
    /// The MTU is too small for the addresses of an interface.
    #[error("interface {interface}: MTU {mtu} is less than {least}")]
    Mtu {
        /// Index of the interface.
        interface: usize,
        /// Its MTU.
        mtu: u16,
        /// The least one.
        least: u16,
    },
    /// Two interfaces have the same tags, or one without a link layer is not alone.
    #[error("interface {interface} receives the same frames as another one")]
    SameLink {
        /// Index of the second interface.
        interface: usize,
    },
    /// Two interfaces have the address, or the address cannot be a host's.
    #[error("{0} is the address of two interfaces, a multicast or an unspecified address")]
    Address(IpAddr),
    /// A route's interface does not exist, or its gateway is not on the link of that interface.
    #[error("route to {destination}: its gateway is not on the link of interface {interface}")]
    Route {
        /// Destination of the route.
        destination: IpNet,
        /// Index of the interface.
        interface: usize,
    },
}

/// Where a packet goes next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Path {
    pub(crate) interface: u8,
    /// The router or the destination.
    pub(crate) next_hop: IpAddr,
}

/// A network whose contents were checked.
#[derive(Debug, Default)]
pub(crate) struct Routing {
    network: Network,
    /// All routes, those with longer prefixes first.
    routes: Vec<Route>,
    /// Own addresses in order, with the interface.
    own: Vec<(IpAddr, u8)>,
    /// Broadcast addresses of own networks, in order.
    broadcasts: Vec<IpAddr>,
}

impl Routing {
    /// Checks a network.
    pub(crate) fn new(network: Network) -> Result<Self, NetworkError> {
        let addresses = network.interfaces.iter().map(|one| one.addresses.len());
        let addresses: usize = addresses.sum();
        for (what, count, limit) in [
            ("interfaces", network.interfaces.len(), MAX_INTERFACES),
            ("addresses", addresses, MAX_ADDRESSES),
            ("routes", network.routes.len(), MAX_ROUTES),
        ] {
            if count > limit {
                return Err(NetworkError::TooMany { what, count, limit });
            }
        }
        check_interfaces(&network.interfaces)?;
        let own = own_addresses(&network.interfaces)?;
        for route in &network.routes {
            check_route(&network.interfaces, route)?;
        }
        let routes = all_routes(&network);
        let broadcasts = broadcasts(&network.interfaces);
        Ok(Self {
            network,
            routes,
            own,
            broadcasts,
        })
    }

    pub(crate) fn interface(&self, index: u8) -> Option<&Interface> {
        self.network.interfaces.get(usize::from(index))
    }

    pub(crate) fn interfaces(&self) -> &[Interface] {
        &self.network.interfaces
    }

    /// The interface of frames with these tags.
    pub(crate) fn interface_of(&self, tags: Tags) -> Option<u8> {
        let same = |interface: &Interface| match interface.link {
            Link::Ethernet { tags: own, .. } => vlans(own) == vlans(tags),
            Link::None => false,
        };
        let found = self.network.interfaces.iter().position(same)?;
        u8::try_from(found).ok()
    }

    /// Whether the address is one of this host.
    pub(crate) fn is_own(&self, address: IpAddr) -> bool {
        self.interface_with(address).is_some()
    }

    /// Whether packets to the address go to all hosts of a network of this host.
    pub(crate) fn is_broadcast(&self, address: IpAddr) -> bool {
        self.broadcasts.binary_search(&address).is_ok()
    }

    /// The interface that has the address.
    pub(crate) fn interface_with(&self, address: IpAddr) -> Option<u8> {
        let found = self.own.binary_search_by_key(&address, |(own, _)| *own);
        found.ok().map(|at| self.own[at].1)
    }

    /// Where packets from `source` to `destination` go. Of routes that are equally good, one of the
    /// interface that has the source is taken.
    pub(crate) fn path(&self, source: IpAddr, destination: IpAddr) -> Option<Path> {
        let home = self.interface_with(source)?;
        let mut found: Option<&Route> = None;
        for route in &self.routes {
            if !route.destination.contains(&destination) {
                continue;
            }
            if found
                .is_some_and(|best| best.destination.prefix_len() > route.destination.prefix_len())
            {
                break;
            }
            if route.interface == usize::from(home) {
                found = Some(route);
                break;
            }
            found = found.or(Some(route));
        }
        let route = found?;
        Some(Path {
            interface: u8::try_from(route.interface).ok()?,
            next_hop: route.gateway.unwrap_or(destination),
        })
    }
}

/// The VLANs of tags. VLAN 0 says that the tag carries a priority only (IEEE 802.1Q §9.6).
fn vlans(tags: Tags) -> (u16, u16) {
    match tags {
        Tags::None => (0, 0),
        Tags::One(tag) => (tag.vlan_id(), 0),
        Tags::Two { outer, inner } => (outer.vlan_id(), inner.vlan_id()),
    }
}

fn check_interfaces(interfaces: &[Interface]) -> Result<(), NetworkError> {
    for (index, interface) in interfaces.iter().enumerate() {
        let has_v6 = interface.addresses.iter().any(|one| one.addr().is_ipv6());
        let least = if has_v6 { LEAST_MTU_V6 } else { LEAST_MTU_V4 };
        if interface.mtu < least {
            return Err(NetworkError::Mtu {
                interface: index,
                mtu: interface.mtu,
                least,
            });
        }
        let is_same = |other: &Interface| match (interface.link, other.link) {
            (Link::Ethernet { tags, .. }, Link::Ethernet { tags: others, .. }) => {
                vlans(tags) == vlans(others)
            }
            (Link::None, _) | (_, Link::None) => true,
        };
        if interfaces[..index].iter().any(is_same) {
            return Err(NetworkError::SameLink { interface: index });
        }
    }
    Ok(())
}

/// All own addresses in order.
fn own_addresses(interfaces: &[Interface]) -> Result<Vec<(IpAddr, u8)>, NetworkError> {
    let mut own = Vec::new();
    for (index, interface) in (0..).zip(interfaces) {
        own.extend(interface.addresses.iter().map(|one| (one.addr(), index)));
    }
    own.sort_unstable();
    let twice = own.windows(2).find(|pair| pair[0].0 == pair[1].0);
    let wrong = own
        .iter()
        .find(|(one, _)| one.is_multicast() || one.is_unspecified());
    match wrong.or(twice.map(|pair| &pair[0])) {
        Some((address, _)) => Err(NetworkError::Address(*address)),
        None => Ok(own),
    }
}

/// The broadcast addresses of all networks, in order. Networks of two hosts have none (RFC 3021).
fn broadcasts(interfaces: &[Interface]) -> Vec<IpAddr> {
    let own = interfaces.iter().flat_map(|one| &one.addresses);
    let mut broadcasts: Vec<IpAddr> = own
        .filter(|own| own.addr().is_ipv4() && own.prefix_len() < 31)
        .map(IpNet::broadcast)
        .collect();
    broadcasts.sort_unstable();
    broadcasts
}

/// A gateway must be a neighbour on the interface: its own network contains the gateway.
fn check_route(interfaces: &[Interface], route: &Route) -> Result<(), NetworkError> {
    let is_neighbour = |interface: &Interface| match route.gateway {
        None => true,
        Some(IpAddr::V6(gateway)) if gateway.is_unicast_link_local() => true,
        Some(gateway) => interface
            .addresses
            .iter()
            .any(|own| own.contains(&gateway) && own.addr() != gateway),
    };
    let same_version = route
        .gateway
        .is_none_or(|gateway| gateway.is_ipv4() == route.destination.addr().is_ipv4());
    match interfaces.get(route.interface) {
        Some(interface) if same_version && is_neighbour(interface) => Ok(()),
        Some(_) | None => Err(NetworkError::Route {
            destination: route.destination,
            interface: route.interface,
        }),
    }
}

/// The configured routes and those of the addresses, longer prefixes first.
fn all_routes(network: &Network) -> Vec<Route> {
    let mut routes = network.routes.clone();
    for (index, interface) in network.interfaces.iter().enumerate() {
        routes.extend(interface.addresses.iter().map(|own| Route {
            destination: own.trunc(),
            gateway: None,
            interface: index,
        }));
    }
    routes.sort_by_key(|route| core::cmp::Reverse(route.destination.prefix_len()));
    routes
}

#[cfg(test)]
mod tests;
