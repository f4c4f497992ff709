//! Flows of the engine that share a path, in simulated time.

use saiga_path::{Link, Path, Totals};
use saiga_tcp::{Config, Counters, Instant};

use crate::flow::{End, Packet};

/// Flows between two hosts. All of them write in the same direction.
#[derive(Debug)]
pub struct World {
    now: Instant,
    random: fastrand::Rng,
    config: Config,
    flows: Vec<Flow>,
    forward: Link<Packet>,
    back: Link<Packet>,
}

#[derive(Debug)]
struct Flow {
    begins: Instant,
    writer: Option<End>,
    reader: Option<End>,
}

impl World {
    /// A world in which flow `i` begins at `begins_us[i]`.
    #[must_use]
    pub fn new(forward: Path, back: Path, config: &Config, begins_us: &[u64], seed: u64) -> Self {
        let mut random = fastrand::Rng::with_seed(seed);
        let flow = |begins: &u64| Flow {
            begins: Instant(*begins),
            writer: None,
            reader: None,
        };
        Self {
            now: Instant(0),
            forward: Link::new(forward, random.u64(..)),
            back: Link::new(back, random.u64(..)),
            random,
            config: config.clone(),
            flows: begins_us.iter().map(flow).collect(),
        }
    }

    /// Runs until `until_us`.
    pub fn run(&mut self, until_us: u64) {
        let until = Instant(until_us);
        while self.now < until {
            self.deliver();
            self.serve();
            let next = self.next().unwrap_or(until);
            self.now = next.max(Instant(self.now.0 + 1)).min(until);
        }
    }

    /// Bytes that each reader has read.
    #[must_use]
    pub fn read(&self) -> Vec<u64> {
        let read = |flow: &Flow| flow.reader.as_ref().map_or(0, End::read);
        self.flows.iter().map(read).collect()
    }

    /// What the writer of a flow counted.
    #[must_use]
    pub fn counters(&self, flow: usize) -> Counters {
        let writer = self.flows.get(flow).and_then(|flow| flow.writer.as_ref());
        writer.map_or_else(Counters::default, End::counters)
    }

    /// What happened to the data.
    #[must_use]
    pub const fn totals(&self) -> Totals {
        self.forward.totals()
    }

    fn deliver(&mut self) {
        let now = self.now;
        while let Some(one) = self.forward.receive(now.0) {
            let Packet {
                flow,
                header,
                length,
            } = one.packet;
            let Some(flow) = self.flows.get_mut(flow) else {
                continue;
            };
            match &mut flow.reader {
                Some(reader) => reader.on_packet(&header, length, one.is_marked, now),
                None => {
                    let reader = End::accept(&self.config, &mut self.random, &header, now);
                    flow.reader = Some(reader);
                }
            }
            // Each packet is answered before the next, as by a host that is fast enough.
            send(&mut flow.reader, one.packet.flow, &mut self.back, now);
        }
        while let Some(one) = self.back.receive(now.0) {
            let packet = one.packet;
            let Some(flow) = self.flows.get_mut(packet.flow) else {
                continue;
            };
            if let Some(writer) = &mut flow.writer {
                writer.on_packet(&packet.header, packet.length, one.is_marked, now);
            }
            send(&mut flow.writer, packet.flow, &mut self.forward, now);
        }
    }

    /// Begins flows, lets timers expire, and lets segments leave.
    fn serve(&mut self) {
        let now = self.now;
        for (index, flow) in self.flows.iter_mut().enumerate() {
            if flow.writer.is_none() && flow.begins <= now {
                flow.writer = Some(End::connect(&self.config, &mut self.random, now));
            }
            for end in [&mut flow.writer, &mut flow.reader].into_iter().flatten() {
                if end.next_timeout(now).is_some_and(|at| at <= now) {
                    end.on_timeout(now);
                }
            }
            send(&mut flow.writer, index, &mut self.forward, now);
            send(&mut flow.reader, index, &mut self.back, now);
        }
    }

    fn next(&mut self) -> Option<Instant> {
        let now = self.now;
        let arrivals = [&self.forward, &self.back].map(Link::next_arrival_us);
        let arrival = arrivals.into_iter().flatten().map(Instant).min();
        let timers = self.flows.iter_mut().filter_map(|flow| {
            let Flow {
                begins,
                writer,
                reader,
            } = flow;
            let Some(writer) = writer else {
                return Some(*begins);
            };
            let reader = reader.as_mut().and_then(|reader| reader.next_timeout(now));
            writer.next_timeout(now).into_iter().chain(reader).min()
        });
        timers.chain(arrival).min()
    }
}

/// Sends all that an end may send.
fn send(end: &mut Option<End>, flow: usize, link: &mut Link<Packet>, now: Instant) {
    let Some(end) = end else { return };
    while let Some((header, length)) = end.transmit(now) {
        let packet = Packet {
            flow,
            header,
            length,
        };
        let bytes = packet.bytes();
        link.send(packet, bytes, now.0);
    }
}
