//! Frames of the stack itself: ARP, neighbour discovery, ICMP and resets, and their way to the
//! device.

use alloc::collections::VecDeque;
use alloc::vec;
use alloc::vec::Vec;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use saiga_tcp::Instant;
use saiga_wire::ethernet::{EtherType, Mac};
use saiga_wire::frame::{Network, Writer};
use saiga_wire::ip::{Addresses, Protocol, TrafficClass};
use saiga_wire::{EmitError, arp, ethernet, icmp6, ipv4, ipv6, ndp, virtio};

use crate::config::{Config, Resolver};
use crate::counters::Counters;
use crate::neighbour::{Held, Neighbours, Resolution, Solicitation};
use crate::network::{Interface, Link, Network as Configured, NetworkError, Path, Routing};

/// Most frames that wait for the device.
const MOST_WAITING: usize = 1024;
/// Hop limit of packets (RFC 1700, and Linux's default).
pub(crate) const HOP_LIMIT: u8 = 64;

/// The IP host below TCP: routes, neighbours and the frames that wait.
#[derive(Debug)]
pub(crate) struct Host {
    pub(crate) routing: Routing,
    pub(crate) neighbours: Neighbours,
    waiting: VecDeque<Vec<u8>>,
    resolver: Resolver,
}

/// How frames reach a next hop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Hop {
    pub(crate) interface: u8,
    /// The number of the neighbour; `None` without a link layer.
    pub(crate) neighbour: Option<u32>,
}

impl Host {
    /// A host without interfaces.
    pub(crate) fn new(config: &Config, now: Instant) -> Self {
        Self {
            routing: Routing::default(),
            neighbours: Neighbours::new(config.most_neighbours as usize, config.resolver, now),
            waiting: VecDeque::new(),
            resolver: config.resolver,
        }
    }

    /// Replaces interfaces, addresses and routes; forgets the neighbours.
    pub(crate) fn configure(
        &mut self,
        network: Configured,
        now: Instant,
    ) -> Result<(), NetworkError> {
        self.routing = Routing::new(network)?;
        self.neighbours.clear(now);
        Ok(())
    }

    /// The next hop for packets from `source` to `destination`.
    pub(crate) fn hop(&mut self, source: IpAddr, destination: IpAddr, now: Instant) -> Option<Hop> {
        let Path {
            interface,
            next_hop,
        } = self.routing.path(source, destination)?;
        let neighbour = match self.routing.interface(interface)?.link {
            Link::Ethernet { .. } => Some(self.neighbours.find(interface, next_hop, now)?),
            Link::None => None,
        };
        Some(Hop {
            interface,
            neighbour,
        })
    }

    /// The Ethernet header for a hop, and whether the frame can leave now. A frame that cannot is
    /// given to [`Neighbours::hold`].
    #[inline]
    pub(crate) fn link(&mut self, hop: Hop, now: Instant) -> (Option<ethernet::Header>, bool) {
        let Some(number) = hop.neighbour else {
            return (None, true);
        };
        let (destination, is_known) = match self.neighbours.resolve(number, now) {
            Resolution::Known(mac) => (mac, true),
            Resolution::Unknown => (Mac([0; 6]), false),
        };
        let interface = self.routing.interface(hop.interface);
        let link = interface.and_then(|interface| ethernet_header(interface, destination));
        (link, is_known)
    }

    /// Sends a packet of the stack itself to `addresses.destination()`.
    pub(crate) fn send(
        &mut self,
        addresses: Addresses,
        now: Instant,
        counters: &mut Counters,
        write: impl FnOnce(&mut Writer<'_>) -> Result<usize, EmitError>,
    ) {
        let Some(hop) = self.hop(addresses.source(), addresses.destination(), now) else {
            counters.no_route += 1;
            return;
        };
        let (link, is_known) = self.link(hop, now);
        let Some(frame) = self.frame(hop.interface, link, write) else {
            counters.answers_dropped += 1;
            return;
        };
        match hop.neighbour {
            Some(number) if !is_known => self.neighbours.hold(
                number,
                Held {
                    frame,
                    offload: virtio::Header::NONE,
                },
            ),
            Some(_) | None => self.enqueue(frame, counters),
        }
    }

    /// Whether [`Self::poll`] may have a frame.
    #[inline]
    pub(crate) fn has_frames(&self) -> bool {
        !self.waiting.is_empty() || self.neighbours.has_frames()
    }

    /// The next frame that waits, in its order: answers, frames whose neighbour is known now,
    /// solicitations.
    pub(crate) fn poll(&mut self, now: Instant) -> Option<(Vec<u8>, virtio::Header)> {
        if let Some(frame) = self.waiting.pop_front() {
            return Some((frame, virtio::Header::NONE));
        }
        if let Some(held) = self.neighbours.poll_released() {
            return Some((held.frame, held.offload));
        }
        if self.resolver == Resolver::Owner {
            return None;
        }
        while let Some(solicitation) = self.neighbours.poll_solicitation(now) {
            if let Some(frame) = self.solicitation(&solicitation) {
                return Some((frame, virtio::Header::NONE));
            }
        }
        None
    }

    /// Writes a frame and puts it behind those that wait.
    pub(crate) fn send_on_link(
        &mut self,
        interface: u8,
        destination: Mac,
        counters: &mut Counters,
        write: impl FnOnce(&mut Writer<'_>) -> Result<usize, EmitError>,
    ) {
        let known = self.routing.interface(interface);
        let link = known.and_then(|interface| ethernet_header(interface, destination));
        match self.frame(interface, link, write) {
            Some(frame) => self.enqueue(frame, counters),
            None => counters.answers_dropped += 1,
        }
    }

    fn enqueue(&mut self, frame: Vec<u8>, counters: &mut Counters) {
        if self.waiting.len() >= MOST_WAITING {
            counters.answers_dropped += 1;
            return;
        }
        self.waiting.push_back(frame);
    }

    /// A frame that fits the MTU of the interface.
    fn frame(
        &self,
        interface: u8,
        link: Option<ethernet::Header>,
        write: impl FnOnce(&mut Writer<'_>) -> Result<usize, EmitError>,
    ) -> Option<Vec<u8>> {
        let mtu = usize::from(self.routing.interface(interface)?.mtu);
        let link_bytes = link.as_ref().map_or(0, ethernet::Header::len_bytes);
        let mut frame = vec![0; link_bytes + mtu];
        let mut writer = Writer {
            link: link.as_ref(),
            buffer: &mut frame,
        };
        let length = write(&mut writer).ok()?;
        frame.truncate(length);
        Some(frame)
    }

    /// The frame of a solicitation: ARP, or neighbour discovery (RFC 4861 §7.2.2).
    fn solicitation(&self, solicitation: &Solicitation) -> Option<Vec<u8>> {
        let interface = self.routing.interface(solicitation.interface)?;
        let Link::Ethernet { mac, .. } = interface.link else {
            return None;
        };
        let source = source_for(interface, solicitation.target)?;
        match (source, solicitation.target) {
            (IpAddr::V4(sender), IpAddr::V4(target)) => {
                let to = solicitation.mac.unwrap_or(Mac::BROADCAST);
                let request = arp::Packet {
                    operation: arp::Operation::Request,
                    sender_mac: mac,
                    sender,
                    target_mac: solicitation.mac.unwrap_or(Mac([0; 6])),
                    target,
                };
                let link = ethernet_header(interface, to);
                self.frame(solicitation.interface, link, |writer| writer.arp(&request))
            }
            (IpAddr::V6(source), IpAddr::V6(target)) => {
                let group = ndp::solicited_node(target);
                let (destination, to) = match solicitation.mac {
                    Some(mac) => (target, mac),
                    None => (group, Mac::of_ipv6_multicast(group)),
                };
                let source_mac = Some(mac);
                let message = ndp::Message::NeighbourSolicitation { target, source_mac };
                let link = ethernet_header(interface, to);
                self.frame(solicitation.interface, link, |writer| {
                    writer.icmp6(
                        &ndp_header(source, destination),
                        &icmp6::Message::Ndp(message),
                    )
                })
            }
            (IpAddr::V4(_), IpAddr::V6(_)) | (IpAddr::V6(_), IpAddr::V4(_)) => None,
        }
    }
}

/// The own address that asks for a neighbour: one of the neighbour's network if there is one.
fn source_for(interface: &Interface, target: IpAddr) -> Option<IpAddr> {
    let same_version = |one: &&ipnet::IpNet| one.addr().is_ipv4() == target.is_ipv4();
    let own = || interface.addresses.iter().filter(same_version);
    let near = own().find(|one| one.contains(&target));
    near.or_else(|| own().next()).map(ipnet::IpNet::addr)
}

fn ethernet_header(interface: &Interface, destination: Mac) -> Option<ethernet::Header> {
    match interface.link {
        Link::Ethernet { mac, tags } => Some(ethernet::Header {
            destination,
            source: mac,
            tags,
            // The writer sets the type.
            ether_type: EtherType::IPV4,
        }),
        Link::None => None,
    }
}

/// The header of a neighbour discovery message.
pub(crate) fn ndp_header(source: Ipv6Addr, destination: Ipv6Addr) -> ipv6::Header {
    ipv6::Header {
        hop_limit: ndp::HOP_LIMIT,
        ..header_v6(source, destination)
    }
}

/// The header of a packet that routers must not divide. Its identifier means nothing (RFC 6864
/// §4.1).
#[inline]
pub(crate) fn header_v4(source: Ipv4Addr, destination: Ipv4Addr) -> ipv4::Header {
    ipv4::Header {
        source,
        destination,
        protocol: Protocol::TCP,
        traffic_class: TrafficClass(0),
        ttl: HOP_LIMIT,
        id: 0,
        dont_fragment: true,
        more_fragments: false,
        fragment_offset: 0,
    }
}

/// The header of a packet.
#[inline]
pub(crate) fn header_v6(source: Ipv6Addr, destination: Ipv6Addr) -> ipv6::Header {
    ipv6::Header {
        source,
        destination,
        protocol: Protocol::TCP,
        traffic_class: TrafficClass(0),
        flow_label: 0,
        hop_limit: HOP_LIMIT,
    }
}

/// The header of a packet with these addresses.
#[inline]
pub(crate) fn header(addresses: &Addresses) -> Network {
    match *addresses {
        Addresses::V4 {
            source,
            destination,
        } => Network::V4(header_v4(source, destination)),
        Addresses::V6 {
            source,
            destination,
        } => Network::V6(header_v6(source, destination)),
    }
}
