//! Routes of a gateway's table: everything is local, with exceptions.
//!
//! Spec: `man 8 ip-route`, kernel net/ipv4/fib_frontend.c and net/ipv6/route.c. A route of the type
//! `local` lets the kernel deliver packets to this host by `lo`. A route of the type `throw` ends
//! the lookup in the table, so that the next rule decides: packets leave as if there were no
//! gateway.

use std::fmt;
use std::io;
use std::net::IpAddr;

use ipnet::IpNet;
use netlink_packet_core::{NLM_F_CREATE, NLM_F_EXCL, NLM_F_REPLACE};
use netlink_packet_route::address::{AddressAttribute, AddressMessage};
use netlink_packet_route::route::{
    RouteAddress, RouteAttribute, RouteMessage, RouteMetric, RouteScope, RouteType,
};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};

use netlink_sys::protocols::NETLINK_ROUTE;

use crate::netlink::Netlink;
use crate::rule::{PROTOCOL, family};

/// A metric behind the defaults of both versions of IP (0 and 1024).
const LAST: u32 = 2048;

/// A route of a gateway.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Route {
    /// The destinations.
    pub(crate) network: IpNet,
    /// What happens to packets to them.
    pub(crate) target: Target,
    /// Number of the table.
    pub(crate) table: u32,
}

/// What happens to packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Target {
    /// This host receives them; the route lasts as long as the device with this index.
    Local(u32),
    /// The same, and a socket without an address of its own gets this one of the host.
    LocalFrom(u32, IpAddr),
    /// The next rule decides.
    Throw,
}

/// What the routing tables say of an address.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Known {
    /// Whether packets to it are for this host: it is one of the host's addresses, or a broadcast
    /// or anycast address of its networks.
    pub(crate) is_own: bool,
    /// The MTU of its path, if a route has one, or a router has told of it (RTAX_MTU).
    pub(crate) mtu: Option<u32>,
}

/// Asks the routing tables for `address`, so that `net.ipv4.ip_nonlocal_bind` does not matter.
pub(crate) fn look_up(netlink: &mut Netlink, address: IpAddr) -> io::Result<Known> {
    let mut request = RouteMessage::default();
    request.header.address_family = family(address);
    request.header.destination_prefix_length = IpNet::from(address).prefix_len();
    let to = RouteAddress::from(address);
    request.attributes.push(RouteAttribute::Destination(to));
    match netlink.ask(RouteNetlinkMessage::GetRoute(request)) {
        Ok(RouteNetlinkMessage::NewRoute(found)) => Ok(Known {
            is_own: matches!(
                found.header.kind,
                RouteType::Local | RouteType::Broadcast | RouteType::Anycast | RouteType::Multicast
            ),
            mtu: mtu(&found.attributes),
        }),
        Ok(_) => Err(io::ErrorKind::InvalidData.into()),
        // There is no route, or one of the types unreachable, prohibit and blackhole.
        Err(error) => match error.raw_os_error() {
            Some(libc::ENETUNREACH | libc::EHOSTUNREACH | libc::EACCES | libc::EINVAL) => {
                Ok(Known::default())
            }
            _ => Err(error),
        },
    }
}

fn mtu(attributes: &[RouteAttribute]) -> Option<u32> {
    for attribute in attributes {
        let RouteAttribute::Metrics(metrics) = attribute else {
            continue;
        };
        for metric in metrics {
            if let RouteMetric::Mtu(mtu) = metric {
                return Some(*mtu);
            }
        }
    }
    None
}

/// All addresses of this host.
///
/// # Errors
/// The errors of netlink.
pub fn own_addresses() -> io::Result<Vec<IpAddr>> {
    let mut netlink = Netlink::open(NETLINK_ROUTE)?;
    let request = RouteNetlinkMessage::GetAddress(AddressMessage::default());
    let mut own = Vec::new();
    for answer in netlink.dump(&request)? {
        let RouteNetlinkMessage::NewAddress(message) = answer else {
            continue;
        };
        let mut peer = None;
        let mut local = None;
        for attribute in message.attributes {
            if let AddressAttribute::Address(address) = attribute {
                peer = Some(address);
            } else if let AddressAttribute::Local(address) = attribute {
                local = Some(address);
            }
        }
        // IPv6 has the second one only for a link to one other host.
        own.extend(local.or(peer));
    }
    Ok(own)
}

impl Route {
    /// Adds the route; EEXIST if there is one to the same network.
    pub(crate) fn add(&self, netlink: &mut Netlink) -> io::Result<()> {
        let request = RouteNetlinkMessage::NewRoute(self.message());
        netlink.change(request, NLM_F_CREATE | NLM_F_EXCL)
    }

    /// Adds the route, in place of one of another program with the same network and metric.
    pub(crate) fn put_back(&self, netlink: &mut Netlink) -> io::Result<()> {
        let request = RouteNetlinkMessage::NewRoute(self.message());
        netlink.change(request, NLM_F_CREATE | NLM_F_REPLACE)
    }

    /// Removes the route; ESRCH if it is not there.
    pub(crate) fn remove(&self, netlink: &mut Netlink) -> io::Result<()> {
        netlink.change(RouteNetlinkMessage::DelRoute(self.message()), 0)
    }

    fn message(&self) -> RouteMessage {
        let Self {
            network,
            target,
            table,
        } = *self;
        let mut message = RouteMessage::default();
        message.header.address_family = family(network.addr());
        message.header.destination_prefix_length = network.prefix_len();
        message.header.protocol = PROTOCOL;
        message.attributes.push(RouteAttribute::Table(table));
        if network.prefix_len() > 0 {
            let to = RouteAddress::from(network.addr());
            message.attributes.push(RouteAttribute::Destination(to));
        }
        match target {
            Target::Local(device) | Target::LocalFrom(device, _) => {
                message.header.kind = RouteType::Local;
                message.header.scope = RouteScope::Host;
                message.attributes.push(RouteAttribute::Oif(device));
            }
            Target::Throw => message.header.kind = RouteType::Throw,
        }
        if let Target::LocalFrom(_, source) = target {
            let source = RouteAddress::from(source);
            message.attributes.push(RouteAttribute::PrefSource(source));
            // After a throw route to the same host, which may come or go.
            message.attributes.push(RouteAttribute::Priority(LAST));
        }
        message
    }

    /// The route in `message`; `None` if no gateway has made it.
    fn parse(message: &RouteMessage, table: u32) -> Option<Self> {
        let header = &message.header;
        let (mut to, mut device, mut source) = (None, None, None);
        for attribute in &message.attributes {
            if let RouteAttribute::Destination(RouteAddress::Inet(address)) = attribute {
                to = Some(IpAddr::V4(*address));
            } else if let RouteAttribute::Destination(RouteAddress::Inet6(address)) = attribute {
                to = Some(IpAddr::V6(*address));
            } else if let RouteAttribute::Oif(index) = attribute {
                device = Some(*index);
            } else if let RouteAttribute::PrefSource(RouteAddress::Inet(address)) = attribute {
                source = Some(IpAddr::V4(*address));
            } else if let RouteAttribute::PrefSource(RouteAddress::Inet6(address)) = attribute {
                source = Some(IpAddr::V6(*address));
            }
        }
        let to = to.unwrap_or(unspecified(header.address_family));
        let target = if header.kind == RouteType::Throw {
            Target::Throw
        } else if header.kind == RouteType::Local {
            let device = device?;
            source.map_or(Target::Local(device), |source| {
                Target::LocalFrom(device, source)
            })
        } else {
            return None;
        };
        let route = Self {
            network: IpNet::new(to, header.destination_prefix_length).ok()?,
            target,
            table,
        };
        (header.protocol == PROTOCOL).then_some(route)
    }
}

impl fmt::Display for Route {
    /// In the words of ip-route(8).
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.target {
            Target::Local(_) | Target::LocalFrom(..) => "local",
            Target::Throw => "throw",
        };
        write!(f, "route {kind} {} table {}", self.network, self.table)
    }
}

/// The routes of one table.
pub(crate) struct Contents {
    /// Those that gateways have made.
    pub(crate) ours: Vec<Route>,
    /// The number of others.
    pub(crate) foreign: usize,
}

impl Contents {
    /// Whether a gateway runs: its device is there, and so is a local route.
    pub(crate) fn has_gateway(&self) -> bool {
        let is_local = |route: &Route| route.target != Target::Throw;
        self.ours.iter().any(is_local)
    }
}

/// Reads `table`, both families. `netlink` filters dumps.
pub(crate) fn read(netlink: &mut Netlink, table: u32) -> io::Result<Contents> {
    let mut contents = Contents {
        ours: Vec::new(),
        foreign: 0,
    };
    for family in [AddressFamily::Inet, AddressFamily::Inet6] {
        let mut request = RouteMessage::default();
        request.header.address_family = family;
        request.attributes.push(RouteAttribute::Table(table));
        let answers = match netlink.dump(&RouteNetlinkMessage::GetRoute(request)) {
            // The kernel makes a table when it gets its first route.
            Err(error) if error.raw_os_error() == Some(libc::ENOENT) => continue,
            answers => answers?,
        };
        for answer in answers {
            // A kernel without IPv6 answers with the routes of all families.
            if let RouteNetlinkMessage::NewRoute(message) = answer
                && message.header.address_family == family
            {
                match Route::parse(&message, table) {
                    Some(route) => contents.ours.push(route),
                    None => contents.foreign += 1,
                }
            }
        }
    }
    Ok(contents)
}

fn unspecified(family: AddressFamily) -> IpAddr {
    if family == AddressFamily::Inet {
        IpAddr::V4(std::net::Ipv4Addr::UNSPECIFIED)
    } else {
        IpAddr::V6(std::net::Ipv6Addr::UNSPECIFIED)
    }
}
