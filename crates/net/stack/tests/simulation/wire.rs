//! One direction of the wire: a path for frames, which can also damage them.

use saiga_path::{Link, Path};
use saiga_stack::Instant;

/// Bytes in front of the IP packet: an Ethernet header, whose own checksum devices verify.
const LINK_BYTES: usize = 14;

#[derive(Debug)]
pub(crate) struct Wire {
    link: Link<Vec<u8>>,
    random: fastrand::Rng,
    corruption: f64,
    /// Until when the wire drops all frames.
    pub(crate) silent_until: Instant,
}

impl Wire {
    pub(crate) fn new(path: Path, corruption: f64, mut random: fastrand::Rng) -> Self {
        Self {
            link: Link::new(path, random.u64(..)),
            random,
            corruption,
            silent_until: Instant(0),
        }
    }

    pub(crate) fn send(&mut self, mut frame: Vec<u8>, now: Instant) {
        if now < self.silent_until {
            return;
        }
        let is_ip = frame.get(12) == Some(&8) && frame.get(13) == Some(&0);
        if is_ip && self.random.f64() < self.corruption {
            // A flipped bit changes every checksum that covers it.
            let at = self.random.usize(LINK_BYTES..frame.len());
            frame[at] ^= 1 << self.random.u32(0..8);
        }
        let bytes = u32::try_from(frame.len() - LINK_BYTES).unwrap();
        self.link.send(frame, bytes, now.0);
    }

    pub(crate) fn next_arrival(&self) -> Option<Instant> {
        self.link.next_arrival_us().map(Instant)
    }

    pub(crate) fn receive(&mut self, now: Instant) -> Option<Vec<u8>> {
        self.link.receive(now.0).map(|delivery| delivery.packet)
    }
}
