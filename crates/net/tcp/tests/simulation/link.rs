//! One direction of a path: the model of `saiga-path`, with the engine's types, and the errors of
//! routers.

use saiga_path::Path;
use saiga_tcp::Instant;

use crate::host::Packet;

/// Bytes of IPv4 and TCP headers without options.
const HEADERS: usize = 40;

pub(crate) struct Link {
    link: saiga_path::Link<Packet>,
    /// The payload that passes, if a router tells that a larger one was dropped.
    told: Option<usize>,
}

impl Link {
    pub(crate) fn new(path: Path, has_errors: bool, mut random: fastrand::Rng) -> Self {
        let mtu = path.mtu.filter(|_| has_errors);
        Self {
            told: mtu.map(|mtu| mtu as usize - HEADERS),
            link: saiga_path::Link::new(path, random.u64(..)),
        }
    }

    /// Takes a packet. Returns the error of a router for which the packet is too big: what passes.
    pub(crate) fn send(&mut self, packet: Packet, now: Instant) -> Option<u16> {
        let payload = packet.payload.len();
        let bytes = u32::try_from(payload + HEADERS).unwrap();
        self.link.send(packet, bytes, now.0);
        let error = self.told.filter(|most| payload > *most)?;
        u16::try_from(error).ok()
    }

    pub(crate) fn next_arrival(&self) -> Option<Instant> {
        self.link.next_arrival_us().map(Instant)
    }

    pub(crate) fn receive(&mut self, now: Instant) -> Option<Packet> {
        self.link.receive(now.0).map(|one| one.packet)
    }

    pub(crate) fn lost(&self) -> u64 {
        let totals = self.link.totals();
        totals.lost + totals.overflowed
    }
}
