//! The paths of the comparison: every kind of trouble at every round-trip time.

use saiga_path::{Chance, Loss, Path, Queue, Reordering};

/// Bits that leave the bottleneck in a second.
pub const RATE: u64 = 50_000_000;
/// Bytes of a full packet.
pub const MTU: u32 = 1500;
/// Packets that the queue holds at least; above a round trip of 24 ms, it holds what the path does.
const LEAST_QUEUE: u64 = 100;

/// What happens to packets that carry data. Acknowledgements come through unharmed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trouble {
    /// Only the queue drops packets.
    None,
    /// Random loss.
    Loss(Chance),
    /// Loss in bursts: one of 2,000 packets begins a burst, which is 10 packets long on average.
    Burst,
    /// One packet in a hundred arrives behind as many later ones.
    Reordering(u32),
}

/// One path of the comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cell {
    /// What happens to packets.
    pub trouble: Trouble,
    /// The round-trip time without queues, in microseconds.
    pub rtt_us: u64,
}

/// The round-trip times of the comparison, in microseconds.
pub const RTTS_US: [u64; 3] = [100, 10_000, 100_000];

/// The troubles of the comparison.
pub const TROUBLES: [Trouble; 8] = [
    Trouble::None,
    Trouble::Loss(Chance::per_million(100)),
    Trouble::Loss(Chance::per_million(1_000)),
    Trouble::Loss(Chance::per_million(10_000)),
    Trouble::Loss(Chance::per_million(50_000)),
    Trouble::Burst,
    Trouble::Reordering(3),
    Trouble::Reordering(100),
];

/// All cells, by trouble and then by round-trip time; at last random loss of 1 and 5 % between
/// distant sites, which docs/gateway.md quotes.
pub fn all() -> impl Iterator<Item = Cell> {
    let everywhere = |trouble| RTTS_US.map(|rtt_us| Cell { trouble, rtt_us });
    let distant = |parts| Cell {
        trouble: Trouble::Loss(Chance::per_million(parts)),
        rtt_us: 40_000,
    };
    let distant = [10_000, 50_000].map(distant);
    TROUBLES.into_iter().flat_map(everywhere).chain(distant)
}

impl Cell {
    /// The way of the data.
    #[must_use]
    pub fn forward(&self) -> Path {
        Path {
            rate: Some(RATE),
            queue: Queue::Bytes(self.queue_bytes()),
            loss: self.trouble.loss(),
            reordering: self.trouble.reordering(),
            ..Path::ideal(self.rtt_us / 2)
        }
    }

    /// The way of the acknowledgements: the same rate, without trouble.
    #[must_use]
    pub fn back(&self) -> Path {
        Path {
            rate: Some(RATE),
            queue: Queue::Bytes(self.queue_bytes()),
            ..Path::ideal(self.rtt_us / 2)
        }
    }

    /// The way of the acknowledgements of flows that share the path: each takes up to the time of a
    /// full packet longer.
    #[must_use]
    pub fn back_with_jitter(&self) -> Path {
        Path {
            jitter_us: u64::from(MTU) * 8_000_000 / RATE,
            ..self.back()
        }
    }

    /// Bytes that the path holds in a round trip, or 100 packets if that is more.
    fn queue_bytes(&self) -> u64 {
        let held = RATE / 8 * self.rtt_us / 1_000_000;
        held.max(LEAST_QUEUE * u64::from(MTU))
    }

    /// `1 % loss, 10 ms`.
    #[must_use]
    pub fn name(&self) -> String {
        format!("{}, {} ms", self.trouble.name(), self.rtt_us as f64 / 1e3)
    }
}

impl Trouble {
    /// The losses of the path.
    #[must_use]
    pub fn loss(&self) -> Loss {
        match *self {
            Self::None | Self::Reordering(_) => Loss::None,
            Self::Loss(chance) => Loss::Random(chance),
            Self::Burst => Loss::Burst {
                begin: Chance::per_million(500),
                end: Chance::per_mille(100),
                loss: Chance::per_mille(1000),
            },
        }
    }

    fn reordering(&self) -> Reordering {
        match *self {
            Self::None | Self::Loss(_) | Self::Burst => Reordering::None,
            Self::Reordering(packets) => Reordering::Behind {
                chance: Chance::per_mille(10),
                packets,
                // Twice the time of as many packets at the full rate.
                most_us: 2 * u64::from(packets) * u64::from(MTU) * 8_000_000 / RATE,
            },
        }
    }

    /// `1 % loss`.
    #[must_use]
    pub fn name(&self) -> String {
        match *self {
            Self::None => "no loss".to_owned(),
            Self::Loss(chance) => format!("{} % loss", chance.as_f64() * 100.0),
            Self::Burst => "burst loss".to_owned(),
            Self::Reordering(packets) => format!("reordering by {packets}"),
        }
    }
}
