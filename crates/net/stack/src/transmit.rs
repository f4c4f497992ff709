//! Segments of connections on their way to the device.

use saiga_tcp::{Connection, Context, Instant, Transmit};
use saiga_wire::checksum::Sum;
use saiga_wire::frame::{Network, Payload, Writer};
use saiga_wire::ip::{Ecn, TrafficClass};
use saiga_wire::offload::Fill;
use saiga_wire::tcp::Header;
use saiga_wire::{ethernet, ipv4, ipv6, virtio};

use crate::config::Offload;
use crate::host::{Hop, Host, header};
use crate::neighbour::Held;
use crate::owner::Owner;
use crate::slab::ConnectionId;
use crate::slot::{Slot, State};
use crate::stack::{Outgoing, Stack};

/// What became of a segment.
enum Fate {
    Left(Outgoing),
    /// The segment waits for its neighbour, or was dropped.
    Gone,
}

impl Stack {
    /// The next segment of a connection that has something to send.
    pub(crate) fn poll_connections(
        &mut self,
        buffer: &mut [u8],
        now: Instant,
        owner: &mut impl Owner,
    ) -> Option<Outgoing> {
        while let Some(index) = self.connections.next_ready() {
            match self.transmit(index, buffer, now, owner) {
                Some(Fate::Left(outgoing)) => {
                    self.connections.rotate_ready();
                    return Some(outgoing);
                }
                Some(Fate::Gone) => {}
                None => self.connections.settle(&mut self.counters, now, owner),
            }
        }
        None
    }

    /// One segment of a connection; `None` if the connection has nothing to send.
    fn transmit(
        &mut self,
        index: u32,
        buffer: &mut [u8],
        now: Instant,
        owner: &mut impl Owner,
    ) -> Option<Fate> {
        let (id, slot) = self.connections.slots.entry(index)?;
        let config = self.connections.settings.get(slot.settings);
        let mut context = Context {
            now,
            config,
            counters: &mut self.counters.tcp,
        };
        let most = most_bytes(&self.config.offload);
        let transmit = engine(slot)?.transmit(most, &mut context)?;
        let Some(hop) = hop(slot, &mut self.host, now) else {
            self.counters.no_route += 1;
            return Some(Fate::Gone);
        };
        let (link, is_known) = self.host.link(hop, now);
        let header = Header {
            ports: slot.flow.ports,
            ..transmit.header
        };
        let segment = Segment {
            link: link.as_ref(),
            network: network_of(slot, transmit.is_ecn_capable),
            header: &header,
            transmit: &transmit,
        };
        let Some(outgoing) = segment.write(id, buffer, &self.config.offload, owner) else {
            self.counters.answers_dropped += 1;
            return Some(Fate::Gone);
        };
        if let Some(neighbour) = hop.neighbour
            && !is_known
        {
            let held = Held {
                frame: buffer[..outgoing.length].to_vec(),
                offload: outgoing.offload,
            };
            self.host.neighbours.hold(neighbour, held);
            return Some(Fate::Gone);
        }
        Some(Fate::Left(outgoing))
    }
}

/// A segment and the headers below it.
struct Segment<'a> {
    link: Option<&'a ethernet::Header>,
    network: Network,
    header: &'a Header,
    transmit: &'a Transmit,
}

impl Segment<'_> {
    /// Writes the frame; `None` if the buffer is too small.
    fn write(
        &self,
        id: ConnectionId,
        buffer: &mut [u8],
        offload: &Offload,
        owner: &mut impl Owner,
    ) -> Option<Outgoing> {
        let link_bytes = self.link.map_or(0, ethernet::Header::len_bytes);
        let payload_at = link_bytes + self.network.len_bytes() + self.header.len_bytes();
        let length = payload_at + self.transmit.length as usize;
        let payload = buffer.get_mut(payload_at..length)?;
        if !payload.is_empty() {
            owner.fetch(id, self.transmit.offset, payload);
        }
        let mss = self.transmit.mss;
        let is_divided = self.transmit.length > u32::from(mss);
        let fill = match offload.segmentation {
            Some(segmentation) if is_divided => segmentation.checksum,
            Some(_) | None => offload.checksum,
        };
        let payload = Payload::Summed {
            length: payload.len(),
            sum: match fill {
                Fill::Checksum => Sum::of(payload),
                Fill::PseudoHeader | Fill::PseudoHeaderWithoutLength => Sum::ZERO,
            },
        };
        let mut writer = Writer {
            link: self.link,
            buffer,
        };
        let layout = writer
            .tcp_headers(&self.network, self.header, payload, fill)
            .ok()?;
        let offload = match fill {
            Fill::Checksum => virtio::Header::NONE,
            Fill::PseudoHeader | Fill::PseudoHeaderWithoutLength => virtio::Header::of_tcp(
                &self.network,
                self.header,
                &layout,
                is_divided.then_some(mss),
            ),
        };
        Some(Outgoing { length, offload })
    }
}

fn engine(slot: &mut Slot) -> Option<&mut Connection> {
    match &mut slot.state {
        State::Engine(connection) => Some(connection),
        State::Undecided { .. } | State::Proven(_) => None,
    }
}

/// The IP header of a segment.
#[inline]
fn network_of(slot: &Slot, is_ecn_capable: bool) -> Network {
    let ecn = if is_ecn_capable {
        Ecn::Capable0
    } else {
        Ecn::NotCapable
    };
    let class = TrafficClass::default().with_ecn(ecn);
    match header(&slot.flow.addresses) {
        Network::V4(header) => Network::V4(ipv4::Header {
            traffic_class: class,
            ..header
        }),
        Network::V6(header) => Network::V6(ipv6::Header {
            traffic_class: class,
            ..header
        }),
    }
}

/// The next hop of a connection, from its last segment if nothing has changed since.
#[inline]
fn hop(slot: &mut Slot, host: &mut Host, now: Instant) -> Option<Hop> {
    if let Some((epoch, hop)) = slot.hop
        && epoch == host.neighbours.epoch()
    {
        return Some(hop);
    }
    let addresses = slot.flow.addresses;
    let hop = host.hop(addresses.source(), addresses.destination(), now)?;
    // The search may have made a neighbour give way.
    slot.hop = Some((host.neighbours.epoch(), hop));
    Some(hop)
}

/// The most payload that the device divides. If it divides none, 0: the engine then sends segments
/// of its own size, which is less than the MSS by the options.
fn most_bytes(offload: &Offload) -> u32 {
    offload
        .segmentation
        .map_or(0, |segmentation| segmentation.most_bytes)
}
