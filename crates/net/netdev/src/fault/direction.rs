//! One direction of a faulty link.

use saiga_path::{Chance, Link, Path};
use saiga_wire::virtio::Header;

use crate::device::Frame;
use crate::stored::{Stored, close_checksum};

/// Most frames that are delayed in a direction; more are lost.
const MOST_IN_FLIGHT: usize = 65_536;

/// What happens in one direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Faults {
    /// Loss, duplication, delay, jitter, reordering, rate and queue. Its MTU counts the bytes of
    /// the whole frame.
    pub path: Path,
    /// Frames in which one bit flips. A frame with an open checksum or a trusted one then has to be
    /// verified, as if a wire had carried it.
    pub corruption: Chance,
}

impl Faults {
    /// Frames pass at once, and unchanged.
    pub const NONE: Self = Self {
        path: Path::ideal(0),
        corruption: Chance::NEVER,
    };
}

/// Counts of frames in one direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Totals {
    /// What the path did.
    pub path: saiga_path::Totals,
    /// Frames in which a bit flipped; the path may have lost them later.
    pub corrupted: u64,
    /// Frames that were lost because too many others were delayed.
    pub overflowed: u64,
}

/// The frames on their way.
#[derive(Debug)]
pub(super) struct Direction {
    link: Link<Stored>,
    corruption: Chance,
    random: fastrand::Rng,
    corrupted: u64,
    overflowed: u64,
}

impl Direction {
    pub(super) fn new(faults: Faults, seeds: &mut fastrand::Rng) -> Self {
        Self {
            link: Link::new(faults.path, seeds.u64(..)),
            corruption: faults.corruption,
            random: seeds.fork(),
            corrupted: 0,
            overflowed: 0,
        }
    }

    pub(super) fn totals(&self) -> Totals {
        Totals {
            path: self.link.totals(),
            corrupted: self.corrupted,
            overflowed: self.overflowed,
        }
    }

    /// Takes a frame that enters the link.
    pub(super) fn take(&mut self, frame: &Frame<'_>, now_us: u64) {
        if self.link.in_flight() >= MOST_IN_FLIGHT {
            self.overflowed += 1;
            return;
        }
        let mut stored = Stored::of(frame);
        if self.corruption.happens(&mut self.random) {
            corrupt(&mut stored, &mut self.random);
            self.corrupted += 1;
        }
        let length = u32::try_from(stored.bytes.len()).unwrap_or(u32::MAX);
        self.link.send(stored, length, now_us);
    }

    /// The next frame that has arrived.
    pub(super) fn arrived(&mut self, now_us: u64) -> Option<Stored> {
        self.link.receive(now_us).map(|delivery| delivery.packet)
    }

    /// When the next frame arrives.
    pub(super) fn next_us(&self) -> Option<u64> {
        self.link.next_arrival_us()
    }
}

/// Flips one bit. The checksum is formed before, because the receiver must be able to notice.
fn corrupt(stored: &mut Stored, random: &mut fastrand::Rng) {
    close_checksum(&mut stored.bytes, &stored.offload);
    stored.offload = Header::NONE;
    let bit = 1 << random.u8(..8);
    if let Some(byte) = random.choice(&mut stored.bytes) {
        *byte ^= bit;
    }
}
