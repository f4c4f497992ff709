//! Requests to the kernel to resolve and to confirm neighbours.
//!
//! Source: net/core/neighbour.c, `neigh_add`; RFC 4861 §7.3.1. Needs CAP_NET_ADMIN. The kernel does
//! not see the traffic of an AF_XDP socket, so it would take a neighbour in use for an idle one.
//! `NTF_USE` counts as a packet to the neighbour: the kernel asks for its MAC address, or verifies
//! an old one. A new state `NUD_REACHABLE` counts as a confirmation by the upper layer.
//!
//! Both would turn an entry of the administrator (`NUD_PERMANENT`) into one that expires, so each
//! request is preceded by a look at the entry. The caller limits the rate.

use std::io;
use std::net::IpAddr;

use netlink_packet_core::{NLM_F_ACK, NLM_F_CREATE};
use saiga_wire::ethernet::Mac;

use crate::family::Family;
use crate::message::Request;
use crate::neighbour::{Neighbour, NeighbourState};
use crate::netlink::{Client, NetlinkError};

/// Asks the kernel of the network namespace in which it was opened.
///
/// A call makes two to four system calls and does not wait for the neighbour. It can wait while
/// another process changes the network configuration (the kernel's RTNL lock), so a worker with
/// connections should leave the calls to another thread.
#[derive(Debug)]
pub struct Resolver(Client);

impl Resolver {
    /// Opens a socket in the network namespace of the calling thread.
    ///
    /// # Errors
    /// If the socket cannot be opened.
    pub fn open() -> Result<Self, NetlinkError> {
        Ok(Self(Client::open()?))
    }

    /// Asks the kernel for the MAC address of a neighbour on the interface with this index. Also
    /// makes the kernel verify a stale one. [`Follower::read`](crate::Follower::read) tells the
    /// result. Does nothing if the administrator has set the MAC address.
    ///
    /// # Errors
    /// If the right is missing, or the kernel refuses: the interface does not exist (`ENODEV`), or
    /// the table is full (`ENOBUFS`).
    pub fn resolve(&mut self, interface: u32, address: IpAddr) -> Result<(), NetlinkError> {
        const DOING: &str = "resolve a neighbour";
        let found = self.find(interface, address)?;
        if found.is_some_and(|found| found.state == NeighbourState::Permanent) {
            return Ok(());
        }
        let (state, flags) = (libc::NUD_NONE, libc::NTF_USE);
        let fields = fields(interface, address, state, flags);
        let request = Request::new(libc::RTM_NEWNEIGH, NLM_F_ACK | NLM_F_CREATE, &fields);
        let request = request.with_ip(libc::NDA_DST, address);
        self.0.request(DOING, request, |_| {})?;
        Ok(())
    }

    /// Tells the kernel that packets of the neighbour arrive in answer to ours, so that it is
    /// reachable. False if there is nothing to confirm: the kernel has no entry with this MAC
    /// address, or the administrator has set it.
    ///
    /// # Errors
    /// As [`Self::resolve`].
    pub fn confirm(
        &mut self,
        interface: u32,
        address: IpAddr,
        mac: Mac,
    ) -> Result<bool, NetlinkError> {
        const DOING: &str = "confirm a neighbour";
        let found = self
            .find(interface, address)?
            .filter(|found| found.mac == Some(mac) && found.state != NeighbourState::Permanent);
        if found.is_none() {
            return Ok(false);
        }
        // Without NLM_F_CREATE and NLM_F_REPLACE, an entry that has gone or changed since stays so.
        let fields = fields(interface, address, libc::NUD_REACHABLE, 0);
        let request = Request::new(libc::RTM_NEWNEIGH, NLM_F_ACK, &fields)
            .with_ip(libc::NDA_DST, address)
            .with(libc::NDA_LLADDR, &mac.0);
        is_there(self.0.request(DOING, request, |_| {}))
    }

    /// The kernel's entry for a neighbour.
    fn find(&mut self, interface: u32, address: IpAddr) -> Result<Option<Neighbour>, NetlinkError> {
        let fields = fields(interface, address, 0, 0);
        let request = Request::new(libc::RTM_GETNEIGH, NLM_F_ACK, &fields);
        let request = request.with_ip(libc::NDA_DST, address);
        let mut found = None;
        let done = self.0.request("look up a neighbour", request, |message| {
            found = Neighbour::read(message);
        });
        is_there(done)?;
        Ok(found)
    }
}

/// The fields of `struct ndmsg`.
fn fields(interface: u32, address: IpAddr, state: u16, flags: u8) -> [u8; 12] {
    let [i0, i1, i2, i3] = interface.to_ne_bytes();
    let [s0, s1] = state.to_ne_bytes();
    let family = Family::of(address).number();
    [family, 0, 0, 0, i0, i1, i2, i3, s0, s1, flags, 0]
}

/// Whether the entry of a request exists.
fn is_there<T>(done: Result<T, NetlinkError>) -> Result<bool, NetlinkError> {
    match done {
        Ok(_) => Ok(true),
        Err(NetlinkError::Refused { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
            Ok(false)
        }
        Err(error) => Err(error),
    }
}
