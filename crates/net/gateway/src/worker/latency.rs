//! How long bytes take through a worker, in four parts, as histograms.
//!
//! The clock is read between the steps of a turn that has work, at most three times more; bytes
//! have no instants of their own. So each time ends when a step was done for all conversations of
//! the turn: the times of single bytes are at most as long. The fields of [`Latency`] say where
//! each part begins and ends. Not contained: the time before the worker looks at the device or gets
//! the event, and bytes that a server has sent before the first event of its anchor.

use hdrhistogram::Histogram;
use saiga_stack::Instant;

/// The longest time that is told from longer ones: a minute.
const LONGEST_US: u64 = 60_000_000;
/// Significant digits of the times.
const DIGITS: u8 = 2;

/// The four histograms of a worker.
#[derive(Debug, Clone)]
pub struct Latency {
    /// From the start of the turn that finds a frame until its batch is in the rings; one value for
    /// each frame.
    pub device_to_ring: Times,
    /// From the start of the turn in which bytes come into an empty ring until the server's kernel
    /// has all bytes of the ring.
    pub ring_to_server: Times,
    /// From the event of a readable anchor until its first bytes are in the ring.
    pub server_to_ring: Times,
    /// From there until a frame with bytes of the conversation is at the device; a retransmission
    /// that comes first counts.
    pub ring_to_device: Times,
}

/// A histogram of microseconds.
#[derive(Debug, Clone)]
pub struct Times(Histogram<u64>);

/// What the present turn has to measure.
#[derive(Debug)]
pub(crate) struct Watch {
    /// When the turn began.
    pub(crate) turned: Instant,
    /// Since when bytes waited that the server's kernel now has.
    pub(crate) written: Vec<Instant>,
    /// Since when bytes waited that are now in rings towards clients.
    pub(crate) read: Vec<Instant>,
    /// Keys of the conversations with these bytes.
    pub(crate) filled: Vec<u32>,
    /// Since when bytes waited that are now in frames.
    pub(crate) sent: Vec<Instant>,
}

/// Since when the bytes of a conversation wait.
#[derive(Debug, Default)]
pub(crate) struct Since {
    /// In the ring towards the server.
    pub(crate) inbound: Option<Instant>,
    /// In the server's kernel.
    pub(crate) readable: Option<Instant>,
    /// In the ring towards the client, before the first of them is sent.
    pub(crate) outbound: Option<Instant>,
    /// Whether bytes have come into the ring towards the client in this turn.
    pub(crate) is_filled: bool,
}

impl Times {
    fn new() -> Self {
        // The constructor fails only for other bounds.
        let histogram = Histogram::new_with_max(LONGEST_US, DIGITS);
        Self(histogram.unwrap_or_else(|_| unreachable!("the bounds are valid")))
    }

    /// The histogram, in which a time longer than a minute counts as a minute.
    #[must_use]
    pub const fn histogram(&self) -> &Histogram<u64> {
        &self.0
    }

    fn record(&mut self, since: Instant, now: Instant, count: u64) {
        self.0.saturating_record_n(now.since(since).0, count);
    }

    fn record_all(&mut self, since: &mut Vec<Instant>, now: Instant) {
        for since in since.drain(..) {
            self.record(since, now, 1);
        }
    }
}

impl Latency {
    pub(super) fn new() -> Self {
        Self {
            device_to_ring: Times::new(),
            ring_to_server: Times::new(),
            server_to_ring: Times::new(),
            ring_to_device: Times::new(),
        }
    }

    /// The frames of a batch are in the rings.
    pub(super) fn on_received(&mut self, frames: usize, watch: &Watch, now: Instant) {
        self.device_to_ring.record(watch.turned, now, frames as u64);
    }

    /// Bytes have moved between rings and servers.
    pub(super) fn on_moved(&mut self, watch: &mut Watch, now: Instant) {
        self.ring_to_server.record_all(&mut watch.written, now);
        self.server_to_ring.record_all(&mut watch.read, now);
    }

    /// Frames are at the device.
    pub(super) fn on_sent(&mut self, watch: &mut Watch, now: Instant) {
        self.ring_to_device.record_all(&mut watch.sent, now);
    }
}

impl Watch {
    pub(crate) const fn new() -> Self {
        Self {
            turned: Instant(0),
            written: Vec::new(),
            read: Vec::new(),
            filled: Vec::new(),
            sent: Vec::new(),
        }
    }

    /// Whether bytes have moved between rings and servers.
    pub(super) fn has_moved(&self) -> bool {
        !self.written.is_empty() || !self.filled.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_end_with_the_step() {
        let mut latency = Latency::new();
        let mut watch = Watch::new();
        watch.turned = Instant(100);
        latency.on_received(3, &watch, Instant(107));
        watch.written = vec![Instant(100), Instant(50)];
        watch.read = vec![Instant(90)];
        latency.on_moved(&mut watch, Instant(110));
        watch.sent = vec![Instant(110)];
        latency.on_sent(&mut watch, Instant(115));
        let shown = |times: &Times| {
            let times = times.histogram();
            (times.len(), times.min(), times.max())
        };
        assert_eq!(shown(&latency.device_to_ring), (3, 7, 7));
        assert_eq!(shown(&latency.ring_to_server), (2, 10, 60));
        assert_eq!(shown(&latency.server_to_ring), (1, 20, 20));
        assert_eq!(shown(&latency.ring_to_device), (1, 5, 5));
        assert!(watch.written.is_empty() && watch.read.is_empty() && watch.sent.is_empty());
    }
}
