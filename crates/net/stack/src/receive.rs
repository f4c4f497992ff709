//! The way of a frame that has come: link layer, IP, and the connection of a segment.

use core::net::IpAddr;

use saiga_tcp::{Arrival, CloseReason, Context, Instant, Place, StateName, reset_for};
use saiga_wire::ethernet::Mac;
use saiga_wire::frame::{Content, Frame, Network, Packet, Transport};
use saiga_wire::ip::{Ecn, Protocol};
use saiga_wire::offload::{ChecksumState, Fill};
use saiga_wire::tcp::{Flags, Header, Segment};
use saiga_wire::{Malformed, ethernet};

use crate::config::Presence;
use crate::flow::Flow;
use crate::fragment::Outcome;
use crate::host::header;
use crate::network::Link;
use crate::owner::Owner;
use crate::slab::ConnectionId;
use crate::slot::State;
use crate::stack::{Stack, Verdict};

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
            return match Packet::parse(frame, state) {
                Ok(packet) => self.on_packet(0, &packet, false, now, owner),
                Err(reason) => self.on_malformed(reason, frame, now),
            };
        }
        let (link, content) = match Frame::parse(frame, state) {
            Ok(Frame { link, content }) => (link, content),
            Err(reason) => {
                let packet = ethernet::Header::parse(frame).map_or(&[][..], |(_, packet)| packet);
                return self.on_malformed(reason, packet, now);
            }
        };
        let Some(interface) = self.host.routing.interface_of(link.tags) else {
            return Verdict::NotOurs;
        };
        let is_group = link.destination.is_group();
        if !is_group && Some(link.destination) != self.mac(interface) {
            return Verdict::NotOurs;
        }
        match content {
            Content::Arp(packet) => self.on_arp(interface, &packet, now),
            Content::Ip(packet) => self.on_packet(interface, &packet, is_group, now, owner),
            Content::Other(_) => Verdict::NotOurs,
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
            Transport::Tcp(segment) => self.on_segment(packet, segment, now, owner),
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
                        self.on_reassembled(interface, &whole, is_group, now, owner);
                    }
                }
                Verdict::Taken
            }
            Transport::Other(_) => self.on_other(packet, is_group, now),
        }
    }

    /// Beside the kernel, fragments of TCP only are put together here: nothing else is served.
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
        whole: &[u8],
        is_group: bool,
        now: Instant,
        owner: &mut impl Owner,
    ) {
        match Packet::parse_reassembled(whole) {
            // The fragments are gone, so they cannot be handed back.
            Ok(packet) => {
                let _taken = self.on_packet(interface, &packet, is_group, now, owner);
            }
            Err(reason) => self.count(reason),
        }
    }

    pub(crate) fn count(&mut self, reason: Malformed) {
        self.counters.malformed[reason as usize] += 1;
    }

    /// Handles a segment whose checksum is right.
    #[inline]
    fn on_segment(
        &mut self,
        packet: &Packet<'_>,
        segment: &Segment<'_>,
        now: Instant,
        owner: &mut impl Owner,
    ) -> Verdict {
        let flow = Flow::of_arrival(packet.network.addresses(), segment.header.ports);
        let found = self.connections.find(&flow);
        let found = found.and_then(|index| self.connections.slots.id(index));
        let Some(id) = found else {
            return self.on_unknown(&flow, segment, now, owner);
        };
        if self.is_undecided(id, &segment.header, owner) {
            return Verdict::Taken;
        }
        let is_congested = packet.network.traffic_class().ecn() == Ecn::Congested;
        if self.on_known(id, segment, is_congested, now, owner) {
            return self.on_unknown(&flow, segment, now, owner);
        }
        Verdict::Taken
    }

    /// Whether the owner has not decided about a connection. Its segments are ignored until then,
    /// except that the peer may give up (RFC 9293 §3.10.7.4).
    fn is_undecided(&mut self, id: ConnectionId, header: &Header, owner: &mut impl Owner) -> bool {
        let Some(slot) = self.connections.slots.get_mut(id) else {
            return false;
        };
        match &slot.state {
            State::Undecided { syn, .. } => {
                if header.flags.contains(Flags::RST) && header.seq == syn.seq + 1 {
                    let reason = CloseReason::Reset;
                    self.connections.drop_undecided(id, reason, owner);
                }
                true
            }
            State::Proven { .. } => true,
            State::Engine(_) => false,
        }
    }

    /// Gives a segment to its connection. True if it was in TIME-WAIT, and the segment is a SYN
    /// that may begin another one: the old connection is gone.
    fn on_known(
        &mut self,
        id: ConnectionId,
        segment: &Segment<'_>,
        is_congested: bool,
        now: Instant,
        owner: &mut impl Owner,
    ) -> bool {
        let Some(slot) = self.connections.slots.get_mut(id) else {
            return false;
        };
        let State::Engine(connection) = &mut slot.state else {
            return false;
        };
        let was_waiting = connection.state() == StateName::TimeWait;
        let arrival = Arrival {
            header: &segment.header,
            // The length of an IP packet has 16 bits.
            length: u32::try_from(segment.payload.len()).unwrap_or(u32::MAX),
            is_congested,
        };
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
        let epoch = self.host.neighbours.epoch();
        // Progress shows that the neighbour is there (RFC 4861 §7.3.1).
        if (events.acked > 0 || events.is_established)
            && let Some(neighbour) = slot.neighbour(epoch)
        {
            self.host.neighbours.confirm(neighbour, now);
        }
        self.connections.report(id, &events, owner);
        if was_waiting && events.closed.is_some() {
            self.connections.remove(id.index());
            return true;
        }
        self.connections.make_ready(id.index());
        false
    }

    /// A segment without a connection.
    fn on_unknown(
        &mut self,
        flow: &Flow,
        segment: &Segment<'_>,
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
            Some(listener) if self.on_cookie(listener, flow, segment, now, owner) => Verdict::Taken,
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
