//! Everything that the kernel knows about an interface and the VLANs on it, at one time.
//!
//! Source: rtnetlink(7). The kernel announces a change before it has removed the routes that depend
//! on it, and does not announce those (net/ipv4/fib_frontend.c, `fib_disable_ip`). The list of
//! interfaces is read first: the kernel holds it back until the change is complete, so the routes
//! that are read after it are right. What changes later is announced.

use std::ffi::{OsStr, OsString};
use std::io;

use saiga_wire::ethernet::Tags;

use crate::address::Address;
use crate::family::Family;
use crate::link::Link;
use crate::message::Request;
use crate::neighbour::Neighbour;
use crate::netlink::{Client, Dump, NetlinkError};
use crate::route::{Route, RouteKind, RouteMessage};

/// Most interfaces of the host; most addresses, routes and neighbours of one interface.
const MOST_ENTRIES: usize = 65_536;
/// How often a snapshot is begun anew because the kernel's tables changed in between.
const MOST_TRIES: usize = 16;

/// The state of an interface and of the VLANs on it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snapshot {
    /// The interface itself. Its frames have no tags.
    pub device: Interface,
    /// VLAN interfaces on it, and VLAN interfaces on these. Deeper ones are left out.
    pub vlans: Vec<Interface>,
    /// Routes of the main table that do not lead anywhere: blackhole, unreachable, prohibit, throw.
    pub refused: Vec<Route>,
}

/// The state of one interface.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Interface {
    /// The interface.
    pub link: Link,
    /// Tags of its frames on the device.
    pub tags: Tags,
    /// Its addresses.
    pub addresses: Vec<Address>,
    /// Routes of the tables main and local that leave through it.
    pub routes: Vec<Route>,
    /// Neighbours on its link.
    pub neighbours: Vec<Neighbour>,
}

/// Why there is no snapshot.
#[derive(Debug, thiserror::Error)]
pub enum SnapshotError {
    /// The interface does not exist in this network namespace.
    #[error("there is no network interface {name:?}")]
    NoInterface {
        /// Its name; the last one if it was found by its index.
        name: OsString,
    },
    /// A table of the kernel is too large.
    #[error("cannot {doing}: there are more than {limit}")]
    TooMany {
        /// What was read, as an infinitive.
        doing: &'static str,
        /// Most entries.
        limit: usize,
    },
    /// The kernel's tables changed all the time. A later attempt can succeed.
    #[error("the network configuration changed during each of {tries} attempts to read it")]
    Unsteady {
        /// Number of attempts.
        tries: usize,
    },
    /// The kernel did not answer.
    #[error(transparent)]
    Netlink(#[from] NetlinkError),
}

/// Which interface a snapshot is of.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Which<'a> {
    Name(&'a OsStr),
    /// The interface with the index of this one, whatever its name is now.
    Same(&'a Link),
}

impl Snapshot {
    /// Reads the state of the interface `name` in the network namespace of the calling thread.
    ///
    /// # Errors
    /// If the interface does not exist, has too many routes or neighbours, or netlink fails. Needs
    /// no privilege.
    pub fn take(name: &OsStr) -> Result<Self, SnapshotError> {
        take(&mut Client::open()?, Which::Name(name))
    }

    /// The device, then the VLANs.
    pub fn interfaces(&self) -> impl Iterator<Item = &Interface> {
        std::iter::once(&self.device).chain(&self.vlans)
    }
}

/// Reads the state of an interface until nothing changes meanwhile.
pub(crate) fn take(client: &mut Client, which: Which<'_>) -> Result<Snapshot, SnapshotError> {
    for _ in 1..MOST_TRIES {
        match attempt(client, which) {
            Err(SnapshotError::Unsteady { .. }) => {}
            done => return done,
        }
    }
    attempt(client, which)
}

fn attempt(client: &mut Client, which: Which<'_>) -> Result<Snapshot, SnapshotError> {
    let links = links(client)?;
    let is_wanted = |link: &&Link| match which {
        Which::Name(name) => link.name == name,
        Which::Same(known) => link.index == known.index,
    };
    let device = links
        .iter()
        .find(is_wanted)
        .ok_or_else(|| SnapshotError::NoInterface {
            name: match which {
                Which::Name(name) => name.to_owned(),
                Which::Same(known) => known.name.clone(),
            },
        })?;
    let mut vlans = Vec::new();
    for (tags, link) in vlans_on(&links, device.index) {
        vlans.push(interface(client, link, tags)?);
    }
    Ok(Snapshot {
        device: interface(client, device, Tags::None)?,
        vlans,
        refused: refused(client)?,
    })
}

/// The VLAN interfaces on an interface, with the tags of their frames.
fn vlans_on(links: &[Link], device: u32) -> Vec<(Tags, &Link)> {
    let on = |parent: u32| {
        links.iter().filter_map(move |link| {
            let vlan = link.vlan.filter(|vlan| vlan.parent == parent)?;
            Some((vlan.tag, link))
        })
    };
    let mut found = Vec::new();
    for (outer, link) in on(device) {
        found.push((Tags::One(outer), link));
        let inner = on(link.index);
        found.extend(inner.map(|(inner, link)| (Tags::Two { outer, inner }, link)));
    }
    found
}

fn interface(client: &mut Client, link: &Link, tags: Tags) -> Result<Interface, SnapshotError> {
    Ok(Interface {
        link: link.clone(),
        tags,
        addresses: addresses(client, link.index)?,
        routes: routes(client, link.index)?,
        neighbours: neighbours(client, link.index)?,
    })
}

fn links(client: &mut Client) -> Result<Vec<Link>, SnapshotError> {
    let filter = libc::RTEXT_FILTER_SKIP_STATS.cast_unsigned();
    let request = dump(libc::RTM_GETLINK, &[0; 16]);
    let request = request.with(libc::IFLA_EXT_MASK, &filter.to_ne_bytes());
    let mut found = Vec::new();
    read(
        client,
        "list the network interfaces",
        request,
        &mut found,
        Link::read,
    )?;
    Ok(found)
}

fn addresses(client: &mut Client, index: u32) -> Result<Vec<Address>, SnapshotError> {
    let mut found = Vec::new();
    for family in Family::ALL {
        let mut fields = [family.number(), 0, 0, 0, 0, 0, 0, 0];
        fields[4..].copy_from_slice(&index.to_ne_bytes());
        let request = dump(libc::RTM_GETADDR, &fields);
        let wanted = |message: &[u8]| {
            let (interface, address) = Address::read(message)?;
            let is_wanted = interface == index && Family::of(address.address) == family;
            is_wanted.then_some(address)
        };
        read(client, "list the addresses", request, &mut found, wanted)?;
    }
    Ok(found)
}

fn routes(client: &mut Client, index: u32) -> Result<Vec<Route>, SnapshotError> {
    let mut found = Vec::new();
    for family in Family::ALL {
        for table in [libc::RT_TABLE_MAIN, libc::RT_TABLE_LOCAL] {
            let fields = [family.number(), 0, 0, 0, table, 0, 0, 0, 0, 0, 0, 0];
            let request = dump(libc::RTM_GETROUTE, &fields);
            let request = request.with(libc::RTA_OIF, &index.to_ne_bytes());
            let wanted = |message: &[u8]| {
                let read = RouteMessage::read(message)?;
                // A route with several next hops has no interface of its own.
                let leaves_here = read.interface.is_none_or(|interface| interface == index);
                let is_refusing = RouteKind::REFUSING.contains(&read.route.kind);
                let is_wanted = leaves_here && !is_refusing && is_in(&read, family, table);
                is_wanted.then_some(read.route)
            };
            read(client, "list the routes", request, &mut found, wanted)?;
        }
    }
    Ok(found)
}

fn refused(client: &mut Client) -> Result<Vec<Route>, SnapshotError> {
    let mut found = Vec::new();
    for family in Family::ALL {
        for kind in RouteKind::REFUSING {
            let table = libc::RT_TABLE_MAIN;
            let fields = [
                family.number(),
                0,
                0,
                0,
                table,
                0,
                0,
                kind.number(),
                0,
                0,
                0,
                0,
            ];
            let request = dump(libc::RTM_GETROUTE, &fields);
            let wanted = |message: &[u8]| {
                let read = RouteMessage::read(message)?;
                let is_wanted = read.route.kind == kind && is_in(&read, family, table);
                is_wanted.then_some(read.route)
            };
            read(client, "list the routes", request, &mut found, wanted)?;
        }
    }
    Ok(found)
}

fn neighbours(client: &mut Client, index: u32) -> Result<Vec<Neighbour>, SnapshotError> {
    let mut found = Vec::new();
    for family in Family::ALL {
        let mut fields = [0; 12];
        fields[0] = family.number();
        let request = dump(libc::RTM_GETNEIGH, &fields);
        let request = request.with(libc::NDA_IFINDEX, &index.to_ne_bytes());
        let wanted = |message: &[u8]| {
            let neighbour = Neighbour::read(message)?;
            let is_wanted = neighbour.interface == index && Family::of(neighbour.address) == family;
            is_wanted.then_some(neighbour)
        };
        read(client, "list the neighbours", request, &mut found, wanted)?;
    }
    Ok(found)
}

/// Without a table or a family of that number, the kernel lists those of others.
fn is_in(read: &RouteMessage, family: Family, table: u8) -> bool {
    read.table == u32::from(table) && Family::of(read.route.destination.addr()) == family
}

fn dump(message_type: u16, fields: &[u8]) -> Request {
    Request::new(message_type, netlink_packet_core::NLM_F_DUMP, fields)
}

/// Adds the entries of a dump to `found`.
fn read<T>(
    client: &mut Client,
    doing: &'static str,
    request: Request,
    found: &mut Vec<T>,
    wanted: impl Fn(&[u8]) -> Option<T>,
) -> Result<(), SnapshotError> {
    let mut is_full = false;
    let done = client.request(doing, request, |message| {
        if let Some(entry) = wanted(message) {
            is_full = found.len() >= MOST_ENTRIES;
            if !is_full {
                found.push(entry);
            }
        }
    });
    let unsteady = SnapshotError::Unsteady { tries: MOST_TRIES };
    match done {
        Ok(Dump::Interrupted) => Err(unsteady),
        Ok(Dump::Consistent) if is_full => Err(SnapshotError::TooMany {
            doing,
            limit: MOST_ENTRIES,
        }),
        Ok(Dump::Consistent) => Ok(()),
        // There is no table of that number until it has its first route.
        Err(NetlinkError::Refused { source, .. }) if is(&source, libc::ENOENT) => Ok(()),
        // The interface has vanished.
        Err(NetlinkError::Refused { source, .. }) if is(&source, libc::ENODEV) => Err(unsteady),
        Err(error) => Err(error.into()),
    }
}

fn is(error: &io::Error, number: i32) -> bool {
    error.raw_os_error() == Some(number)
}

#[cfg(test)]
mod tests {
    use saiga_wire::ethernet::Tag;

    use super::*;
    use crate::link::Vlan;

    /// Interfaces 1 and 2 have VLANs, which are listed before their parents.
    #[test]
    fn vlans_are_found_two_deep() {
        let link = |index, vlan: Option<(u32, u16)>| Link {
            index,
            name: OsString::new(),
            mac: None,
            mtu: 1500,
            is_up: true,
            has_carrier: true,
            kind: String::new(),
            xdp_program: None,
            vlan: vlan.map(|(parent, id)| Vlan {
                parent,
                tag: Tag::vlan(id),
            }),
        };
        let links = [
            link(6, Some((5, 9))),
            link(5, Some((4, 8))),
            link(4, Some((1, 7))),
            link(7, Some((2, 7))),
            link(8, Some((1, 6))),
            link(1, None),
            link(2, None),
        ];
        let found: Vec<_> = vlans_on(&links, 1)
            .into_iter()
            .map(|(tags, link)| (tags, link.index))
            .collect();
        let (outer, inner) = (Tag::vlan(7), Tag::vlan(8));
        let expected = [
            (Tags::One(outer), 4),
            (Tags::Two { outer, inner }, 5),
            (Tags::One(Tag::vlan(6)), 8),
        ];
        assert_eq!(found, expected);
        assert_eq!(vlans_on(&links, 4).len(), 2);
    }
}
