//! [`Analyser`]: packets in, [`Traffic`] out.

use std::{collections::BTreeMap, time::Duration};

use crate::{
    Interface, Mark, Options, Packet, Timestamp, Traffic, clock::Sample, segment::Content,
    tcp::Table, time::Clock, traffic::Tally,
};

/// Interfaces that the results name; those behind are analysed, too.
const MOST_INTERFACES: usize = 256;
/// Unsupported link types that are counted one by one.
const MOST_OTHER_LINKS: usize = 64;

/// Analyses packets in the order in which they were captured.
#[derive(Debug)]
pub struct Analyser {
    clock: Clock,
    table: Table,
    tally: Tally,
    sample: Sample,
    span: Option<(Timestamp, Timestamp)>,
    packets: u64,
    bytes: u64,
    fragments: u64,
    cut_headers: u64,
    without_time: u64,
    unknown_interface: u64,
    other_links: BTreeMap<u16, u64>,
    dropped: u64,
    interfaces: Vec<Interface>,
    marks: Vec<Mark>,
}

impl Analyser {
    #[must_use]
    pub fn new(options: &Options) -> Self {
        Self {
            clock: Clock::default(),
            table: Table::new(options),
            tally: Tally::new(options.window, &options.limits),
            sample: Sample::new(options.limits.marks),
            span: None,
            packets: 0,
            bytes: 0,
            fragments: 0,
            cut_headers: 0,
            without_time: 0,
            unknown_interface: 0,
            other_links: BTreeMap::new(),
            dropped: 0,
            interfaces: Vec::new(),
            marks: Vec::new(),
        }
    }

    /// Takes the next packet. Whatever its bytes are, it is not an error.
    pub fn packet(&mut self, packet: Packet<'_>) {
        let at = self.clock.advance(packet.at);
        self.packets += 1;
        self.bytes += u64::from(packet.length);
        self.span = Some((self.span.map_or(at, |(first, _)| first), at));
        let Some(ip) = packet.link.ip(packet.bytes) else {
            return;
        };
        match Content::of_ip(ip) {
            Content::Segment(segment) => {
                self.sample.on_segment(&segment, packet.at);
                self.table.on_segment(&segment, at, &mut self.tally);
            }
            Content::Fragment => self.fragments += 1,
            Content::CutHeaders => self.cut_headers += 1,
            Content::Other => {}
        }
    }

    /// Packets that a live source lost since the last call (`PACKET_STATISTICS`, `man 7 packet`).
    pub fn dropped(&mut self, packets: u64) {
        self.dropped = self.dropped.saturating_add(packets);
    }

    /// Number of packets so far.
    #[must_use]
    pub fn packets(&self) -> u64 {
        self.packets
    }

    pub(crate) fn packet_without_time(&mut self) {
        self.without_time += 1;
    }

    pub(crate) fn packet_of_unknown_interface(&mut self) {
        self.unknown_interface += 1;
    }

    pub(crate) fn packet_of_other_link(&mut self, number: u16) {
        if self.other_links.len() < MOST_OTHER_LINKS || self.other_links.contains_key(&number) {
            *self.other_links.entry(number).or_default() += 1;
        }
    }

    /// Adds an interface and returns its place.
    pub(crate) fn interface(&mut self, interface: Interface) -> usize {
        if self.interfaces.len() < MOST_INTERFACES {
            self.interfaces.push(interface);
            return self.interfaces.len() - 1;
        }
        usize::MAX
    }

    pub(crate) fn seen_on(&mut self, place: usize) {
        if let Some(interface) = self.interfaces.get_mut(place) {
            interface.packets += 1;
        }
    }

    pub(crate) fn statistics(&mut self, place: usize, received: Option<u64>, dropped: Option<u64>) {
        if let Some(interface) = self.interfaces.get_mut(place) {
            interface.received = received.or(interface.received);
            interface.dropped = dropped.or(interface.dropped);
        }
    }

    pub(crate) fn mark(&mut self, mark: Mark) {
        self.marks.push(mark);
    }

    /// Ends all connections with the last packet, and returns the results.
    #[must_use]
    pub fn finish(mut self) -> Traffic {
        let end = self.span.map_or(Timestamp(0), |(_, last)| last);
        self.table.finish(end, &mut self.tally);
        let of_interfaces: u64 = self
            .interfaces
            .iter()
            .filter_map(|interface| interface.dropped)
            .fold(0, u64::saturating_add);
        let mut marks = self.marks;
        if self.packets == 0 {
            marks.push(Mark::NoPackets);
        }
        let counted = [
            Mark::ClockBackwards {
                steps: self.clock.steps_back,
                largest: Duration::from_nanos(self.clock.largest_step_back_ns),
            },
            Mark::Dropped {
                packets: self.dropped.saturating_add(of_interfaces),
            },
            Mark::CutHeaders {
                packets: self.cut_headers,
            },
            Mark::Fragments {
                packets: self.fragments,
            },
            Mark::UnknownInterface {
                packets: self.unknown_interface,
            },
            Mark::WithoutTime {
                packets: self.without_time,
            },
            Mark::ConnectionsEvicted {
                connections: self.table.evicted,
            },
        ];
        let links = self.other_links.iter();
        let links = links.map(|(number, packets)| (*number, *packets));
        let (servers, of_servers) = self.tally.finish(self.span);
        let all = counted.into_iter().chain(of_servers);
        marks.extend(all.filter(|mark| mark.count() > 0));
        marks.extend(links.map(|(number, packets)| Mark::OtherLink { number, packets }));
        Traffic {
            span: self.span,
            packets: self.packets,
            bytes: self.bytes,
            interfaces: self.interfaces,
            servers: servers.into_iter().collect(),
            marks,
            sample: self.sample,
        }
    }
}
