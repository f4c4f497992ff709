//! What an interface of the process's own is given: its MAC address, MTU, addresses and routes.
//!
//! Source: rtnetlink(7), include/uapi/linux/{if_link,if_addr,rtnetlink}.h. The interface is a TAP
//! device, which vanishes with the process, and with it all that it was given: nothing is undone.
//!
//! Duplicates of addresses of IPv6 are not looked for, so that servers can use the addresses at
//! once. Routes have a high metric: those of other interfaces come first.

use std::io;
use std::net::IpAddr;

use ipnet::IpNet;
use netlink_packet_core::{NLM_F_ACK, NLM_F_CREATE, NLM_F_EXCL};
use netlink_sys::Socket;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::retry_on_intr;
use saiga_wire::ethernet::Mac;

use crate::family::Family;
use crate::message::Request;
use crate::netlink::{Client, DATAGRAM_BYTES, NetlinkError, open, receive};
use crate::route::{RouteKind, RouteMessage};

/// The metric of routes, behind those that DHCP clients and administrators use.
const METRIC: u32 = 20_000;
/// `IFA_F_NODAD`.
const NO_DETECTION: u32 = 0x02;
/// How long the kernel may take until any route of IPv6 changes.
const LIMIT: Timespec = Timespec {
    tv_sec: 10,
    tv_nsec: 0,
};

/// What an interface is given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Configuration {
    /// Index of the interface.
    pub index: u32,
    /// Its MAC address.
    pub mac: Mac,
    /// Bytes of its largest IP packet.
    pub mtu: u16,
    /// Its addresses, with the lengths of their networks' prefixes.
    pub addresses: Vec<IpNet>,
    /// Destinations with their routers.
    pub routes: Vec<(IpNet, IpAddr)>,
}

impl Configuration {
    /// Configures the interface and sets it up, in the network namespace of the calling thread.
    /// Packets to the addresses are for this host when it returns.
    ///
    /// # Errors
    /// If the right is missing, or the kernel refuses: it has an address or a route already, or no
    /// IPv6.
    pub fn apply(&self) -> Result<(), NetlinkError> {
        let mut client = Client::open()?;
        // Before the addresses, so that no route is missed.
        let events = open(libc::RTMGRP_IPV6_ROUTE.cast_unsigned()).map_err(NetlinkError::Socket)?;
        let mut change = |doing, request| client.request(doing, request, |_| {}).map(drop);
        change("set a TAP device up", self.link())?;
        for address in &self.addresses {
            change("give a TAP device its address", self.address(address))?;
        }
        for (destination, router) in &self.routes {
            let route = self.route(destination, *router);
            change("add a route through a TAP device", route)?;
        }
        let addresses = self.addresses.iter().map(IpNet::addr);
        addresses
            .filter(IpAddr::is_ipv6)
            .try_for_each(|address| await_local(&mut client, &events, address))
    }

    /// `struct ifinfomsg`.
    fn link(&self) -> Request {
        let up = libc::IFF_UP.cast_unsigned().to_ne_bytes();
        let fields = [[0; 4], self.index.to_ne_bytes(), up, up].concat();
        Request::new(libc::RTM_NEWLINK, NLM_F_ACK, &fields)
            .with(libc::IFLA_ADDRESS, &self.mac.0)
            .with(libc::IFLA_MTU, &u32::from(self.mtu).to_ne_bytes())
    }

    /// `struct ifaddrmsg`.
    fn address(&self, address: &IpNet) -> Request {
        let family = Family::of(address.addr());
        let mut fields = vec![family.number(), address.prefix_len(), 0, 0];
        fields.extend(self.index.to_ne_bytes());
        let request = Request::new(libc::RTM_NEWADDR, flags(), &fields)
            .with_ip(libc::IFA_LOCAL, address.addr())
            .with_ip(libc::IFA_ADDRESS, address.addr());
        match family {
            Family::V4 => request,
            Family::V6 => request.with(libc::IFA_FLAGS, &NO_DETECTION.to_ne_bytes()),
        }
    }

    /// `struct rtmsg`.
    fn route(&self, destination: &IpNet, router: IpAddr) -> Request {
        let family = Family::of(router).number();
        let (main, by_admin) = (libc::RT_TABLE_MAIN, libc::RTPROT_STATIC);
        let (everywhere, to_host) = (libc::RT_SCOPE_UNIVERSE, libc::RTN_UNICAST);
        let length = destination.prefix_len();
        let fields = [
            family, length, 0, 0, main, by_admin, everywhere, to_host, 0, 0, 0, 0,
        ];
        Request::new(libc::RTM_NEWROUTE, flags(), &fields)
            .with_ip(libc::RTA_DST, destination.network())
            .with_ip(libc::RTA_GATEWAY, router)
            .with(libc::RTA_OIF, &self.index.to_ne_bytes())
            .with(libc::RTA_PRIORITY, &METRIC.to_ne_bytes())
    }
}

/// Waits until packets to the address are for this host. The kernel adds its route in the
/// background (net/ipv6/addrconf.c, `addrconf_dad_work`), when the address can be bound already.
fn await_local(client: &mut Client, events: &Socket, address: IpAddr) -> Result<(), NetlinkError> {
    let mut buffer = vec![0; DATAGRAM_BYTES];
    while !is_local(client, address)? {
        let mut polled = [PollFd::new(events, PollFlags::IN)];
        let ready = retry_on_intr(|| poll(&mut polled, Some(&LIMIT)));
        if ready.map_err(|error| NetlinkError::Socket(error.into()))? == 0 {
            return Err(NetlinkError::Refused {
                doing: "deliver packets to the addresses of a TAP device",
                source: io::ErrorKind::TimedOut.into(),
            });
        }
        // Any event, or more of them than the socket can hold, is a reason to look again.
        let _event = receive(events, &mut buffer);
    }
    Ok(())
}

/// Whether packets to the address are for this host.
fn is_local(client: &mut Client, address: IpAddr) -> Result<bool, NetlinkError> {
    let fields = [
        Family::of(address).number(),
        128,
        0,
        0,
        0,
        0,
        0,
        0,
        0,
        0,
        0,
        0,
    ];
    let request = Request::new(libc::RTM_GETROUTE, NLM_F_ACK, &fields);
    let mut is_local = false;
    let found = client.request(
        "find a route",
        request.with_ip(libc::RTA_DST, address),
        |message| {
            let found = RouteMessage::read(message);
            is_local |= found.is_some_and(|found| found.route.kind == RouteKind::Local);
        },
    );
    match found {
        // There is no route at all.
        Err(NetlinkError::Refused { .. }) => Ok(false),
        found => found.map(|_| is_local),
    }
}

const fn flags() -> u16 {
    NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL
}
