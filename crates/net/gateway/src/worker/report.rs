//! Answers of a worker to requests: its counts, its connections, and captures.
//!
//! Only what the worker has at hand is copied; the asking thread gives it names. All this happens
//! between two turns.

use std::time::{Duration, SystemTime};

use saiga_netdev::Device;
use saiga_netdev::capture::Captured;
use saiga_stack::{Instant, Micros, View};

use super::bypass::Bypass;
use super::latency::Latency;
use super::request::Request;
use super::{Anchors, Worker};

/// Places of a page: the worker is away from its device for less than 100 microseconds.
const PAGE: u32 = 256;

/// The counts of a worker.
#[derive(Debug, Clone)]
pub struct Report {
    /// The counts of its devices; last that of the device that leads to the kernel.
    pub devices: Vec<saiga_netdev::Counters>,
    /// The counts of its stack, with those of TCP.
    pub stack: saiga_stack::Counters,
    /// Connections of its stack, those in handshakes and in TIME-WAIT included.
    pub connections: u32,
    /// Conversations: connections with an anchor.
    pub conversations: u32,
    /// Bytes of memory in the rings of conversations.
    pub ring_bytes: u64,
    /// How long the worker has run.
    pub uptime: Micros,
    /// How long it has worked: turns with work, each with the poll behind it.
    pub busy: Micros,
    /// Turns with work.
    pub busy_turns: u64,
    /// How long bytes take through the worker.
    pub latency: Latency,
}

/// Some connections of a worker.
#[derive(Debug, Clone)]
pub struct Page {
    /// The connections.
    pub connections: Vec<Shown>,
    /// Where the next page begins; `None` after the last one.
    pub next: Option<u32>,
}

/// A connection with its anchor.
#[derive(Debug, Clone, Copy)]
pub struct Shown {
    /// The connection.
    pub view: View,
    /// The rings between client and server, if the connection has an anchor.
    pub rings: Option<Rings>,
}

/// The rings of a conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rings {
    /// Whether the server has accepted the anchor.
    pub is_accepted: bool,
    /// Bytes of the client that the server's kernel has not taken.
    pub inbound: u32,
    /// Bytes of the server that the client has not acknowledged.
    pub outbound: u32,
    /// Bytes that each ring can hold.
    pub capacity: u32,
}

/// How much of its time a worker works.
#[derive(Debug)]
pub(super) struct Load {
    began: Instant,
    /// When the present turn began.
    turned: Instant,
    busy: Micros,
    busy_turns: u64,
}

impl Load {
    pub(super) const fn new(now: Instant) -> Self {
        Self {
            began: now,
            turned: now,
            busy: Micros::ZERO,
            busy_turns: 0,
        }
    }

    /// A turn begins, after one that had work or had none.
    pub(super) fn on_turn(&mut self, had_work: bool, now: Instant) {
        if had_work {
            self.busy = self.busy + now.since(self.turned);
            self.busy_turns += 1;
        }
        self.turned = now;
    }
}

impl<D: Device, A: Anchors> Worker<D, A> {
    /// Answers a request. An answer that nothing waits for is dropped.
    #[cold]
    pub(super) fn answer(&mut self, request: Request, now: Instant) {
        match request {
            Request::Report(answer) => {
                let _gone = answer.try_send(self.report(now));
            }
            Request::Page { from, answer } => {
                let _gone = answer.try_send(self.page(from, now));
            }
            Request::Capture {
                capture,
                first,
                answer,
            } => {
                for (number, device) in (first..).zip(&mut self.devices) {
                    device.start(capture.clone(), number);
                }
                let _gone = answer.try_send(());
            }
            Request::EndCapture(answer) => {
                self.devices.iter_mut().for_each(Captured::stop);
                let _gone = answer.try_send(());
            }
            Request::Change(change) => self.follow(change, now),
            Request::Overheard(frame) => self.stack.overhear(&frame, now, &mut self.table),
        }
    }

    fn report(&self, now: Instant) -> Report {
        let devices = self.devices.iter().map(Device::counters);
        Report {
            devices: devices
                .chain(self.bypass.iter().map(Bypass::counters))
                .collect(),
            stack: self.stack.counters(),
            connections: self.stack.len(),
            conversations: self.table.len(),
            ring_bytes: self.table.ring_bytes(),
            uptime: now.since(self.load.began),
            busy: self.load.busy,
            busy_turns: self.load.busy_turns,
            latency: self.latency.clone(),
        }
    }

    fn page(&self, from: u32, now: Instant) -> Page {
        let places = self.stack.places();
        let end = from.saturating_add(PAGE).min(places);
        let views = (from..end).filter_map(|place| self.stack.view(place, now));
        Page {
            connections: views
                .map(|view| Shown {
                    view,
                    rings: self.table.rings(view.id),
                })
                .collect(),
            next: (end < places).then_some(end),
        }
    }
}

/// The time since the Unix epoch: the clock of captures.
pub(super) fn since_epoch() -> Duration {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_turns_with_work_are_busy() {
        let mut load = Load::new(Instant(100));
        for (had_work, now) in [(false, 110), (true, 125), (false, 500), (true, 507)] {
            load.on_turn(had_work, Instant(now));
        }
        assert_eq!((load.busy, load.busy_turns), (Micros(22), 2));
    }
}
