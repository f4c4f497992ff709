//! Random loss, and loss in bursts by the model of Gilbert and Elliott.
//!
//! Source: E. N. Gilbert, "Capacity of a burst-noise channel", 1960: a good state without loss and
//! a bad state in which packets are lost, with a chance of change at each packet.

use crate::chance::Chance;

/// Which packets are lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Loss {
    /// None.
    None,
    /// Each packet with the same chance.
    Random(Chance),
    /// In bursts.
    Burst {
        /// Chance at each packet that a burst begins.
        begin: Chance,
        /// Chance at each packet of a burst that the burst ends before it.
        end: Chance,
        /// Chance of loss of each packet in a burst.
        loss: Chance,
    },
}

impl Loss {
    /// The part of packets that is lost in the long run.
    #[must_use]
    pub fn mean(&self) -> f64 {
        match *self {
            Self::None => 0.0,
            Self::Random(chance) => chance.as_f64(),
            Self::Burst { begin, end, loss } => {
                let (begin, end) = (begin.as_f64(), end.as_f64());
                begin / (begin + end) * loss.as_f64()
            }
        }
    }
}

/// The state of the model.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Losses {
    is_in_burst: bool,
}

impl Losses {
    /// Whether the next packet is lost.
    pub(crate) fn takes(&mut self, loss: &Loss, random: &mut fastrand::Rng) -> bool {
        match *loss {
            Loss::None => false,
            Loss::Random(chance) => chance.happens(random),
            Loss::Burst { begin, end, loss } => {
                let change = if self.is_in_burst { end } else { begin };
                self.is_in_burst ^= change.happens(random);
                self.is_in_burst && loss.happens(random)
            }
        }
    }
}
