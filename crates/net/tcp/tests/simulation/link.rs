//! One direction of a path: the model of `saiga-path`, with the engine's types.

use saiga_path::Path;
use saiga_tcp::Instant;

use crate::host::Packet;

/// Bytes of IPv4 and TCP headers without options.
const HEADERS: usize = 40;

pub(crate) struct Link(saiga_path::Link<Packet>);

impl Link {
    pub(crate) fn new(path: Path, mut random: fastrand::Rng) -> Self {
        Self(saiga_path::Link::new(path, random.u64(..)))
    }

    pub(crate) fn send(&mut self, packet: Packet, now: Instant) {
        let bytes = u32::try_from(packet.payload.len() + HEADERS).unwrap();
        self.0.send(packet, bytes, now.0);
    }

    pub(crate) fn next_arrival(&self) -> Option<Instant> {
        self.0.next_arrival_us().map(Instant)
    }

    pub(crate) fn receive(&mut self, now: Instant) -> Option<Packet> {
        self.0.receive(now.0).map(|one| one.packet)
    }

    pub(crate) fn lost(&self) -> u64 {
        let totals = self.0.totals();
        totals.lost + totals.overflowed
    }
}
