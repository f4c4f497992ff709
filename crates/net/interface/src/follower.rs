//! Changes of an interface while a program runs.
//!
//! Source: rtnetlink(7), netlink(7) (groups, `ENOBUFS`). The socket joins the groups before the
//! first snapshot, so that no change is missed; one that the snapshot has already may be told
//! again. Changes of neighbours are told one by one. For all others, the program takes a new
//! snapshot, because the kernel does not announce every route that vanishes with its interface or
//! address.

use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use netlink_sys::Socket;

use crate::address::Address;
use crate::link::Link;
use crate::message::messages;
use crate::neighbour::Neighbour;
use crate::netlink::{Client, DATAGRAM_BYTES, NetlinkError, open, receive};
use crate::route::{NextHop, RouteKind, RouteMessage};
use crate::snapshot::{Snapshot, SnapshotError, Which, take};

/// Most datagrams of one call of [`Follower::read`].
const MOST_DATAGRAMS: usize = 1024;
const GROUPS: libc::c_int = libc::RTMGRP_LINK
    | libc::RTMGRP_NEIGH
    | libc::RTMGRP_IPV4_IFADDR
    | libc::RTMGRP_IPV4_ROUTE
    | libc::RTMGRP_IPV6_IFADDR
    | libc::RTMGRP_IPV6_ROUTE;

/// Follows an interface and the VLANs on it.
///
/// The descriptor is readable when [`Self::read`] has something to tell.
#[derive(Debug)]
pub struct Follower {
    events: Socket,
    client: Client,
    buffer: Vec<u8>,
    known: Known,
}

/// What has changed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Changes {
    /// The strongest reason to call [`Follower::renew`], if there is one.
    pub cause: Option<Cause>,
    /// Neighbours that have changed, the oldest change first. A later snapshot has them, too.
    pub neighbours: Vec<Neighbour>,
}

/// Why a new snapshot is needed, the weakest reason first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cause {
    /// A route was added, changed or removed.
    Routes,
    /// An address was added, changed or removed.
    Addresses,
    /// Name, MAC address, MTU, state or carrier of an interface has changed, or a VLAN was added or
    /// removed.
    Link,
    /// More changed than the socket could hold.
    Overrun,
    /// The interface was removed, or has moved to another network namespace.
    Gone,
}

/// What the last snapshot said, as far as announcements may repeat it.
#[derive(Debug)]
struct Known {
    device: Link,
    vlans: Vec<Link>,
    addresses: Vec<(u32, Address)>,
}

impl Follower {
    /// Begins to follow the interface `name` in the network namespace of the calling thread.
    ///
    /// # Errors
    /// As [`Snapshot::take`]. Needs no privilege.
    pub fn start(name: &OsStr) -> Result<(Self, Snapshot), SnapshotError> {
        let events = open(GROUPS.cast_unsigned()).map_err(NetlinkError::Socket)?;
        let mut client = Client::open()?;
        let snapshot = take(&mut client, Which::Name(name))?;
        let follower = Self {
            events,
            client,
            buffer: vec![0; DATAGRAM_BYTES],
            known: Known::new(&snapshot),
        };
        Ok((follower, snapshot))
    }

    /// Reads what has changed, without waiting. If much has changed, the descriptor stays readable.
    ///
    /// # Errors
    /// If the socket fails.
    pub fn read(&mut self) -> Result<Changes, NetlinkError> {
        let mut changes = Changes::default();
        for _ in 0..MOST_DATAGRAMS {
            let length = match receive(&self.events, &mut self.buffer) {
                Ok(length) => length,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if error.raw_os_error() == Some(libc::ENOBUFS) => {
                    changes.add(Cause::Overrun);
                    continue;
                }
                Err(error) => return Err(NetlinkError::Socket(error)),
            };
            for message in messages(&self.buffer[..length]) {
                self.known
                    .judge(message.message_type(), message.payload(), &mut changes);
            }
        }
        Ok(changes)
    }

    /// Takes a new snapshot. The interface is found by its index, so that it may have another name.
    ///
    /// # Errors
    /// As [`Snapshot::take`]. After an error, call it again later.
    pub fn renew(&mut self) -> Result<Snapshot, SnapshotError> {
        let snapshot = take(&mut self.client, Which::Same(&self.known.device))?;
        self.known = Known::new(&snapshot);
        Ok(snapshot)
    }
}

impl AsFd for Follower {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.events.as_fd()
    }
}

impl Changes {
    fn add(&mut self, cause: Cause) {
        self.cause = self.cause.max(Some(cause));
    }
}

impl Known {
    fn new(snapshot: &Snapshot) -> Self {
        let addresses = snapshot.interfaces().flat_map(|interface| {
            let index = interface.link.index;
            interface.addresses.iter().map(move |one| (index, *one))
        });
        Self {
            device: snapshot.device.link.clone(),
            vlans: snapshot.vlans.iter().map(|one| one.link.clone()).collect(),
            addresses: addresses.collect(),
        }
    }

    fn link(&self, index: u32) -> Option<&Link> {
        let mut links = std::iter::once(&self.device).chain(&self.vlans);
        links.find(|link| link.index == index)
    }

    fn has(&self, index: u32) -> bool {
        self.link(index).is_some()
    }

    /// Adds what a message says to the changes.
    fn judge(&self, message_type: u16, message: &[u8], changes: &mut Changes) {
        let cause = match message_type {
            libc::RTM_NEWLINK => self.new_link(message),
            libc::RTM_DELLINK => self.removed_link(message),
            libc::RTM_NEWADDR | libc::RTM_DELADDR => {
                let is_new = message_type == libc::RTM_NEWADDR;
                Address::read(message)
                    .filter(|found| {
                        self.has(found.0) && !(is_new && self.addresses.contains(found))
                    })
                    .map(|_| Cause::Addresses)
            }
            libc::RTM_NEWROUTE | libc::RTM_DELROUTE => RouteMessage::read(message)
                .filter(|read| self.concerns(read))
                .map(|_| Cause::Routes),
            libc::RTM_NEWNEIGH | libc::RTM_DELNEIGH => {
                let neighbour = Neighbour::read(message).filter(|read| self.has(read.interface));
                let is_new = message_type == libc::RTM_NEWNEIGH;
                changes
                    .neighbours
                    .extend(neighbour.map(|read| if is_new { read } else { read.removed() }));
                None
            }
            _ => None,
        };
        if let Some(cause) = cause {
            changes.add(cause);
        }
    }

    /// The kernel repeats the description of an interface for reasons that do not matter here.
    fn new_link(&self, message: &[u8]) -> Option<Cause> {
        let link = Link::read(message)?;
        let has_changed = match self.link(link.index) {
            Some(known) => *known != link,
            None => link.vlan.is_some_and(|vlan| self.has(vlan.parent)),
        };
        has_changed.then_some(Cause::Link)
    }

    fn removed_link(&self, message: &[u8]) -> Option<Cause> {
        let link = self.link(Link::read(message)?.index)?;
        let is_device = link.index == self.device.index;
        Some(if is_device { Cause::Gone } else { Cause::Link })
    }

    fn concerns(&self, read: &RouteMessage) -> bool {
        let RouteMessage {
            interface,
            table,
            is_cloned,
            route,
        } = read;
        let tables = [libc::RT_TABLE_MAIN, libc::RT_TABLE_LOCAL].map(u32::from);
        let may_leave_here = interface.is_some_and(|index| self.has(index))
            || route.next_hop == NextHop::Several
            || RouteKind::REFUSING.contains(&route.kind);
        tables.contains(table) && !is_cloned && may_leave_here
    }
}

#[cfg(test)]
mod tests;
