//! The echo service (RFC 862): what a connection receives, it sends back.

use std::collections::HashMap;

use saiga_stack::{ConnectionId, Events, Incoming, Instant, Owner, Stack};

/// Bytes of both buffers of a connection. Bytes stay where they have come until the peer has
/// acknowledged their echo, so one buffer is both.
pub(crate) const BUFFER: u32 = 256 << 10;

/// The connections of the service.
#[derive(Default)]
pub(crate) struct Echo {
    connections: HashMap<ConnectionId, Ring>,
    incoming: Vec<ConnectionId>,
    /// Connections about which something has changed.
    changed: Vec<ConnectionId>,
}

/// The bytes of a connection: those that are sent back and not acknowledged, then those that have
/// come since.
struct Ring {
    bytes: Vec<u8>,
    /// Place of the first byte that is not acknowledged.
    front: usize,
    /// Bytes that are sent back and not acknowledged.
    sent: u32,
    /// Bytes that have come and are not sent back.
    readable: u32,
    /// Bytes whose echo was acknowledged, which the stack may use for new ones.
    freed: u32,
    is_finished: bool,
}

impl Ring {
    fn new() -> Self {
        Self {
            bytes: vec![0; BUFFER as usize],
            front: 0,
            sent: 0,
            readable: 0,
            freed: 0,
            is_finished: false,
        }
    }

    /// The two parts of the ring from `at` bytes behind the front on.
    fn parts(&mut self, at: u32, length: usize) -> (&mut [u8], &mut [u8]) {
        let from = (self.front + at as usize) % self.bytes.len();
        let (head, tail) = self.bytes.split_at_mut(from);
        let first = length.min(tail.len());
        (&mut tail[..first], &mut head[..length - first])
    }
}

impl Echo {
    /// Does what is due after news.
    pub(crate) fn work(&mut self, stack: &mut Stack, now: Instant) {
        for id in std::mem::take(&mut self.incoming) {
            self.connections.insert(id, Ring::new());
            stack.accept(id, BUFFER, now, self);
        }
        for id in std::mem::take(&mut self.changed) {
            let Some(ring) = self.connections.get_mut(&id) else {
                continue;
            };
            // The window of the peer covers what is free in the ring only.
            stack.read(id, std::mem::take(&mut ring.freed), now);
            let readable = std::mem::take(&mut ring.readable);
            ring.sent += readable;
            stack.write(id, readable, now);
            if std::mem::take(&mut ring.is_finished) {
                stack.shutdown(id, now);
            }
        }
    }
}

impl Owner for Echo {
    fn on_incoming(&mut self, id: ConnectionId, _incoming: &Incoming) {
        self.incoming.push(id);
    }

    fn on_events(&mut self, id: ConnectionId, events: &Events) {
        if events.closed.is_some() {
            self.connections.remove(&id);
            return;
        }
        if let Some(ring) = self.connections.get_mut(&id) {
            ring.front = (ring.front + events.acked as usize) % ring.bytes.len();
            ring.sent -= events.acked;
            ring.freed += events.acked;
            ring.readable += events.readable;
            ring.is_finished |= events.is_finished;
            self.changed.push(id);
        }
    }

    fn place(&mut self, id: ConnectionId, at: u32, bytes: &[u8]) {
        if let Some(ring) = self.connections.get_mut(&id) {
            // The first unread byte of the stack is the first one whose echo was not freed.
            let (first, second) = ring.parts(at - ring.freed, bytes.len());
            let (head, tail) = bytes.split_at(first.len());
            first.copy_from_slice(head);
            second.copy_from_slice(tail);
        }
    }

    fn fetch(&mut self, id: ConnectionId, at: u32, into: &mut [u8]) {
        if let Some(ring) = self.connections.get_mut(&id) {
            let (first, second) = ring.parts(at, into.len());
            let (head, tail) = into.split_at_mut(first.len());
            head.copy_from_slice(first);
            tail.copy_from_slice(second);
        }
    }
}
