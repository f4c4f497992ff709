//! Flows of the engine as IPv4 packets.

use std::net::Ipv4Addr;

use saiga_goodput::flow::End;
use saiga_tcp::{Config, Counters, Instant};
use saiga_wire::ip::{Addresses, Ports, Protocol, TrafficClass};
use saiga_wire::{ipv4, tcp};

use crate::counts::{self, Counts};
use crate::kernel::RECEIVER;

/// Address of the engine. The receiver's device leads to it, too.
pub(crate) const ADDRESS: Ipv4Addr = Ipv4Addr::new(10, 7, 0, 3);
/// Port of the first flow.
const FIRST_PORT: u16 = 20_000;

/// All flows of the engine in one run.
#[derive(Debug)]
pub(crate) struct Flows {
    config: Config,
    random: fastrand::Rng,
    /// When each flow begins, and its writer from then on.
    flows: Vec<(Instant, Option<End>)>,
}

impl Flows {
    pub(crate) fn new(begins_us: &[u64], seed: u64) -> Self {
        let flow = |begins: &u64| (Instant(*begins), None);
        Self {
            config: Config::default(),
            random: fastrand::Rng::with_seed(seed),
            flows: begins_us.iter().map(flow).collect(),
        }
    }

    /// Takes a packet for [`ADDRESS`]. What is not for a flow is dropped.
    pub(crate) fn on_packet(&mut self, bytes: &[u8], now: Instant) {
        let Ok(packet) = ipv4::Packet::parse(bytes) else {
            return;
        };
        let Ok(segment) = tcp::Segment::parse(packet.payload) else {
            return;
        };
        let index = segment.header.ports.destination.wrapping_sub(FIRST_PORT);
        let flow = self.flows.get_mut(usize::from(index));
        if let Some((_, Some(writer))) = flow {
            let length = u32::try_from(segment.payload.len()).unwrap_or(0);
            writer.on_packet(&segment.header, length, false, now);
        }
    }

    /// Begins flows, handles what is due, and gives all packets to `send`.
    pub(crate) fn serve(&mut self, now: Instant, mut send: impl FnMut(Vec<u8>)) {
        for (port, (begins, writer)) in (FIRST_PORT..).zip(&mut self.flows) {
            if writer.is_none() && *begins <= now {
                *writer = Some(End::connect(&self.config, &mut self.random, now));
            }
            let Some(writer) = writer else { continue };
            if writer.next_timeout(now).is_some_and(|at| at <= now) {
                writer.on_timeout(now);
            }
            while let Some((header, length)) = writer.transmit(now) {
                let header = tcp::Header {
                    ports: Ports {
                        source: port,
                        destination: RECEIVER.port(),
                    },
                    ..header
                };
                send(packet(&header, length as usize));
            }
        }
    }

    /// When to call [`Self::serve`] if no packet comes.
    pub(crate) fn next_timeout(&mut self, now: Instant) -> Option<Instant> {
        let next = self
            .flows
            .iter_mut()
            .filter_map(|(begins, writer)| match writer {
                Some(writer) => writer.next_timeout(now),
                None => Some(*begins),
            });
        next.min()
    }

    /// What all flows counted.
    pub(crate) fn counts(&self) -> Counts {
        let counters: Vec<Counters> = self
            .flows
            .iter()
            .filter_map(|(_, writer)| writer.as_ref())
            .map(End::counters)
            .collect();
        counts::of_engine(counters.iter())
    }
}

/// A packet with a payload of zeros.
fn packet(header: &tcp::Header, length: usize) -> Vec<u8> {
    let start = ipv4::HEADER_BYTES;
    let head = header.len_bytes();
    let mut bytes = vec![0; start + head + length];
    let ip = ipv4::Header {
        source: ADDRESS,
        destination: *RECEIVER.ip(),
        protocol: Protocol::TCP,
        traffic_class: TrafficClass(0),
        ttl: 64,
        id: 0,
        dont_fragment: true,
        more_fragments: false,
        fragment_offset: 0,
    };
    let addresses: Addresses = ip.addresses();
    // The buffer has room for both headers by its size.
    let _ = ip.emit(head + length, &mut bytes);
    let _ = header.emit(&mut bytes[start..]);
    // Zeros add nothing to the sum.
    let sum = tcp::pseudo_header(&addresses, head + length).bytes(&bytes[start..start + head]);
    let at = start + tcp::CHECKSUM_AT;
    bytes[at..at + 2].copy_from_slice(&sum.checksum().to_be_bytes());
    bytes
}
