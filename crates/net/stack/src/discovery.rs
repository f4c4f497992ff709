//! ARP and neighbour discovery: what other hosts ask and say.
//!
//! Spec: RFC 826, RFC 5227 (probes and announcements), RFC 4861 §7.2. Router discovery is absent:
//! the owner configures routes.

use core::net::{IpAddr, Ipv6Addr};

use saiga_tcp::Instant;
use saiga_wire::ethernet::Mac;
use saiga_wire::ndp::{self, NeighbourAdvertisement};
use saiga_wire::offload::ChecksumState;
use saiga_wire::{arp, icmp6};

use crate::config::{Presence, Resolver};
use crate::host::ndp_header;
use crate::neighbour::News;
use crate::owner::Owner;
use crate::stack::{Stack, Verdict};

/// All hosts of a link (RFC 4291 §2.7.1).
const ALL_NODES: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1);

impl Stack {
    /// Sets the MAC address of a neighbour, such as one that the kernel has resolved. It is not
    /// probed, and holds until [`Self::configure`] or [`Self::forget_neighbour`]. False if there
    /// are too many neighbours.
    pub fn set_neighbour(
        &mut self,
        interface: usize,
        address: IpAddr,
        mac: Mac,
        now: Instant,
    ) -> bool {
        let Ok(interface) = u8::try_from(interface) else {
            return false;
        };
        let key = (interface, address);
        self.host.neighbours.set_permanent(key, mac, now)
    }

    /// Forgets the MAC address of a neighbour. Frames that wait for it are dropped, and the next
    /// packet to it asks again.
    pub fn forget_neighbour(&mut self, interface: usize, address: IpAddr) {
        if let Ok(interface) = u8::try_from(interface) {
            self.host.neighbours.forget((interface, address));
        }
    }

    /// Learns from a frame that another stack with the same addresses has got
    /// ([`Verdict::Shared`]), and that this stack must not answer.
    pub fn overhear(&mut self, frame: &[u8], now: Instant, owner: &mut impl Owner) {
        let presence = core::mem::replace(&mut self.config.presence, Presence::BesideKernel);
        // The other stack has verified the checksum.
        let _verdict = self.receive(frame, ChecksumState::Trusted, now, owner);
        self.config.presence = presence;
    }

    /// A neighbour that the owner must resolve, if that is the owner's task
    /// ([`Resolver::Owner`]): number of the interface, and address. It comes again, each second,
    /// while there is no answer, and when a connection makes no progress with the MAC address that
    /// was set.
    pub fn poll_unresolved(&mut self, now: Instant) -> Option<(usize, IpAddr)> {
        if self.config.resolver != Resolver::Owner {
            return None;
        }
        let asked = self.host.neighbours.poll_solicitation(now)?;
        Some((asked.interface.into(), asked.target))
    }

    /// Announces all addresses, so that other hosts and switches learn where they are now.
    pub fn announce(&mut self) {
        for index in (0..).take(self.host.routing.interfaces().len()) {
            let Some(mac) = self.mac(index) else {
                continue;
            };
            let interface = self.host.routing.interface(index);
            let own = interface.map(|one| one.addresses.clone());
            for address in own.unwrap_or_default() {
                match address.addr() {
                    IpAddr::V4(own) => self.send_arp(
                        (index, Mac::BROADCAST),
                        &arp::Packet {
                            operation: arp::Operation::Request,
                            sender_mac: mac,
                            sender: own,
                            target_mac: Mac([0; 6]),
                            target: own,
                        },
                    ),
                    IpAddr::V6(own) => self.advertise_to_all(index, own, mac),
                }
            }
        }
    }

    /// Handles an ARP packet.
    pub(crate) fn on_arp(&mut self, interface: u8, packet: &arp::Packet, now: Instant) -> Verdict {
        let own_mac = self.mac(interface);
        let routing = &self.host.routing;
        let is_for_us = routing.interface_with(packet.target.into()) == Some(interface);
        let is_request = packet.operation == arp::Operation::Request;
        if self.is_host(packet.sender.into()) {
            let news = if is_request && is_for_us {
                News::Request
            } else if !is_request && Some(packet.target_mac) == own_mac {
                News::Answer { overrides: true }
            } else {
                News::Announcement { overrides: true }
            };
            let key = (interface, packet.sender.into());
            self.host
                .neighbours
                .learn(key, packet.sender_mac, news, now);
        }
        if let Some(mac) = own_mac
            && self.config.presence == Presence::Alone
            && is_request
            && is_for_us
        {
            let reply = arp::Packet {
                operation: arp::Operation::Reply,
                sender_mac: mac,
                sender: packet.target,
                target_mac: packet.sender_mac,
                target: packet.sender,
            };
            self.send_arp((interface, packet.sender_mac), &reply);
        }
        Verdict::Shared
    }

    /// Handles a neighbour discovery message from `source`.
    pub(crate) fn on_ndp(
        &mut self,
        interface: u8,
        source: Ipv6Addr,
        message: &ndp::Message<'_>,
        now: Instant,
    ) -> Verdict {
        match message {
            ndp::Message::NeighbourSolicitation { target, source_mac } => {
                let routing = &self.host.routing;
                if routing.interface_with((*target).into()) == Some(interface) {
                    self.on_solicitation(interface, source, *target, *source_mac, now);
                }
                Verdict::Shared
            }
            ndp::Message::NeighbourAdvertisement(advertisement) => {
                self.on_advertisement(interface, advertisement, now);
                Verdict::Shared
            }
            ndp::Message::RouterSolicitation { .. } | ndp::Message::RouterAdvertisement(_) => {
                Verdict::NotOurs
            }
        }
    }

    /// A host asks for an own address (RFC 4861 §7.2.3, §7.2.4).
    fn on_solicitation(
        &mut self,
        interface: u8,
        source: Ipv6Addr,
        target: Ipv6Addr,
        source_mac: Option<Mac>,
        now: Instant,
    ) {
        let is_host = self.is_host(source.into());
        if is_host && let Some(mac) = source_mac {
            let key = (interface, source.into());
            self.host.neighbours.learn(key, mac, News::Request, now);
        }
        let Some(mac) = self.mac(interface) else {
            return;
        };
        if self.config.presence == Presence::BesideKernel {
            return;
        }
        if source.is_unspecified() {
            // Another host wants the address for itself (RFC 4862 §5.4.3).
            self.advertise_to_all(interface, target, mac);
            return;
        }
        let advertisement = NeighbourAdvertisement {
            router: false,
            solicited: true,
            overrides: true,
            target,
            target_mac: Some(mac),
        };
        let header = ndp_header(target, source);
        let message = icmp6::Message::Ndp(ndp::Message::NeighbourAdvertisement(advertisement));
        self.host
            .send(header.addresses(), now, &mut self.counters, |writer| {
                writer.icmp6(&header, &message)
            });
    }

    /// A host gives its MAC address (RFC 4861 §7.2.5).
    fn on_advertisement(
        &mut self,
        interface: u8,
        advertisement: &NeighbourAdvertisement,
        now: Instant,
    ) {
        let target = IpAddr::V6(advertisement.target);
        // The answer to a unicast solicitation need not repeat the MAC address (RFC 4861 §4.4).
        let known = || self.host.neighbours.mac((interface, target));
        let Some(mac) = advertisement.target_mac.or_else(known) else {
            return;
        };
        if !self.is_host(target) {
            return;
        }
        let overrides = advertisement.overrides;
        let news = if advertisement.solicited {
            News::Answer { overrides }
        } else {
            News::Announcement { overrides }
        };
        self.host
            .neighbours
            .learn((interface, target), mac, news, now);
    }

    fn send_arp(&mut self, (interface, to): (u8, Mac), packet: &arp::Packet) {
        self.host
            .send_on_link(interface, to, &mut self.counters, |writer| {
                writer.arp(packet)
            });
    }

    fn advertise_to_all(&mut self, interface: u8, own: Ipv6Addr, mac: Mac) {
        let advertisement = NeighbourAdvertisement {
            router: false,
            solicited: false,
            overrides: true,
            target: own,
            target_mac: Some(mac),
        };
        let to = Mac::of_ipv6_multicast(ALL_NODES);
        let message = icmp6::Message::Ndp(ndp::Message::NeighbourAdvertisement(advertisement));
        self.host
            .send_on_link(interface, to, &mut self.counters, |writer| {
                writer.icmp6(&ndp_header(own, ALL_NODES), &message)
            });
    }
}
