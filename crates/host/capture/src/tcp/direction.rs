//! One direction of a connection: its bytes in order, and what was sent again.
//!
//! Spec: RFC 9293 §3.4 (sequence numbers). Segments go in as they were captured; chunks come out
//! in order. Bytes that the receiver acknowledged but the capture lacks come out as missing ones,
//! as soon as a later segment proves that they were not only captured late.

use std::{collections::VecDeque, time::Duration};

use crate::{
    Timestamp,
    protocol::Chunk,
    segment::Segment,
    traffic::{Budget, Sink, nanoseconds},
};

/// Segments that may wait for those before them.
const MOST_PENDING: usize = 256;
/// Unacknowledged segments whose time is kept.
const MOST_FLIGHTS: usize = 32;
/// Segments sent within this time share an entry.
const FLIGHT_NS: u64 = 1_000_000;
/// A segment that fills a gap within this time was overtaken; later ones were sent again.
const REORDERING: Duration = Duration::from_millis(3);
/// An ACK of unseen bytes proves that they are lost when nothing shows up in this time.
const LATE_CAPTURE: Duration = Duration::from_millis(10);
/// Farther sequence numbers belong to another connection.
const FARTHEST: u32 = 1 << 30;

#[derive(Debug)]
struct Pending {
    seq: u32,
    length: u32,
    bytes: Box<[u8]>,
}

/// Bytes up to `end` that were first sent at `at`.
#[derive(Debug, Clone, Copy)]
struct Flight {
    end: u32,
    at: Timestamp,
}

/// What a segment with payload turned out to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Arrival {
    /// Payload that was not seen before, of this length.
    New(u32),
    /// A segment that overtook its predecessors on the way to the capture fills this much.
    OutOfOrder(u32),
    /// Sent again, this long after the first time, if that is known.
    Retransmission(Option<Duration>),
    KeepAlive,
    /// The sequence number is far from all others.
    Stray,
}

#[derive(Debug, Default)]
pub(super) struct Direction {
    /// The sequence number of the SYN.
    pub(super) initial: Option<u32>,
    /// The sequence number of the FIN.
    pub(super) fin: Option<u32>,
    pub(super) window_is_closed: bool,
    /// The next byte that goes out.
    next: Option<u32>,
    /// The end of the segments so far, and when the last of them was seen.
    highest: u32,
    highest_at: Timestamp,
    /// The receiver has all bytes before this one; when it said so.
    acked: Option<(u32, Timestamp)>,
    pending: Vec<Pending>,
    flights: VecDeque<Flight>,
    /// Bytes of holes that a later segment confirmed, until the connection takes them.
    pub(super) confirmed: u64,
}

/// Takes the chunks of a direction in order.
pub(super) trait Receiver {
    fn chunk(&mut self, chunk: Chunk<'_>, sink: &mut Sink<'_>);
}

/// The distance from `from` to `to`; negative if `to` comes first.
fn distance(from: u32, to: u32) -> i32 {
    to.wrapping_sub(from).cast_signed()
}

fn is_far(from: u32, to: u32) -> bool {
    distance(from, to).unsigned_abs() > FARTHEST
}

impl Direction {
    pub(super) fn on_syn(&mut self, seq: u32) {
        self.initial = Some(seq);
        self.next = Some(seq.wrapping_add(1));
        self.highest = seq.wrapping_add(1);
    }

    /// Gives back what it holds.
    pub(super) fn close(&mut self, budget: &mut Budget) {
        for pending in self.pending.drain(..) {
            budget.give_bytes(pending.bytes.len());
        }
        self.pending = Vec::new();
        self.flights = VecDeque::new();
    }

    pub(super) fn on_payload(
        &mut self,
        segment: &Segment<'_>,
        at: Timestamp,
        sink: &mut Sink<'_>,
        out: &mut impl Receiver,
    ) -> Arrival {
        let Segment {
            seq, length, bytes, ..
        } = *segment;
        let next = *self.next.get_or_insert_with(|| {
            self.highest = seq;
            seq
        });
        if is_far(next, seq) {
            return Arrival::Stray;
        }
        let end = seq.wrapping_add(length);
        if length <= 1 && seq == self.highest.wrapping_sub(1) {
            return Arrival::KeepAlive;
        }
        self.confirm_hole(seq, sink, out);
        let arrival = self.classify(seq, end, at);
        if distance(self.highest, end) > 0 {
            self.highest = end;
            self.highest_at = at;
            self.sent(end, at);
        }
        self.accept(seq, length, bytes, sink, out);
        arrival
    }

    fn classify(&self, seq: u32, end: u32, at: Timestamp) -> Arrival {
        let next = self.next.unwrap_or(seq);
        let fresh = distance(self.highest, end);
        if distance(self.highest, seq) >= 0 {
            return Arrival::New(fresh.unsigned_abs());
        }
        let waits = |pending: &Pending| {
            distance(pending.seq, seq) >= 0
                && distance(seq, pending.seq.wrapping_add(pending.length)) > 0
        };
        if distance(next, seq) < 0 || self.pending.iter().any(waits) {
            let flight = self
                .flights
                .iter()
                .find(|flight| distance(seq, flight.end) > 0);
            return Arrival::Retransmission(flight.map(|flight| at.since(flight.at)));
        }
        let late = at.since(self.highest_at);
        if late > REORDERING {
            // The first sending was lost before it reached the capture; its time is about that
            // of the segments around it.
            return Arrival::Retransmission(Some(late));
        }
        Arrival::OutOfOrder(distance(seq, end).unsigned_abs())
    }

    fn sent(&mut self, end: u32, at: Timestamp) {
        if let Some(last) = self.flights.back_mut()
            && nanoseconds(at.since(last.at)) < FLIGHT_NS
        {
            last.end = end;
            return;
        }
        if self.flights.len() == MOST_FLIGHTS {
            self.flights.pop_front();
        }
        self.flights.push_back(Flight { end, at });
    }

    /// Takes a segment into the order of bytes.
    fn accept(
        &mut self,
        seq: u32,
        length: u32,
        bytes: &[u8],
        sink: &mut Sink<'_>,
        out: &mut impl Receiver,
    ) {
        let next = self.next.unwrap_or(seq);
        if distance(next, seq) <= 0 {
            self.emit(seq, length, bytes, sink, out);
            self.drain(sink, out);
            return;
        }
        if self.pending.len() == MOST_PENDING || !sink.budget.take_bytes(bytes.len()) {
            sink.budget.gaps_given_up += 1;
            let first = self.pending.first().map_or(seq, |first| first.seq);
            let first = if distance(seq, first) > 0 { seq } else { first };
            self.skip_to(first, sink, out);
            self.drain(sink, out);
            // It fits now, or is lost with the gap before it.
            let next = self.next.unwrap_or(seq);
            if distance(next, seq) <= 0 {
                self.emit(seq, length, bytes, sink, out);
            }
            return;
        }
        let place = self
            .pending
            .partition_point(|other| distance(other.seq, seq) > 0);
        self.pending.insert(
            place,
            Pending {
                seq,
                length,
                bytes: bytes.into(),
            },
        );
    }

    /// Delivers the part of a segment that is new.
    fn emit(
        &mut self,
        seq: u32,
        length: u32,
        bytes: &[u8],
        sink: &mut Sink<'_>,
        out: &mut impl Receiver,
    ) {
        let next = self.next.unwrap_or(seq);
        let known = distance(seq, next).max(0).unsigned_abs();
        let Some(fresh) = length.checked_sub(known).filter(|fresh| *fresh > 0) else {
            return;
        };
        let known = usize::try_from(known).unwrap_or(usize::MAX);
        let captured = bytes.get(known..).unwrap_or_default();
        let missing = u64::from(fresh).saturating_sub(captured.len() as u64);
        out.chunk(Chunk::Bytes(captured), sink);
        out.chunk(Chunk::Missing(missing), sink);
        self.next = Some(seq.wrapping_add(length));
    }

    fn drain(&mut self, sink: &mut Sink<'_>, out: &mut impl Receiver) {
        while let Some(next) = self.next
            && let Some(first) = self.pending.first()
            && distance(next, first.seq) <= 0
        {
            let Pending { seq, length, bytes } = self.pending.remove(0);
            sink.budget.give_bytes(bytes.len());
            self.emit(seq, length, &bytes, sink, out);
        }
    }

    fn skip_to(&mut self, seq: u32, sink: &mut Sink<'_>, out: &mut impl Receiver) {
        let missing = distance(self.next.unwrap_or(seq), seq);
        if missing > 0 {
            out.chunk(Chunk::Missing(u64::from(missing.unsigned_abs())), sink);
            self.next = Some(seq);
        }
    }

    /// The receiver acknowledges all bytes before `ack`, in a segment with payload or without.
    /// Returns the number of bytes that the capture lacks.
    pub(super) fn on_ack(
        &mut self,
        ack: u32,
        at: Timestamp,
        has_payload: bool,
        sink: &mut Sink<'_>,
        out: &mut impl Receiver,
    ) -> u64 {
        while self
            .flights
            .front()
            .is_some_and(|flight| distance(flight.end, ack) >= 0)
        {
            self.flights.pop_front();
        }
        let Some(next) = self.next else {
            self.next = Some(ack);
            self.highest = ack;
            return 0;
        };
        // FIN takes one sequence number.
        let ack = match self.fin {
            Some(fin) if ack == fin.wrapping_add(1) => fin,
            Some(_) | None => ack,
        };
        if is_far(next, ack) || distance(next, ack) <= 0 {
            return 0;
        }
        let since = match self.acked {
            Some((known, since)) if distance(next, known) > 0 => since,
            Some(_) | None => at,
        };
        self.acked = Some((ack, since));
        if !has_payload && at.since(since) < LATE_CAPTURE {
            return 0;
        }
        self.fill_hole(ack, sink, out)
    }

    /// A segment at `seq` proves that acknowledged bytes before it will not be captured.
    fn confirm_hole(&mut self, seq: u32, sink: &mut Sink<'_>, out: &mut impl Receiver) {
        if let (Some(next), Some((acked, _))) = (self.next, self.acked)
            && distance(next, acked) > 0
            && distance(acked, seq) >= 0
        {
            self.confirmed += self.fill_hole(acked, sink, out);
        }
    }

    fn fill_hole(&mut self, end: u32, sink: &mut Sink<'_>, out: &mut impl Receiver) -> u64 {
        let mut missing = 0;
        while let Some(next) = self.next
            && distance(next, end) > 0
        {
            let first = self.pending.first().map_or(end, |first| first.seq);
            let stop = if distance(first, end) > 0 { first } else { end };
            missing += u64::from(distance(next, stop).max(0).unsigned_abs());
            self.skip_to(stop, sink, out);
            self.drain(sink, out);
        }
        if distance(self.highest, end) > 0 {
            self.highest = end;
        }
        missing
    }
}
