//! One connection: how it begins and ends, and what its segments mean for the results.

use crate::{
    Protocol, Timestamp,
    protocol::{Chunk, Conversation, Side},
    segment::Segment,
    tcp::direction::{Arrival, Direction, Receiver},
    traffic::{Sink, nanoseconds, record},
};

/// Two equal packets within this time are copies, if the packet has an identification.
const COPY_NS: u64 = 1_000_000;
/// The same for IPv6 and for packets without one: shorter than any retransmission timer.
const COPY_WITHOUT_ID_NS: u64 = 50_000;

/// What tells a segment from others of its direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Signature {
    seq: u32,
    ack: Option<u32>,
    length: u32,
    window: u16,
    flags: (bool, bool, bool),
    id: Option<u16>,
}

/// How far the connection is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// The client sent a SYN at this time.
    Opening(Timestamp),
    /// The server answered a SYN of this time.
    Answered(Timestamp),
    Established(Timestamp),
    /// It existed before the capture.
    Existing,
    Closed,
}

#[derive(Debug)]
pub(super) struct Connection {
    phase: Phase,
    client: Direction,
    server: Direction,
    /// The last segment of each direction.
    last: [Option<(Signature, Timestamp)>; 2],
    first_fin: Option<Side>,
    talk: Conversation,
    pub(super) last_seen: Timestamp,
    /// Where its server is in the results.
    pub(super) place: usize,
}

impl Connection {
    /// The connection that `segment` of `side` begins, or that the capture shows first.
    pub(super) fn new(
        segment: &Segment<'_>,
        at: Timestamp,
        place: usize,
        hint: Option<Protocol>,
        sink: &mut Sink<'_>,
    ) -> Self {
        let begins = segment.syn && segment.ack.is_none();
        let phase = if begins {
            sink.server.handshakes.attempts += 1;
            Phase::Opening(at)
        } else {
            sink.server.handshakes.existing += 1;
            Phase::Existing
        };
        if begins {
            sink.opened(at);
        }
        Self {
            phase,
            client: Direction::default(),
            server: Direction::default(),
            last: [None; 2],
            first_fin: None,
            talk: Conversation::new(segment.syn, hint),
            last_seen: at,
            place,
        }
    }

    /// Whether a SYN of the client begins another connection of the same addresses.
    pub(super) fn is_replaced_by(&self, segment: &Segment<'_>) -> bool {
        segment.syn
            && segment.ack.is_none()
            && (self.phase == Phase::Closed || self.client.initial != Some(segment.seq))
    }

    pub(super) fn is_closed(&self) -> bool {
        self.phase == Phase::Closed
    }

    pub(super) fn on_segment(
        &mut self,
        side: Side,
        segment: &Segment<'_>,
        at: Timestamp,
        sink: &mut Sink<'_>,
    ) {
        self.last_seen = at;
        if self.is_copy(side, segment, at) {
            sink.server.tcp.duplicates += 1;
            return;
        }
        sink.server.tcp.segments += 1;
        if segment.syn {
            self.on_syn(side, segment, at, sink);
        }
        if self.phase == Phase::Closed {
            return;
        }
        if let Some(ack) = segment.ack.filter(|_| !segment.rst) {
            self.on_ack(side, ack, segment.length > 0, at, sink);
            self.on_window(side, segment, at, sink);
        }
        if segment.length > 0 && !segment.rst && !segment.syn {
            self.on_payload(side, segment, at, sink);
        }
        if segment.fin {
            self.on_fin(side, segment, at, sink);
        }
        if segment.rst {
            self.on_reset(side, at, sink);
        }
    }

    fn is_copy(&mut self, side: Side, segment: &Segment<'_>, at: Timestamp) -> bool {
        let signature = Signature {
            seq: segment.seq,
            ack: segment.ack,
            length: segment.length,
            window: segment.window,
            flags: (segment.syn, segment.fin, segment.rst),
            id: segment.id,
        };
        let limit_ns = if segment.id.is_some() {
            COPY_NS
        } else {
            COPY_WITHOUT_ID_NS
        };
        let last = &mut self.last[usize::from(side == Side::Server)];
        if let Some((known, since)) = last
            && *known == signature
            && nanoseconds(at.since(*since)) < limit_ns
        {
            // Without an identification, two equal ACKs are rather two ACKs.
            return segment.id.is_some() || segment.length > 0;
        }
        *last = Some((signature, at));
        false
    }

    fn direction(&mut self, side: Side) -> &mut Direction {
        match side {
            Side::Client => &mut self.client,
            Side::Server => &mut self.server,
        }
    }

    fn on_syn(&mut self, side: Side, segment: &Segment<'_>, at: Timestamp, sink: &mut Sink<'_>) {
        let known = self.direction(side).initial;
        match (known, self.phase) {
            (
                Some(seq),
                Phase::Opening(first) | Phase::Answered(first) | Phase::Established(first),
            ) if seq == segment.seq => {
                sink.syn_retransmission(at, at.since(first));
            }
            (Some(_), _) => {}
            (None, phase) => {
                self.direction(side).on_syn(segment.seq);
                if let (Side::Server, Phase::Opening(first)) = (side, phase) {
                    self.phase = Phase::Answered(first);
                }
            }
        }
    }

    fn on_ack(
        &mut self,
        side: Side,
        ack: u32,
        has_payload: bool,
        at: Timestamp,
        sink: &mut Sink<'_>,
    ) {
        if let (Side::Client, Phase::Answered(first)) = (side, self.phase) {
            self.phase = Phase::Established(first);
            sink.server.handshakes.established += 1;
            record(
                &mut sink.server.handshakes.duration_ns,
                nanoseconds(at.since(first)),
            );
        }
        let Self {
            client,
            server,
            talk,
            ..
        } = self;
        let (sender, direction) = match side {
            Side::Client => (Side::Server, server),
            Side::Server => (Side::Client, client),
        };
        let mut chunks = Deliver {
            talk,
            side: sender,
            at,
        };
        let missing = direction.on_ack(ack, at, has_payload, sink, &mut chunks);
        count_hole(missing, sink);
    }

    fn on_window(&mut self, side: Side, segment: &Segment<'_>, at: Timestamp, sink: &mut Sink<'_>) {
        let is_closed = segment.window == 0 && !segment.syn;
        let direction = self.direction(side);
        if is_closed && !direction.window_is_closed {
            sink.zero_window(at, side == Side::Client);
        }
        direction.window_is_closed = is_closed;
    }

    fn on_payload(
        &mut self,
        side: Side,
        segment: &Segment<'_>,
        at: Timestamp,
        sink: &mut Sink<'_>,
    ) {
        let Self {
            client,
            server,
            talk,
            ..
        } = self;
        let direction = match side {
            Side::Client => client,
            Side::Server => server,
        };
        let mut chunks = Deliver { talk, side, at };
        let arrival = direction.on_payload(segment, at, sink, &mut chunks);
        let confirmed = std::mem::take(&mut direction.confirmed);
        count_hole(confirmed, sink);
        let fresh = match arrival {
            Arrival::New(fresh) => fresh,
            Arrival::OutOfOrder(fresh) => {
                sink.server.tcp.out_of_order += 1;
                fresh
            }
            Arrival::Retransmission(gap) => {
                sink.retransmission(at, gap);
                return;
            }
            Arrival::KeepAlive => {
                sink.server.tcp.keep_alives += 1;
                return;
            }
            Arrival::Stray => return,
        };
        sink.server.tcp.cut_bytes +=
            u64::from(segment.length).saturating_sub(segment.bytes.len() as u64);
        sink.payload(at, side == Side::Client, u64::from(fresh));
    }

    fn on_fin(&mut self, side: Side, segment: &Segment<'_>, at: Timestamp, sink: &mut Sink<'_>) {
        let direction = self.direction(side);
        if direction.fin.is_some() {
            // One with payload was counted as such.
            if segment.length == 0 {
                sink.retransmission(at, None);
            }
            return;
        }
        direction.fin = Some(segment.seq.wrapping_add(segment.length));
        match self.first_fin {
            None => {
                self.first_fin = Some(side);
                let closings = &mut sink.server.closings;
                closings.by_client += u64::from(side == Side::Client);
                closings.by_server += u64::from(side == Side::Server);
            }
            Some(_) => self.close(at, false, sink),
        }
    }

    fn on_reset(&mut self, side: Side, at: Timestamp, sink: &mut Sink<'_>) {
        match (side, self.phase) {
            (Side::Server, Phase::Opening(_)) => sink.server.handshakes.refused += 1,
            (Side::Server, _) => sink.server.closings.resets_by_server += 1,
            (Side::Client, _) => sink.server.closings.resets_by_client += 1,
        }
        self.close(at, true, sink);
    }

    fn close(&mut self, at: Timestamp, by_reset: bool, sink: &mut Sink<'_>) {
        let phase = std::mem::replace(&mut self.phase, Phase::Closed);
        if let Phase::Established(first) | Phase::Answered(first) = phase {
            record(
                &mut sink.server.closings.lifetime_ns,
                nanoseconds(at.since(first)),
            );
        }
        sink.closed(at, by_reset);
        self.free(at, sink);
    }

    /// The capture says no more about it.
    pub(super) fn finish(&mut self, at: Timestamp, sink: &mut Sink<'_>) {
        match self.phase {
            Phase::Closed => return,
            Phase::Opening(_) => sink.server.handshakes.unanswered += 1,
            Phase::Answered(_) | Phase::Established(_) | Phase::Existing => {}
        }
        self.free(at, sink);
    }

    fn free(&mut self, at: Timestamp, sink: &mut Sink<'_>) {
        self.talk.finish(at, sink);
        self.client.close(sink.budget);
        self.server.close(sink.budget);
    }
}

fn count_hole(bytes: u64, sink: &mut Sink<'_>) {
    sink.server.tcp.holes += u64::from(bytes > 0);
    sink.server.tcp.hole_bytes += bytes;
}

/// Hands chunks of one direction to the conversation.
struct Deliver<'a> {
    talk: &'a mut Conversation,
    side: Side,
    at: Timestamp,
}

impl Receiver for Deliver<'_> {
    fn chunk(&mut self, chunk: Chunk<'_>, sink: &mut Sink<'_>) {
        self.talk.on_chunk(self.side, self.at, chunk, sink);
    }
}
