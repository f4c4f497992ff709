//! The connection with its buffers, and the operations on it.

use saiga_tcp::{
    Arrival, Config, Connection, Context, Counters, Events, IcmpError, Instant, Micros, Settings,
};
use saiga_wire::SeqNum;
use saiga_wire::tcp::Flags;

use super::bytes::Bytes;
use super::peer::{Peer, Segment};
use super::receive::{Note, Receive};

/// Bytes of the send buffer.
const SEND_BUFFER: u32 = 200_000;
/// The least payload of a full segment: `Config::least_mss` without options.
pub(super) const LEAST_SEGMENT: u32 = 36;
/// Segments beside those, because selective acknowledgements divide ranges.
const MOST_PIECES: u32 = 1100;

pub(crate) struct Host {
    pub(super) connection: Connection,
    pub(super) config: Config,
    pub(super) counters: Counters,
    pub(super) now: Instant,
    /// Largest payload that the device takes.
    pub(super) most: u32,
    pub(super) peer: Peer,
    /// This side's initial number, and the bytes that were written and acknowledged.
    pub(super) iss: SeqNum,
    pub(super) written: u32,
    pub(super) acked: u32,
    pub(super) is_shut: bool,
    pub(super) receive: Receive,
    pub(super) is_closed: bool,
    /// The right end of the largest window of the peer, from `iss + 1`.
    pub(super) edge: i64,
    /// The largest shift of a SYN of the peer.
    pub(super) shift: u8,
    /// The last acknowledgement of the connection.
    pub(super) last_ack: Option<SeqNum>,
}

impl Host {
    pub(crate) fn is_closed(&self) -> bool {
        self.is_closed
    }

    /// Calls the connection with its surroundings.
    fn call<R>(&mut self, call: impl FnOnce(&mut Connection, &mut Context<'_>) -> R) -> R {
        let mut context = Context {
            now: self.now,
            config: &self.config,
            counters: &mut self.counters,
        };
        call(&mut self.connection, &mut context)
    }

    pub(super) fn next_timeout(&mut self) -> Option<Instant> {
        self.call(|connection, context| connection.next_timeout(context))
    }

    pub(crate) fn on_segment(&mut self, bytes: &mut Bytes<'_>) {
        let segment = self.peer.segment(bytes);
        self.deliver(&segment);
    }

    pub(super) fn deliver(&mut self, segment: &Segment) {
        let header = &segment.header;
        if header.flags.contains(Flags::SYN) {
            let shift = header.options.window_scale.unwrap_or(0).min(14);
            self.shift = self.shift.max(shift);
        }
        self.note_window(header);
        let arrival = Arrival {
            header,
            length: segment.length,
            is_congested: segment.is_congested,
        };
        let mut receive = std::mem::take(&mut self.receive);
        let mut note = Note {
            receive: &mut receive,
            length: segment.length,
        };
        let events =
            self.call(|connection, context| connection.on_segment(&arrival, &mut note, context));
        self.receive = receive;
        self.note(events);
    }

    fn note(&mut self, events: Events) {
        assert!(
            !self.is_closed || events == Events::default(),
            "news after the end"
        );
        self.acked += events.acked;
        assert!(self.acked <= self.written, "acknowledged, but not written");
        self.receive.readable += events.readable;
        let readable = self.receive.readable as usize;
        let is_there = self.receive.bytes.iter().take(readable).all(|byte| *byte);
        assert!(
            is_there && self.receive.bytes.len() >= readable,
            "readable, but not there"
        );
        self.is_closed |= events.closed.is_some();
        self.peer.una = self.peer.una.later_of(self.iss + 1 + self.acked);
    }

    pub(crate) fn write(&mut self, bytes: u32, is_urgent: bool) {
        let bytes = bytes.min(SEND_BUFFER - (self.written - self.acked));
        if self.is_shut || self.written > 1 << 30 {
            return;
        }
        self.written += bytes;
        if is_urgent {
            self.call(|connection, context| connection.on_write_urgent(bytes, context));
        } else {
            self.call(|connection, context| connection.on_write(bytes, context));
        }
    }

    pub(crate) fn read(&mut self, bytes: u32) {
        let bytes = bytes.min(self.receive.readable);
        self.receive.readable -= bytes;
        self.receive.bytes.drain(..bytes as usize);
        self.connection.on_read(bytes);
    }

    pub(crate) fn shutdown(&mut self) {
        self.is_shut = true;
        self.call(Connection::shutdown);
    }

    pub(crate) fn close(&mut self) {
        self.is_shut = true;
        let events = self.call(Connection::close);
        self.note(events);
    }

    pub(crate) fn abort(&mut self) {
        let events = self.call(Connection::abort);
        self.note(events);
    }

    pub(crate) fn grow(&mut self, bytes: u16) {
        self.receive.size += u32::from(bytes);
        self.connection.resize(self.receive.size);
    }

    pub(crate) fn set(&mut self, settings: Settings) {
        self.connection.set(settings);
    }

    pub(crate) fn on_icmp(&mut self, error: IcmpError, bytes: &mut Bytes<'_>) {
        let seq = self.peer.una + bytes.near();
        let events = self.call(|connection, context| connection.on_icmp(error, seq, context));
        self.note(events);
    }

    /// Lets time pass until the next time-out.
    pub(crate) fn run_next(&mut self) {
        if let Some(next) = self.next_timeout() {
            self.run(next.since(self.now));
        }
    }

    /// Lets time pass; each time-out comes in time, but there are not many of them.
    pub(crate) fn run(&mut self, span: Micros) {
        let until = self.now + span;
        let mut still = 0;
        for _ in 0..50 {
            let Some(next) = self.next_timeout().filter(|next| *next <= until) else {
                break;
            };
            let before = (
                self.now,
                self.counters.out_segs + self.counters.retrans_segs,
            );
            self.now = self.now.max(next);
            let events = self.call(Connection::on_timeout);
            self.note(events);
            self.pump();
            let after = (
                self.now,
                self.counters.out_segs + self.counters.retrans_segs,
            );
            still = if before == after { still + 1 } else { 0 };
            assert!(still < 8, "a timer stands still");
        }
        self.pass(until.since(self.now));
    }

    /// Lets time pass without time-outs, as a driver that is late.
    pub(crate) fn run_late(&mut self, span: Micros) {
        self.pass(span);
        let events = self.call(Connection::on_timeout);
        self.note(events);
    }

    fn pass(&mut self, span: Micros) {
        self.now = self.now + span;
        let millis = u32::try_from(span.as_millis()).unwrap_or(0);
        self.peer.clock = self.peer.clock.wrapping_add(millis);
    }

    /// Takes all segments that leave now.
    pub(crate) fn pump(&mut self) {
        let most = self.most;
        let bound = (self.written - self.acked) / LEAST_SEGMENT + MOST_PIECES;
        let mut count = 0;
        while let Some(transmit) =
            self.call(|connection, context| connection.transmit(most, context))
        {
            count += 1;
            assert!(count <= bound, "the segments do not end");
            self.check(&transmit);
        }
        self.check_timer();
    }
}
