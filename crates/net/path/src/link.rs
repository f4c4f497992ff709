//! The packets on their way, by arrival.

use std::collections::{BTreeMap, VecDeque};

use crate::chance::Chance;
use crate::loss::Losses;
use crate::{Path, Queue, Reordering};

/// One direction of a path. Instants are microseconds since an instant that the caller chooses;
/// they do not run backwards.
#[derive(Debug)]
pub struct Link<P> {
    path: Path,
    random: fastrand::Rng,
    losses: Losses,
    /// When each waiting packet leaves the bottleneck, in nanoseconds, and its bytes.
    waiting: VecDeque<(u64, u32)>,
    waiting_bytes: u64,
    /// Packets that others overtake.
    held: Vec<Held<P>>,
    /// By arrival, then by the order in which they left.
    on_the_way: BTreeMap<(u64, u64), Delivery<P>>,
    count: u64,
    /// The latest arrival in order, with its jitter.
    latest_us: u64,
    totals: Totals,
}

/// A packet that has arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Delivery<P> {
    /// The packet.
    pub packet: P,
    /// Whether the queue has marked it (Congestion Experienced).
    pub is_marked: bool,
}

/// Counts of packets since the link began.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Totals {
    /// Packets that were sent into the link.
    pub sent: u64,
    /// Packets that found the queue full.
    pub overflowed: u64,
    /// Packets that were lost behind the bottleneck, or were larger than the path takes.
    pub lost: u64,
    /// Packets that were marked.
    pub marked: u64,
    /// Packets that were delayed on purpose.
    pub reordered: u64,
}

/// A packet that waits until others have overtaken it.
#[derive(Debug)]
struct Held<P> {
    delivery: Delivery<P>,
    left: u32,
    /// When it goes on at the latest.
    until_us: u64,
}

impl<P: Clone> Link<P> {
    /// A link without packets.
    #[must_use]
    pub fn new(path: Path, seed: u64) -> Self {
        Self {
            path,
            random: fastrand::Rng::with_seed(seed),
            losses: Losses::default(),
            waiting: VecDeque::new(),
            waiting_bytes: 0,
            held: Vec::new(),
            on_the_way: BTreeMap::new(),
            count: 0,
            latest_us: 0,
            totals: Totals::default(),
        }
    }

    /// Counts of packets.
    #[must_use]
    pub const fn totals(&self) -> Totals {
        self.totals
    }

    /// Takes a packet of `bytes` bytes at `now_us`.
    pub fn send(&mut self, packet: P, bytes: u32, now_us: u64) {
        self.totals.sent += 1;
        if self.path.mtu.is_some_and(|mtu| bytes > mtu) {
            self.totals.lost += 1;
            return;
        }
        let Some((left_us, is_marked)) = self.through_bottleneck(bytes, now_us) else {
            self.totals.overflowed += 1;
            return;
        };
        self.totals.marked += u64::from(is_marked);
        if self.losses.takes(&self.path.loss, &mut self.random) {
            self.totals.lost += 1;
            return;
        }
        let delivery = Delivery { packet, is_marked };
        let is_double = self.happens(self.path.duplication);
        let copy = is_double.then(|| delivery.clone());
        for one in copy.into_iter().chain([delivery]) {
            self.forward(one, left_us);
        }
    }

    /// Number of packets that were neither lost nor received yet.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.held.len() + self.on_the_way.len()
    }

    /// When the next packet arrives.
    #[must_use]
    pub fn next_arrival_us(&self) -> Option<u64> {
        let held = self.held.iter().map(|held| held.until_us).min();
        let first = self.on_the_way.keys().next().map(|(at, _)| *at);
        match (held, first) {
            (Some(held), Some(first)) => Some(held.min(first)),
            (held, first) => held.or(first),
        }
    }

    /// The next packet that has arrived by `now_us`.
    pub fn receive(&mut self, now_us: u64) -> Option<Delivery<P>> {
        self.release(now_us);
        let (at, _) = *self.on_the_way.keys().next()?;
        if at > now_us {
            return None;
        }
        self.on_the_way.pop_first().map(|(_, delivery)| delivery)
    }

    fn happens(&mut self, chance: Chance) -> bool {
        chance.happens(&mut self.random)
    }

    /// When the packet leaves the bottleneck, rounded up, and whether it is marked; `None` if the
    /// queue is full.
    fn through_bottleneck(&mut self, bytes: u32, now_us: u64) -> Option<(u64, bool)> {
        let Some(rate) = self.path.rate else {
            return Some((now_us, false));
        };
        let now_ns = now_us * 1000;
        while let Some((at, bytes)) = self.waiting.front().copied() {
            if at > now_ns {
                break;
            }
            self.waiting.pop_front();
            self.waiting_bytes -= u64::from(bytes);
        }
        let is_full = match self.path.queue {
            Queue::Bytes(most) => self.waiting_bytes + u64::from(bytes) > most,
            Queue::Packets(most) => self.waiting.len() >= most,
        };
        if is_full {
            return None;
        }
        let limit = self.path.mark_above;
        let is_marked = limit.is_some_and(|limit| self.waiting_bytes > limit);
        let begin = self.waiting.back().map_or(now_ns, |(at, _)| *at);
        let left_ns = begin + u64::from(bytes) * 8_000_000_000 / rate;
        self.waiting.push_back((left_ns, bytes));
        self.waiting_bytes += u64::from(bytes);
        Some((left_ns.div_ceil(1000), is_marked))
    }

    /// Takes a packet that left the bottleneck.
    fn forward(&mut self, delivery: Delivery<P>, left_us: u64) {
        let at = self.in_order(left_us + self.path.delay_us);
        let reordering = self.path.reordering;
        match reordering {
            Reordering::Behind {
                chance,
                packets,
                most_us,
            } if self.happens(chance) => {
                self.totals.reordered += 1;
                self.held.push(Held {
                    delivery,
                    left: packets,
                    until_us: at + most_us,
                });
            }
            Reordering::Late { chance, most_us } if self.happens(chance) => {
                self.totals.reordered += 1;
                let late = self.random.u64(0..=most_us);
                self.arrive(delivery, at + late);
            }
            Reordering::None | Reordering::Behind { .. } | Reordering::Late { .. } => {
                self.arrive(delivery, at);
                self.overtake(at);
            }
        }
    }

    /// When a packet arrives that is not late on purpose.
    fn in_order(&mut self, at: u64) -> u64 {
        if self.path.jitter_us == 0 {
            return at;
        }
        let at = at + self.random.u64(0..=self.path.jitter_us);
        self.latest_us = self.latest_us.max(at);
        self.latest_us
    }

    fn arrive(&mut self, delivery: Delivery<P>, at: u64) {
        self.count += 1;
        self.on_the_way.insert((at, self.count), delivery);
    }

    /// One packet overtakes all that are held.
    fn overtake(&mut self, at: u64) {
        for held in &mut self.held {
            held.left = held.left.saturating_sub(1);
        }
        let free = self.held.extract_if(.., |held| held.left == 0);
        let free: Vec<_> = free.collect();
        for held in free {
            self.arrive(held.delivery, at.min(held.until_us));
        }
    }

    /// Forwards the held packets whose time has come.
    fn release(&mut self, now_us: u64) {
        if self.held.is_empty() {
            return;
        }
        let due: Vec<_> = self
            .held
            .extract_if(.., |held| held.until_us <= now_us)
            .collect();
        for held in due {
            self.arrive(held.delivery, held.until_us);
        }
    }
}
