//! The way of a frame that has come: link layer, IP, and the connection of a segment.

use alloc::vec::Vec;
use core::net::IpAddr;

use saiga_tcp::{Arrival, CloseReason, Context, Instant, Place, reset_for};
use saiga_wire::ethernet::{EtherType, Mac};
use saiga_wire::frame::{Network, Packet, Transport};
use saiga_wire::ip::{Addresses, Ecn, Protocol, TrafficClass};
use saiga_wire::offload::{ChecksumState, Fill};
use saiga_wire::tcp::{Flags, Header, Segment};
use saiga_wire::{Malformed, arp, ethernet, ipv4, ipv6};

use crate::config::Presence;
use crate::flow::Flow;
use crate::fragment::Outcome;
use crate::handshake::NoPlace;
use crate::host::header;
use crate::network::Link;
use crate::owner::Owner;
use crate::slab::ConnectionId;
use crate::slot::State;
use crate::stack::{Stack, Verdict};

/// Most packets put together from fragments that wait for the caller: 4 MiB.
const MOST_HANDED_BACK: usize = 64;

/// How a packet has come.
#[derive(Debug, Clone, Copy)]
struct Way {
    interface: u8,
    /// Whether the frame went to many hosts.
    is_group: bool,
    state: ChecksumState,
}

/// What a segment needs of its packet.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Around {
    addresses: Addresses,
    class: TrafficClass,
}

/// The payload of a segment and its way to the owner.
struct Placing<'a, O> {
    id: ConnectionId,
    payload: &'a [u8],
    owner: &'a mut O,
}

impl<O: Owner> Place for Placing<'_, O> {
    fn place(&mut self, from: u32, to: u32, length: u32) {
        let bytes = &self.payload[from as usize..][..length as usize];
        self.owner.place(self.id, to, bytes);
    }

    fn room(&mut self, end: u32) -> u32 {
        self.owner.room(self.id, end)
    }
}

impl Stack {
    pub(crate) fn receive(
        &mut self,
        frame: &[u8],
        state: ChecksumState,
        now: Instant,
        owner: &mut impl Owner,
    ) -> Verdict {
        let first = self.host.routing.interfaces().first();
        if first.is_some_and(|interface| interface.link == Link::None) {
            let is_v6 = frame.first().is_some_and(|first| first >> 4 == 6);
            let way = Way {
                interface: 0,
                is_group: false,
                state,
            };
            return self.on_ip(is_v6, frame, way, now, owner);
        }
        let (link, payload) = match ethernet::Header::parse(frame) {
            Ok(parsed) => parsed,
            Err(reason) => return self.on_malformed(reason, &[], now),
        };
        let Some(interface) = self.host.routing.interface_of(link.tags) else {
            return Verdict::NotOurs;
        };
        let is_group = link.destination.is_group();
        if !is_group && Some(link.destination) != self.mac(interface) {
            return Verdict::NotOurs;
        }
        let way = Way {
            interface,
            is_group,
            state,
        };
        match link.ether_type {
            EtherType::IPV4 => self.on_ip(false, payload, way, now, owner),
            EtherType::IPV6 => self.on_ip(true, payload, way, now, owner),
            EtherType::ARP => match arp::Packet::parse(payload) {
                Ok(packet) => self.on_arp(interface, &packet, now),
                Err(reason) => self.on_malformed(reason, &[], now),
            },
            _ => Verdict::NotOurs,
        }
    }

    /// Handles an IP packet. Segments of TCP in packets that are whole take the short way: a
    /// [`Packet`] has room for everything else, and is written as a whole.
    #[inline]
    fn on_ip(
        &mut self,
        is_v6: bool,
        bytes: &[u8],
        way: Way,
        now: Instant,
        owner: &mut impl Owner,
    ) -> Verdict {
        let found = if is_v6 {
            tcp_in_v6(bytes)
        } else {
            tcp_in_v4(bytes)
        };
        let Some((around, tcp)) = found.filter(|_| !way.is_group) else {
            return self.on_other_ip(is_v6, bytes, way, now, owner);
        };
        match Segment::parse_in(&around.addresses, tcp, way.state) {
            Ok(segment) => self.on_segment(around, &segment, now, owner),
            Err(reason) => self.on_malformed(reason, bytes, now),
        }
    }

    /// Handles an IP packet that is not a whole one of TCP.
    #[cold]
    fn on_other_ip(
        &mut self,
        is_v6: bool,
        bytes: &[u8],
        way: Way,
        now: Instant,
        owner: &mut impl Owner,
    ) -> Verdict {
        let parsed = if is_v6 {
            Packet::parse_ipv6(bytes, way.state)
        } else {
            Packet::parse_ipv4(bytes, way.state)
        };
        match parsed {
            Ok(packet) => self.on_packet(way.interface, &packet, way.is_group, now, owner),
            Err(reason) => self.on_malformed(reason, bytes, now),
        }
    }

    /// The MAC address of an interface.
    pub(crate) fn mac(&self, interface: u8) -> Option<Mac> {
        match self.host.routing.interface(interface)?.link {
            Link::Ethernet { mac, .. } => Some(mac),
            Link::None => None,
        }
    }

    /// Handles an IP packet. `is_group`: the frame went to many hosts.
    pub(crate) fn on_packet(
        &mut self,
        interface: u8,
        packet: &Packet<'_>,
        is_group: bool,
        now: Instant,
        owner: &mut impl Owner,
    ) -> Verdict {
        match &packet.transport {
            // RFC 9293 MUST-57: a connection has two ends.
            Transport::Tcp(_) if is_group => Verdict::NotOurs,
            Transport::Tcp(segment) => {
                let around = Around {
                    addresses: packet.network.addresses(),
                    class: packet.network.traffic_class(),
                };
                self.on_segment(around, segment, now, owner)
            }
            Transport::Icmp4(message) => self.on_icmp4(packet, message, is_group, now, owner),
            Transport::Icmp6(message) => {
                self.on_icmp6(interface, packet, message, is_group, now, owner)
            }
            Transport::Fragment(fragment, payload) => {
                if !self.takes_fragments(&packet.network) {
                    return Verdict::NotOurs;
                }
                match self.reassembly.add(packet.network, *fragment, payload, now) {
                    Outcome::Incomplete => {}
                    Outcome::Overlap => self.counters.fragments_overlapped += 1,
                    Outcome::Complete(whole) => {
                        self.on_reassembled(interface, whole, is_group, now, owner);
                    }
                }
                Verdict::Taken
            }
            Transport::Other(_) => self.on_other(packet, is_group, now),
        }
    }

    /// Beside the kernel, fragments of TCP only are put together here: nothing else is served.
    /// Which connection they belong to is known when the packet is whole.
    fn takes_fragments(&self, network: &Network) -> bool {
        let is_served = match self.config.presence {
            Presence::Alone => true,
            Presence::BesideKernel => network.protocol() == Protocol::TCP,
        };
        is_served && self.host.routing.is_own(network.addresses().destination())
    }

    fn on_reassembled(
        &mut self,
        interface: u8,
        whole: Vec<u8>,
        is_group: bool,
        now: Instant,
        owner: &mut impl Owner,
    ) {
        let verdict = match Packet::parse_reassembled(&whole) {
            Ok(packet) => self.on_packet(interface, &packet, is_group, now, owner),
            Err(reason) => {
                self.count(reason);
                return;
            }
        };
        if verdict == Verdict::Taken || self.config.presence == Presence::Alone {
            return;
        }
        if self.handed_back.len() >= MOST_HANDED_BACK {
            self.counters.hand_backs_dropped += 1;
            return;
        }
        self.counters.handed_back += 1;
        self.handed_back.push_back(whole);
    }

    pub(crate) fn count(&mut self, reason: Malformed) {
        self.counters.malformed[reason as usize] += 1;
    }

    /// Handles a segment whose checksum is right.
    #[inline]
    fn on_segment(
        &mut self,
        around: Around,
        segment: &Segment<'_>,
        now: Instant,
        owner: &mut impl Owner,
    ) -> Verdict {
        let flow = Flow::of_arrival(around.addresses, segment.header.ports);
        let is_congested = around.class.ecn() == Ecn::Congested;
        let Some(index) = self.connections.find(&flow) else {
            return self.on_unknown(&flow, (segment, is_congested), now, owner);
        };
        if self.on_known(index, segment, is_congested, now, owner) {
            return self.on_unknown(&flow, (segment, is_congested), now, owner);
        }
        Verdict::Taken
    }

    /// A segment of a connection that the owner has not decided about: the peer may give up, and
    /// what it sends behind a cookie waits (RFC 9293 §3.10.7.4). A peer that has no answer to its
    /// SYN sends nothing else.
    #[cold]
    pub(crate) fn on_undecided(
        &mut self,
        id: ConnectionId,
        segment: &Segment<'_>,
        is_congested: bool,
        now: Instant,
        owner: &mut impl Owner,
    ) {
        let Some(slot) = self.connections.slots.get_mut(id) else {
            return;
        };
        let header = &segment.header;
        let is_reset = header.flags.contains(Flags::RST);
        let arrival = arrival(segment, is_congested);
        match &mut slot.state {
            State::Undecided { syn, .. } if is_reset && header.seq == syn.seq + 1 => {
                self.connections.end(id, CloseReason::Reset, owner);
            }
            State::Proven(proven) if is_reset => {
                let mut context = Context {
                    now,
                    config: self.connections.settings.get(slot.settings),
                    counters: &mut self.counters.tcp,
                };
                let connection = &mut proven.connection;
                let events = connection.on_segment(&arrival, &mut NoPlace, &mut context);
                if let Some(reason) = events.closed {
                    self.connections.end(id, reason, owner);
                }
            }
            State::Proven(_) if arrival.length > 0 || header.flags.contains(Flags::FIN) => {
                self.connections.hold(id, &arrival, segment.payload);
            }
            State::Undecided { .. } | State::Proven(_) | State::Engine(_) => {}
        }
    }

    /// Gives a segment to its connection. True if the old connection is gone and the segment begins
    /// another one: it is a SYN, and the old one was in TIME-WAIT, or it has a SYN cookie.
    pub(crate) fn on_known(
        &mut self,
        index: u32,
        segment: &Segment<'_>,
        is_congested: bool,
        now: Instant,
        owner: &mut impl Owner,
    ) -> bool {
        if let Some(is_other) = self.on_other_answer(index, segment, now, owner) {
            return is_other;
        }
        let Some((id, slot)) = self.connections.slots.entry(index) else {
            return false;
        };
        let State::Engine(connection) = &mut slot.state else {
            self.on_undecided(id, segment, is_congested, now, owner);
            return false;
        };
        let was_waiting = connection.is_time_wait();
        let arrival = arrival(segment, is_congested);
        let mut place = Placing {
            id,
            payload: segment.payload,
            owner,
        };
        let mut context = Context {
            now,
            config: self.connections.settings.get(slot.settings),
            counters: &mut self.counters.tcp,
        };
        let events = connection.on_segment(&arrival, &mut place, &mut context);
        if events.is_established
            && let Some(size) = self.paths.to(slot.flow.remote().ip(), now)
        {
            connection.on_path_mtu(size, &mut context);
        }
        let epoch = self.host.neighbours.epoch();
        // Progress shows that the neighbour is there (RFC 4861 §7.3.1).
        if (events.acked > 0 || events.is_established)
            && let Some(neighbour) = slot.neighbour(epoch)
        {
            self.host.neighbours.confirm(neighbour, now);
        }
        let must_queue = !core::mem::replace(&mut slot.is_ready, true);
        if must_queue {
            self.connections.queue(index);
        }
        self.connections.report(id, &events, owner);
        if was_waiting && events.closed.is_some() {
            self.connections.remove(index);
            return true;
        }
        false
    }

    /// A segment that acknowledges another answer to its SYN than this connection's: the peer has
    /// sent the SYN twice, and has taken the cookie that answered the first one. With a valid
    /// cookie, the segment begins another connection (true), and this one is gone. Without one, it
    /// is dropped (false), as where there is no connection: this one would reset the peer.
    #[inline]
    fn on_other_answer(
        &mut self,
        index: u32,
        segment: &Segment<'_>,
        now: Instant,
        owner: &mut impl Owner,
    ) -> Option<bool> {
        let (id, slot) = self.connections.slots.entry(index)?;
        let State::Engine(connection) = &slot.state else {
            return None;
        };
        if !connection.is_acknowledged_elsewhere(&segment.header) {
            return None;
        }
        let flow = slot.flow;
        let is_other = self.has_cookie(&flow, segment, now)?;
        if is_other {
            self.connections.end(id, CloseReason::Reset, owner);
        }
        Some(is_other)
    }

    /// A segment without a connection.
    fn on_unknown(
        &mut self,
        flow: &Flow,
        (segment, is_congested): (&Segment<'_>, bool),
        now: Instant,
        owner: &mut impl Owner,
    ) -> Verdict {
        let (own, peer) = (flow.addresses.source(), flow.addresses.destination());
        if !self.host.routing.is_own(own) {
            return Verdict::NotOurs;
        }
        let header = &segment.header;
        let is_open = header.flags.contains(Flags::SYN)
            && header.ack.is_none()
            && !header.flags.intersects(Flags::RST | Flags::FIN);
        let listener = self.connections.listeners.find(flow.local());
        if !self.is_host(peer) {
            // RFC 9293 MUST-63: no host has the address, or this host has it.
            return match (listener, self.config.presence) {
                (None, Presence::BesideKernel) => Verdict::NotOurs,
                (Some(_), Presence::BesideKernel) | (_, Presence::Alone) => Verdict::Taken,
            };
        }
        match listener {
            Some(listener) if is_open => {
                self.on_syn(listener, flow, header, now, owner);
                Verdict::Taken
            }
            // RFC 9293 §3.10.7.2, fourth: dropped. So is a SYN with a FIN, as by Linux. Beside the
            // kernel, the segment can be one of a connection of the kernel.
            Some(_) if header.ack.is_none() && self.config.presence == Presence::Alone => {
                Verdict::Taken
            }
            Some(listener)
                if self.on_cookie(listener, flow, (segment, is_congested), now, owner) =>
            {
                Verdict::Taken
            }
            Some(_) | None => self.on_stray(flow, segment, now),
        }
    }

    /// Whether an address can be that of another host.
    pub(crate) fn is_host(&self, address: IpAddr) -> bool {
        let routing = &self.host.routing;
        !address.is_unspecified()
            && !address.is_multicast()
            && !address.is_loopback()
            && !routing.is_own(address)
            && !routing.is_broadcast(address)
    }

    /// A segment that belongs to nothing: a reset answers it (RFC 9293 §3.10.7.1). Beside the
    /// kernel, it can belong to the kernel.
    fn on_stray(&mut self, flow: &Flow, segment: &Segment<'_>, now: Instant) -> Verdict {
        if self.config.presence == Presence::BesideKernel {
            return Verdict::NotOurs;
        }
        let length = u32::try_from(segment.payload.len()).unwrap_or(u32::MAX);
        self.reset(flow, &segment.header, length, now);
        Verdict::Taken
    }

    /// Answers a segment with a reset, if that is allowed.
    pub(crate) fn reset(&mut self, flow: &Flow, to: &Header, length: u32, now: Instant) {
        let Some(reset) = reset_for(to, length) else {
            return;
        };
        if !self.limits.resets.allows(now) {
            self.counters.answers_limited += 1;
            return;
        }
        self.counters.out_rsts += 1;
        let reset = Header {
            ports: flow.ports,
            ..reset
        };
        let network = header(&flow.addresses);
        self.host
            .send(flow.addresses, now, &mut self.counters, |writer| {
                writer.tcp(&network, &reset, &[], Fill::Checksum)
            });
    }
}

/// A segment as the engine takes it.
#[inline]
fn arrival<'a>(segment: &'a Segment<'_>, is_congested: bool) -> Arrival<'a> {
    Arrival {
        header: &segment.header,
        // The length of an IP packet has 16 bits.
        length: u32::try_from(segment.payload.len()).unwrap_or(u32::MAX),
        is_congested,
    }
}

/// The TCP segment in a packet that is whole and well-formed.
#[inline(always)]
fn tcp_in_v4(bytes: &[u8]) -> Option<(Around, &[u8])> {
    let packet = ipv4::Packet::parse(bytes).ok()?;
    let header = &packet.header;
    let is_tcp = header.protocol == Protocol::TCP && header.fragment().is_none();
    is_tcp.then(|| {
        let around = Around {
            addresses: header.addresses(),
            class: header.traffic_class,
        };
        (around, packet.payload)
    })
}

/// See [`tcp_in_v4`].
#[inline]
fn tcp_in_v6(bytes: &[u8]) -> Option<(Around, &[u8])> {
    let packet = ipv6::Packet::parse(bytes).ok()?;
    let header = &packet.header;
    let is_tcp = header.protocol == Protocol::TCP && packet.fragment.is_none();
    is_tcp.then(|| {
        let around = Around {
            addresses: header.addresses(),
            class: header.traffic_class,
        };
        (around, packet.payload)
    })
}
