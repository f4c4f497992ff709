//! A host of the simulation: a connection with its buffers, and an application that writes and
//! reads at random.

use std::collections::VecDeque;

use saiga_tcp::{
    Arrival, Config, Connection, Context, Counters, Events, IcmpError, Instant, Place, Settings,
    Start, StateName,
};
use saiga_wire::SeqNum;
use saiga_wire::tcp::Header;

/// A segment on its way.
#[derive(Debug, Clone)]
pub(crate) struct Packet {
    pub(crate) header: Header,
    pub(crate) payload: Vec<u8>,
    pub(crate) is_congested: bool,
}

/// What the application does.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Task {
    /// Bytes that it writes before it closes.
    pub(crate) bytes: u64,
    /// Bytes of the send buffer and of the receive buffer.
    pub(crate) buffer: u32,
    /// Chance in a hundred that it does not read when it could.
    pub(crate) laziness: u32,
    /// Whether its writes end in small pieces.
    pub(crate) is_chatty: bool,
}

pub(crate) struct Host {
    pub(crate) name: &'static str,
    pub(crate) connection: Connection,
    pub(crate) config: Config,
    pub(crate) counters: Counters,
    task: Task,
    /// Bytes that were written and not acknowledged.
    unacked: VecDeque<u8>,
    written: u64,
    /// The end of the last urgent data.
    urgent: u64,
    is_shut: bool,
    receive: Receive,
    pub(crate) read: u64,
    pub(crate) is_finished: bool,
    pub(crate) end: Option<saiga_tcp::CloseReason>,
    /// The right edge of the largest window that this host has announced.
    edge: Option<SeqNum>,
    shift: u32,
    /// The first number of the stream of this host.
    first: SeqNum,
}

/// The receive buffer, from the first unread byte.
#[derive(Debug, Default)]
struct Receive {
    bytes: VecDeque<Option<u8>>,
    readable: usize,
}

/// Copies a payload into the buffer.
struct Copy<'a> {
    payload: &'a [u8],
    receive: &'a mut Receive,
    limit: u32,
}

impl Place for Copy<'_> {
    fn place(&mut self, from: u32, to: u32, length: u32) {
        assert!(
            to + length <= self.limit,
            "{to} + {length} is behind the buffer"
        );
        let (from, to, length) = (from as usize, to as usize, length as usize);
        let bytes = &mut self.receive.bytes;
        if bytes.len() < to + length {
            bytes.resize(to + length, None);
        }
        for (index, byte) in self.payload[from..from + length].iter().enumerate() {
            let place = &mut bytes[to + index];
            assert_eq!(*place, None, "a byte was placed twice");
            *place = Some(*byte);
        }
    }
}

/// The byte at a position of every stream.
fn byte_at(position: u64) -> u8 {
    (position.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8
}

/// Cuts a long segment as TSO does: PSH and FIN belong to the last part, CWR to the first.
fn cut(header: &Header, payload: &[u8], mss: usize) -> Vec<Packet> {
    use saiga_wire::tcp::Flags;
    let count = payload.len().div_ceil(mss).max(1);
    assert!(
        count == 1 || header.urgent.is_none(),
        "a device does not change the pointer"
    );
    let part = |index: usize| {
        let from = index * mss;
        let mut part = *header;
        part.seq = header.seq + u32::try_from(from).unwrap();
        if index > 0 {
            part.flags = part.flags.without(Flags::CWR);
        }
        if index + 1 < count {
            part.flags = part.flags.without(Flags::PSH | Flags::FIN);
        }
        Packet {
            header: part,
            payload: payload[from..payload.len().min(from + mss)].to_vec(),
            is_congested: false,
        }
    };
    (0..count).map(part).collect()
}

impl Host {
    pub(crate) fn connect(
        name: &'static str,
        task: Task,
        config: Config,
        start: Start,
        now: Instant,
    ) -> Self {
        let mut counters = Counters::default();
        let connection = Connection::connect(
            start,
            &mut Context {
                now,
                config: &config,
                counters: &mut counters,
            },
        );
        Self::with(name, task, config, start, connection, counters)
    }

    pub(crate) fn accept(
        name: &'static str,
        task: Task,
        config: Config,
        start: Start,
        syn: &Header,
        now: Instant,
    ) -> Self {
        let mut counters = Counters::default();
        let connection = Connection::accept(
            start,
            syn,
            &mut Context {
                now,
                config: &config,
                counters: &mut counters,
            },
        );
        Self::with(name, task, config, start, connection, counters)
    }

    fn with(
        name: &'static str,
        task: Task,
        config: Config,
        start: Start,
        connection: Connection,
        counters: Counters,
    ) -> Self {
        Self {
            name,
            connection,
            config,
            counters,
            task,
            unacked: VecDeque::new(),
            written: 0,
            urgent: 0,
            is_shut: false,
            receive: Receive::default(),
            read: 0,
            is_finished: false,
            end: None,
            edge: None,
            shift: 0,
            first: start.iss + 1,
        }
    }

    pub(crate) fn set(&mut self, settings: Settings) {
        self.connection.set(settings);
    }

    /// Calls the connection with its surroundings.
    fn call<R>(
        &mut self,
        now: Instant,
        call: impl FnOnce(&mut Connection, &mut Context<'_>) -> R,
    ) -> R {
        let mut context = Context {
            now,
            config: &self.config,
            counters: &mut self.counters,
        };
        call(&mut self.connection, &mut context)
    }

    pub(crate) fn next_timeout(&mut self, now: Instant) -> Option<Instant> {
        self.call(now, |connection, context| connection.next_timeout(context))
    }

    pub(crate) fn on_timeout(&mut self, now: Instant) {
        let events = self.call(now, Connection::on_timeout);
        self.note(&events);
    }

    pub(crate) fn on_packet(&mut self, packet: &Packet, now: Instant) {
        let arrival = Arrival {
            header: &packet.header,
            length: u32::try_from(packet.payload.len()).unwrap(),
            is_congested: packet.is_congested,
        };
        let mut receive = std::mem::take(&mut self.receive);
        let mut copy = Copy {
            payload: &packet.payload,
            receive: &mut receive,
            limit: self.task.buffer,
        };
        let events = self.call(now, |connection, context| {
            connection.on_segment(&arrival, &mut copy, context)
        });
        self.receive = receive;
        self.note(&events);
    }

    /// A router has dropped the segment at `seq`.
    pub(crate) fn on_too_big(&mut self, mss: u16, seq: SeqNum, now: Instant) {
        let error = IcmpError::TooBig { mss };
        let events = self.call(now, |connection, context| {
            connection.on_icmp(error, seq, context)
        });
        self.note(&events);
    }

    fn note(&mut self, events: &Events) {
        let acked = events.acked as usize;
        assert!(
            acked <= self.unacked.len(),
            "{} acknowledges what was not written",
            self.name
        );
        self.unacked.drain(..acked);
        self.receive.readable += events.readable as usize;
        self.is_finished |= events.is_finished;
        if events.closed.is_some() {
            assert_eq!(self.end, None, "{} ended twice", self.name);
            self.end = events.closed;
        }
    }

    /// The next segment, cut as a device would, with its payload. It must be inside of the window
    /// of the peer.
    pub(crate) fn transmit(
        &mut self,
        now: Instant,
        most: u32,
        peer: Option<&Self>,
    ) -> Option<Vec<Packet>> {
        let segment = self.call(now, |connection, context| {
            connection.transmit(most, context)
        })?;
        let from = segment.offset as usize;
        let payload: Vec<u8> = self
            .unacked
            .range(from..from + segment.length as usize)
            .copied()
            .collect();
        self.check_content(&segment.header, &payload);
        self.check_urgent(&segment.header);
        self.announce(&segment.header);
        if let Some(edge) = peer.and_then(|peer| peer.edge)
            && segment.length > 0
        {
            let end = segment.header.seq + segment.length;
            assert!(
                !end.after(edge),
                "{} sends up to {end:?}, the window ends at {edge:?}",
                self.name
            );
        }
        Some(cut(&segment.header, &payload, usize::from(segment.mss)))
    }

    /// The payload must be that of its sequence numbers, also when it is sent again.
    fn check_content(&self, header: &Header, payload: &[u8]) {
        if payload.is_empty() {
            return;
        }
        let position = u64::from(header.seq - self.first);
        let base = self.written - self.unacked.len() as u64;
        // Streams of this simulation are shorter than the sequence space.
        assert!(
            position >= base || base > u64::from(u32::MAX),
            "{}",
            self.name
        );
        for (at, byte) in (position..).zip(payload) {
            assert_eq!(*byte, byte_at(at), "{} at {at}", self.name);
        }
    }

    /// The pointer names the end of urgent data.
    fn check_urgent(&self, header: &Header) {
        if let Some(pointer) = header.urgent.filter(|pointer| *pointer < u16::MAX) {
            let end = header.seq + u32::from(pointer);
            assert_eq!(
                u64::from(end - self.first),
                self.urgent,
                "{}: {pointer}",
                self.name
            );
        }
    }

    /// Remembers the window that a segment announces.
    fn announce(&mut self, header: &Header) {
        use saiga_wire::tcp::Flags;
        if header.flags.contains(Flags::SYN) {
            self.shift = u32::from(header.options.window_scale.unwrap_or(0));
        }
        let Some(ack) = header.ack else { return };
        let shift = if header.flags.contains(Flags::SYN) {
            0
        } else {
            self.shift
        };
        let edge = ack + (u32::from(header.window) << shift);
        self.edge = Some(self.edge.map_or(edge, |known| known.later_of(edge)));
    }

    /// Lets the application write, read and close.
    pub(crate) fn run_application(&mut self, random: &mut fastrand::Rng, now: Instant) {
        self.write(random, now);
        if random.u32(0..100) >= self.task.laziness {
            self.read_some(random);
        }
        if self.written == self.task.bytes && !self.is_shut {
            self.is_shut = true;
            self.call(now, Connection::shutdown);
        }
    }

    fn write(&mut self, random: &mut fastrand::Rng, now: Instant) {
        let room = self.task.buffer as usize - self.unacked.len();
        let left = self.task.bytes - self.written;
        let mut count = (room as u64).min(left);
        if self.task.is_chatty {
            count = count.min(u64::from(random.u32(1..3000)));
        }
        if count == 0 || self.is_ended() {
            return;
        }
        let written = self.written;
        self.unacked.extend((written..written + count).map(byte_at));
        self.written += count;
        let count = u32::try_from(count).unwrap();
        let is_urgent = self.task.is_chatty && count % 16 == 7;
        self.call(now, |connection, context| {
            if is_urgent {
                connection.on_write_urgent(count, context);
            } else {
                connection.on_write(count, context);
            }
        });
        if is_urgent {
            self.urgent = self.written;
        }
    }

    fn read_some(&mut self, random: &mut fastrand::Rng) {
        let readable = self.receive.readable;
        if readable == 0 {
            return;
        }
        let count = random.usize(1..=readable);
        for byte in self.receive.bytes.drain(..count) {
            assert_eq!(
                byte,
                Some(byte_at(self.read)),
                "{} reads byte {}",
                self.name,
                self.read
            );
            self.read += 1;
        }
        self.receive.readable -= count;
        self.connection.on_read(u32::try_from(count).unwrap());
    }

    pub(crate) fn is_ended(&self) -> bool {
        self.end.is_some()
    }

    /// Whether the application has everything that it waits for.
    pub(crate) fn is_done(&self) -> bool {
        let state = self.connection.state();
        matches!(state, StateName::TimeWait | StateName::Closed) && self.receive.readable == 0
    }

    /// Whether the application can write, read or close.
    pub(crate) fn has_work(&self) -> bool {
        let can_write = self.written < self.task.bytes && !self.is_ended();
        let has_room = self.unacked.len() < self.task.buffer as usize;
        let must_shut = self.written == self.task.bytes && !self.is_shut;
        can_write && has_room || self.receive.readable > 0 || must_shut
    }

    /// Whether data or a FIN waits for the peer.
    pub(crate) fn must_have_timer(&self) -> bool {
        !self.unacked.is_empty() && !self.is_ended()
    }

    pub(crate) fn written(&self) -> u64 {
        self.written
    }

    pub(crate) fn memory(&self) -> usize {
        self.receive.bytes.len()
    }
}
