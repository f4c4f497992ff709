//! Where the stacks' network comes from, and what it is.
//!
//! With AF_XDP, the interface is the kernel's, and with DPDK and memif, the kernel has a TAP device
//! beside the device. So the MAC addresses of neighbours come from the kernel, and, unless the
//! settings have their own, addresses and routes, too. Those of a VLAN are those of the kernel's
//! interface for it. A device of the kind TAP is the stack's alone.

use std::ffi::OsStr;
use std::net::{IpAddr, SocketAddr};

use saiga_interface::{Follower, Neighbour, Reason, Snapshot, Translation};
use saiga_netdev::Info;
use saiga_stack::{Interface, Link, Network, Presence, Resolver, Route};
use saiga_wire::ethernet::{Mac, Tag, Tags};

use super::ServiceError;
use super::device::Opened;
use crate::settings::{Addresses, Device, Kind, Serve, Settings};

/// What the stacks know of the network, and what is served there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Plan {
    pub(super) network: Network,
    /// Index in the kernel of each interface of the network.
    indexes: Vec<u32>,
    /// The neighbours that are known: number of the interface, address, MAC address.
    pub(super) neighbours: Vec<(usize, IpAddr, Mac)>,
    pub(super) served: Vec<SocketAddr>,
    /// What the kernel has and the network lacks, with the reason.
    pub(super) left_out: Vec<String>,
}

/// Where the network comes from.
pub(super) enum Source {
    /// The settings.
    Settings,
    /// The kernel, as it changes.
    Kernel(Box<Following>),
}

/// An interface of the kernel.
pub(super) struct Following {
    pub(super) follower: Follower,
    device: Device,
    serve: Vec<Serve>,
    /// Whether the stacks get frames that are the kernel's.
    presence: Presence,
}

impl Source {
    /// Opens the source for a device, and makes the first plan.
    pub(super) fn open(
        settings: &Settings,
        device: &Device,
        opened: &Opened,
    ) -> Result<(Self, Plan), ServiceError> {
        if matches!(device.kind, Kind::Tap { .. }) {
            let network = of_settings(device, &opened.info);
            let plan = Plan::new(network, Vec::new(), &settings.serve);
            return Ok((Self::Settings, plan));
        }
        let (follower, snapshot) = Follower::start(OsStr::new(opened.interface()))?;
        if let Some(vlan) = device.vlan
            && of_vlan(&snapshot, device).is_none()
        {
            return Err(ServiceError::NoVlan {
                interface: opened.interface().to_owned(),
                vlan,
            });
        }
        let following = Following {
            follower,
            device: device.clone(),
            serve: settings.serve.clone(),
            presence: match device.kind {
                // The program redirects only what is served.
                Kind::Xdp { .. } | Kind::Tap { .. } => Presence::Alone,
                Kind::Dpdk { .. } | Kind::Memif { .. } => Presence::BesideKernel,
            },
        };
        let plan = following.plan(snapshot);
        Ok((Self::Kernel(Box::new(following)), plan))
    }

    /// Who finds the MAC addresses of neighbours.
    pub(super) const fn resolver(&self) -> Resolver {
        match self {
            Self::Settings => Resolver::Stack,
            Self::Kernel(_) => Resolver::Owner,
        }
    }

    /// Which stacks answer at the addresses.
    pub(super) const fn presence(&self) -> Presence {
        match self {
            Self::Settings => Presence::Alone,
            Self::Kernel(following) => following.presence,
        }
    }
}

impl Following {
    /// The plan for the present state of the interface.
    pub(super) fn plan(&self, snapshot: Snapshot) -> Plan {
        plan(&self.device, &self.serve, snapshot)
    }
}

/// The plan for a device whose interface has this state. Nothing is served while the VLAN of the
/// device has no interface.
fn plan(device: &Device, serve: &[Serve], mut snapshot: Snapshot) -> Plan {
    let Some(mut interface) = of_vlan(&snapshot, device).cloned() else {
        return Plan::new(Network::default(), Vec::new(), serve);
    };
    // What is sent while the device is down is lost, as in the kernel; connections stay.
    interface.link.is_up = true;
    snapshot.device = interface;
    snapshot.vlans.clear();
    let mut translation = saiga_interface::network(&snapshot);
    let own = device.addresses.own();
    for interface in &mut translation.network.interfaces {
        interface.mtu = interface.mtu.min(device.mtu.unwrap_or(u16::MAX));
        if !own.is_empty() {
            interface.addresses = own.to_vec();
        }
    }
    if !own.is_empty() {
        translation.network.routes = own_routes(device);
        translation.left_out.clear();
    }
    let neighbours = snapshot.device.neighbours;
    let Translation {
        network,
        indexes,
        left_out,
    } = translation;
    let mut plan = Plan::new(network, indexes, serve);
    plan.neighbours = neighbours
        .iter()
        .filter_map(|one| plan.numbered(one))
        .filter_map(|(number, address, mac)| Some((number, address, mac?)))
        .collect();
    let tells = left_out.iter().filter(|one| is_unexpected(one.reason));
    plan.left_out = tells.map(ToString::to_string).collect();
    plan
}

/// The kernel's interface with the frames of a device: that of its VLAN, if it has one.
fn of_vlan<'a>(snapshot: &'a Snapshot, device: &Device) -> Option<&'a saiga_interface::Interface> {
    let tags = tags(device);
    snapshot.interfaces().find(|one| one.tags == tags)
}

/// The tags of a device's frames.
fn tags(device: &Device) -> Tags {
    let vlan = device.vlan.map(Tag::vlan);
    vlan.map_or(Tags::None, Tags::One)
}

impl Plan {
    fn new(network: Network, indexes: Vec<u32>, serve: &[Serve]) -> Self {
        let addresses = network.interfaces.iter().flat_map(|one| &one.addresses);
        let addresses = addresses.map(ipnet::IpNet::addr);
        let served = addresses.flat_map(|address| served_at(address, serve));
        Self {
            served: served.collect(),
            network,
            indexes,
            neighbours: Vec::new(),
            left_out: Vec::new(),
        }
    }

    /// A neighbour of the kernel with the number of its interface in the network.
    pub(super) fn numbered(&self, neighbour: &Neighbour) -> Option<(usize, IpAddr, Option<Mac>)> {
        let is_its = |index: &u32| *index == neighbour.interface;
        let number = self.indexes.iter().position(is_its)?;
        Some((number, neighbour.address, neighbour.mac))
    }

    /// The index in the kernel of an interface of the network.
    pub(super) fn index(&self, number: usize) -> Option<u32> {
        self.indexes.get(number).copied()
    }
}

/// What is served at an address.
fn served_at(address: IpAddr, serve: &[Serve]) -> impl Iterator<Item = SocketAddr> {
    let here = serve
        .iter()
        .filter(move |one| one.address.is_none_or(|only| only == address));
    here.flat_map(move |one| {
        one.ports
            .iter()
            .map(move |port| SocketAddr::new(address, *port))
    })
}

/// Every host has addresses that are link-local or its own.
fn is_unexpected(reason: Reason) -> bool {
    !matches!(
        reason,
        Reason::LinkLocal | Reason::HostOnly | Reason::Multicast
    )
}

/// The network of a device that is the stack's alone.
fn of_settings(device: &Device, info: &Info) -> Network {
    let link = match info.mac {
        Some(mac) => Link::Ethernet {
            mac,
            tags: tags(device),
        },
        None => Link::None,
    };
    Network {
        interfaces: vec![Interface {
            link,
            mtu: device.mtu.unwrap_or(info.mtu),
            addresses: device.addresses.own().to_vec(),
        }],
        routes: own_routes(device),
    }
}

fn own_routes(device: &Device) -> Vec<Route> {
    match &device.addresses {
        Addresses::Kernel => Vec::new(),
        Addresses::Own { routes, .. } => routes
            .iter()
            .map(|route| Route {
                destination: route.destination,
                gateway: Some(route.gateway),
                interface: 0,
            })
            .collect(),
    }
}

#[cfg(test)]
mod tests;
