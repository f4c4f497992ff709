//! One direction of a network path: a bottleneck with a drop-tail queue, propagation delay, loss,
//! duplication and reordering, all of it from a seed.
//!
//! [`Link`] reads no clock: its caller passes the present in microseconds, so that the same model
//! serves simulated time and a forwarder in real time. A link owns the packets that are on their
//! way; what a packet is, its caller decides.
//!
//! Deliberately absent: addresses and bytes of packets.

#![forbid(unsafe_code)]

mod chance;
mod link;
mod loss;
#[cfg(test)]
mod tests;

pub use chance::Chance;
pub use link::{Delivery, Link, Totals};
pub use loss::Loss;

/// What a path does to packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Path {
    /// Propagation delay in microseconds.
    pub delay_us: u64,
    /// Each packet takes up to so many microseconds longer, and none overtakes another. Without
    /// jitter, flows run in step with the bottleneck, and their phase decides which of them meets
    /// the full queue (S. Floyd and V. Jacobson, "On traffic phase effects", 1992).
    pub jitter_us: u64,
    /// Bits that leave the bottleneck in a second; `None`: there is no bottleneck.
    pub rate: Option<u64>,
    /// Packets that find the queue full are dropped.
    pub queue: Queue,
    /// Larger packets vanish without an error: the path is a black hole for them (RFC 4821 §7.7).
    /// Bytes.
    pub mtu: Option<u32>,
    /// Waiting bytes above which packets are marked (Congestion Experienced, RFC 3168 §5).
    pub mark_above: Option<u64>,
    /// Losses behind the bottleneck.
    pub loss: Loss,
    /// Packets that arrive twice.
    pub duplication: Chance,
    /// Packets that arrive late.
    pub reordering: Reordering,
}

impl Path {
    /// A path that delivers everything after a delay.
    #[must_use]
    pub const fn ideal(delay_us: u64) -> Self {
        Self {
            delay_us,
            jitter_us: 0,
            rate: None,
            queue: Queue::Bytes(u64::MAX),
            mtu: None,
            mark_above: None,
            loss: Loss::None,
            duplication: Chance::NEVER,
            reordering: Reordering::None,
        }
    }
}

/// How much may wait before the bottleneck, with the packet that is being sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Queue {
    /// Bytes.
    Bytes(u64),
    /// Packets.
    Packets(usize),
}

/// Which packets arrive late.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reordering {
    /// All packets arrive in the order in which they were sent.
    None,
    /// Some packets are delayed by up to `most_us` microseconds.
    Late {
        /// Chance of a packet.
        chance: Chance,
        /// Microseconds, evenly distributed from zero.
        most_us: u64,
    },
    /// Some packets arrive behind `packets` that were sent later.
    Behind {
        /// Chance of a packet.
        chance: Chance,
        /// Later packets that overtake it.
        packets: u32,
        /// Microseconds after which the packet goes on even if fewer have followed.
        most_us: u64,
    },
}
