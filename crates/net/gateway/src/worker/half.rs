//! Connections whose server has ended its half, and whose client has not.
//!
//! The end of the stream does not tell whether the server has called shutdown(2) and waits for the
//! client, or close(2): after close(2), no process has the kernel's end of the anchor. A client
//! that sends nothing must not hold a descriptor and two rings for ever. So the stack closes as
//! well, and the connection ends after the time that Linux gives it (`tcp_fin_timeout`, `man 7
//! tcp`).

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use saiga_netdev::Device;
use saiga_stack::{ConnectionId, Instant, Micros};

use super::{Anchors, Worker};

/// How long after the server's end the kernel is asked: most clients have ended by then.
const FIRST: Micros = Micros::from_millis(1_000);
/// How long after that it is asked again.
const NEXT: Micros = Micros::from_millis(60_000);

/// When to ask about a conversation: its key, and its connection, because keys are used again.
pub(super) type Halves = BinaryHeap<Reverse<(Instant, u32, ConnectionId)>>;

impl<D: Device, A: Anchors> Worker<D, A> {
    /// Notes a conversation whose server has ended its half.
    pub(super) fn watch_half(&mut self, key: u32, now: Instant) {
        if let Some((conversation, _)) = self.table.get(key)
            && let Some(id) = conversation.connection
            && conversation.becomes_half()
        {
            self.halves.push(Reverse((now + FIRST, key, id)));
        }
    }

    /// Ends the conversations whose servers have closed.
    pub(super) fn end_halves(&mut self, now: Instant) {
        while let Some(&Reverse((at, key, id))) = self.halves.peek()
            && at <= now
        {
            self.halves.pop();
            let Some((conversation, _)) = self.table.get(key) else {
                continue;
            };
            if conversation.connection != Some(id) {
                continue;
            }
            if conversation.is_orphaned() {
                self.close(id, now);
                self.table.remove(key);
            } else {
                self.halves.push(Reverse((now + NEXT, key, id)));
            }
        }
    }
}
