//! Applications that write and read bytes which follow from the connection, so that each byte that
//! arrives can be checked.

use std::collections::BTreeMap;

use saiga_stack::{CloseReason, ConnectionId, Events, Incoming, Instant, Owner, Stack};

/// Receive buffer of each connection.
pub(crate) const BUFFER: u32 = 20_000;
/// Most bytes in a send buffer.
const SEND_BUFFER: u64 = 30_000;

/// The byte at an offset of a stream. `stream` is the client's port and the direction.
pub(crate) fn byte(stream: u32, offset: u64) -> u8 {
    let mixed = (u64::from(stream) << 32 ^ offset).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed.to_be_bytes()[0]
}

/// The stream from the client, and the one to it.
pub(crate) fn streams(client_port: u16) -> (u32, u32) {
    (u32::from(client_port), u32::from(client_port) | 1 << 16)
}

/// One side of a connection.
pub(crate) struct Conversation {
    /// Stream and number of the bytes that this side writes.
    out_stream: u32,
    total: u64,
    written: u64,
    acked: u64,
    is_shut: bool,
    in_stream: u32,
    /// The receive buffer from the first unread byte on.
    placed: Vec<u8>,
    readable: u32,
    pub(crate) received: u64,
    is_finished: bool,
    has_gone: bool,
    /// How often in a hundred turns the application does not read.
    laziness: u32,
    pub(crate) end: Option<CloseReason>,
    /// Whether the test ends the connection before its time.
    pub(crate) is_aborted: bool,
}

impl std::fmt::Debug for Conversation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Conversation")
            .field("acked of total", &(self.acked, self.total))
            .field("received", &self.received)
            .field("readable", &self.readable)
            .field("is_finished", &self.is_finished)
            .field("end", &self.end)
            .finish_non_exhaustive()
    }
}

impl Conversation {
    pub(crate) fn new(
        (out_stream, in_stream): (u32, u32),
        total: u64,
        random: &mut fastrand::Rng,
    ) -> Self {
        Self {
            out_stream,
            total,
            written: 0,
            acked: 0,
            is_shut: false,
            in_stream,
            placed: vec![0; BUFFER as usize],
            readable: 0,
            received: 0,
            is_finished: false,
            has_gone: false,
            laziness: [0, 0, 50, 90][random.usize(0..4)],
            end: None,
            is_aborted: false,
        }
    }

    /// Whether the application will do something by itself.
    fn is_busy(&self) -> bool {
        self.readable > 0
            || self.end.is_none()
                && (!self.is_shut && self.written - self.acked < SEND_BUFFER
                    || self.is_finished && self.is_shut && !self.has_gone)
    }

    pub(crate) fn is_complete(&self) -> bool {
        self.is_finished && self.readable == 0 && self.acked >= self.total
    }

    /// Whether this side has everything and was reset at its end: the last acknowledgements can be
    /// lost so often that the peer has left TIME-WAIT. The check of the peer shows whether it has
    /// everything, too.
    pub(crate) fn is_late(&self) -> bool {
        self.end == Some(CloseReason::Reset) && self.is_finished && self.readable == 0
    }

    /// Whether the peer has refused everything, as it does when its cookie comes back too late.
    pub(crate) fn is_refused(&self) -> bool {
        self.end == Some(CloseReason::Reset) && self.acked + self.received == 0
    }

    /// Whether the peer's MAC address was asked for three times in vain.
    pub(crate) fn is_unreachable(&self) -> bool {
        self.end == Some(CloseReason::Unreachable) && self.acked + self.received == 0
    }

    /// One turn: reads some, writes some, and closes at the end.
    fn turn(
        &mut self,
        id: ConnectionId,
        stack: &mut Stack,
        random: &mut fastrand::Rng,
        now: Instant,
    ) {
        if self.readable > 0 && random.u32(0..100) >= self.laziness {
            let count = random.u32(1..=self.readable);
            self.take(count);
            stack.read(id, count, now);
        }
        let room = SEND_BUFFER - (self.written - self.acked);
        let count = (self.total - self.written)
            .min(room)
            .min(random.u64(1..5_000));
        if count > 0 {
            self.written += count;
            stack.write(id, u32::try_from(count).unwrap(), now);
        }
        if self.written == self.total && !self.is_shut {
            self.is_shut = true;
            stack.shutdown(id, now);
        }
        if self.is_finished && self.readable == 0 && self.is_shut && !self.has_gone {
            self.has_gone = true;
            let events = stack.close(id, now);
            self.end = self.end.or(events.closed);
        }
    }

    /// Checks bytes at the front of the receive buffer, and removes them.
    fn take(&mut self, count: u32) {
        for (offset, found) in (0..).zip(self.placed.drain(..count as usize)) {
            let expected = byte(self.in_stream, self.received + offset);
            assert_eq!(found, expected, "byte {}", self.received + offset);
        }
        self.placed.resize(BUFFER as usize, 0);
        self.received += u64::from(count);
        self.readable -= count;
    }
}

/// The applications of one host.
#[derive(Debug)]
pub(crate) struct Applications {
    pub(crate) conversations: BTreeMap<ConnectionId, Conversation>,
    incoming: Vec<(ConnectionId, Incoming)>,
    random: fastrand::Rng,
    /// Bytes that a server writes.
    total: u64,
}

impl Applications {
    pub(crate) fn new(total: u64, random: fastrand::Rng) -> Self {
        Self {
            conversations: BTreeMap::new(),
            incoming: Vec::new(),
            random,
            total,
        }
    }

    pub(crate) fn add(&mut self, id: ConnectionId, client_port: u16, total: u64) {
        let conversation = Conversation::new(streams(client_port), total, &mut self.random);
        self.conversations.insert(id, conversation);
    }

    pub(crate) fn is_busy(&self) -> bool {
        !self.incoming.is_empty() || self.conversations.values().any(Conversation::is_busy)
    }

    /// One turn of every application.
    pub(crate) fn turn(&mut self, stack: &mut Stack, now: Instant) {
        for (id, incoming) in std::mem::take(&mut self.incoming) {
            let (from_client, to_client) = streams(incoming.flow.remote().port());
            let streams = (to_client, from_client);
            let conversation = Conversation::new(streams, self.total, &mut self.random);
            self.conversations.insert(id, conversation);
            stack.accept(id, BUFFER, now, self);
        }
        for (id, conversation) in &mut self.conversations {
            if conversation.end.is_none() {
                conversation.turn(*id, stack, &mut self.random, now);
            } else {
                // The buffer outlives the connection.
                conversation.take(conversation.readable);
            }
        }
    }

    /// Aborts a connection.
    pub(crate) fn abort(&mut self, stack: &mut Stack, now: Instant) {
        let alive = self
            .conversations
            .iter_mut()
            .find(|(_, one)| one.end.is_none());
        if let Some((id, conversation)) = alive {
            conversation.is_aborted = true;
            conversation.end = stack.abort(*id, now).closed;
        }
    }
}

impl Owner for Applications {
    fn on_incoming(&mut self, id: ConnectionId, incoming: &Incoming) {
        self.incoming.push((id, *incoming));
    }

    fn on_events(&mut self, id: ConnectionId, events: &Events) {
        let Some(conversation) = self.conversations.get_mut(&id) else {
            // The peer gave up before the decision.
            self.incoming.retain(|(known, _)| *known != id);
            return;
        };
        assert_eq!(
            conversation.end, None,
            "news of a connection that has ended"
        );
        conversation.acked += u64::from(events.acked);
        assert!(conversation.acked <= conversation.written);
        conversation.readable += events.readable;
        conversation.is_finished |= events.is_finished;
        conversation.end = events.closed;
    }

    fn place(&mut self, id: ConnectionId, at: u32, bytes: &[u8]) {
        let conversation = self.conversations.get_mut(&id).unwrap();
        conversation.placed[at as usize..][..bytes.len()].copy_from_slice(bytes);
    }

    fn fetch(&mut self, id: ConnectionId, at: u32, into: &mut [u8]) {
        let conversation = &self.conversations[&id];
        let from = conversation.acked + u64::from(at);
        assert!(from + into.len() as u64 <= conversation.written);
        for (offset, to) in (from..).zip(into) {
            *to = byte(conversation.out_stream, offset);
        }
    }
}
