//! One direction of a path: loss, duplication, reordering, delay, and a queue before a bottleneck.

use std::collections::BTreeMap;

use saiga_tcp::Instant;

use crate::host::Packet;

/// What the path does to packets.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Path {
    /// Microseconds of the way.
    pub(crate) delay_us: u64,
    /// Packets of a thousand that are lost, that come twice, and that are late.
    pub(crate) loss: u32,
    pub(crate) duplication: u32,
    pub(crate) reordering: u32,
    /// Microseconds by which late packets are late, at most.
    pub(crate) lateness_us: u64,
    /// Bytes in a millisecond, and bytes that wait at most. 0: no bottleneck.
    pub(crate) rate: u64,
    pub(crate) queue: u64,
    /// Largest payload that passes; larger ones are lost without an error.
    pub(crate) most: usize,
}

pub(crate) struct Link {
    path: Path,
    random: fastrand::Rng,
    /// By arrival, then by the order in which they were sent.
    on_the_way: BTreeMap<(Instant, u64), Packet>,
    count: u64,
    /// When the bottleneck has sent all that it holds.
    free_at: Instant,
    pub(crate) lost: u64,
}

impl Link {
    pub(crate) fn new(path: Path, random: fastrand::Rng) -> Self {
        Self {
            path,
            random,
            on_the_way: BTreeMap::new(),
            count: 0,
            free_at: Instant(0),
            lost: 0,
        }
    }

    fn happens(&mut self, of_thousand: u32) -> bool {
        self.random.u32(0..1000) < of_thousand
    }

    pub(crate) fn send(&mut self, packet: Packet, now: Instant) {
        if packet.payload.len() > self.path.most {
            self.lost += 1;
            return;
        }
        let Some(start) = self.through_bottleneck(&packet, now) else {
            self.lost += 1;
            return;
        };
        if self.happens(self.path.loss) {
            self.lost += 1;
            return;
        }
        if self.happens(self.path.duplication) {
            self.arrive(packet.clone(), start);
        }
        self.arrive(packet, start);
    }

    /// When the packet leaves the bottleneck; `None` if the queue is full.
    fn through_bottleneck(&mut self, packet: &Packet, now: Instant) -> Option<Instant> {
        if self.path.rate == 0 {
            return Some(now);
        }
        let size = packet.payload.len() as u64 + 40;
        let begin = self.free_at.max(now);
        let waiting = begin.since(now).0 * self.path.rate / 1000;
        if waiting + size > self.path.queue {
            return None;
        }
        self.free_at = Instant(begin.0 + size * 1000 / self.path.rate);
        Some(self.free_at)
    }

    fn arrive(&mut self, packet: Packet, start: Instant) {
        let mut at = start.0 + self.path.delay_us;
        if self.happens(self.path.reordering) {
            at += self.random.u64(0..=self.path.lateness_us);
        }
        self.count += 1;
        self.on_the_way.insert((Instant(at), self.count), packet);
    }

    pub(crate) fn next_arrival(&self) -> Option<Instant> {
        self.on_the_way.keys().next().map(|(at, _)| *at)
    }

    pub(crate) fn receive(&mut self, now: Instant) -> Option<Packet> {
        let (at, _) = *self.on_the_way.keys().next()?;
        if at > now {
            return None;
        }
        self.on_the_way.pop_first().map(|(_, packet)| packet)
    }
}
