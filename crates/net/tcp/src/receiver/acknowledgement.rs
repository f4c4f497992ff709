//! When an acknowledgement is due, and which window it announces.
//!
//! Spec: RFC 5681 §4.2 (at least every second full segment, and within 500 ms; at once for a hole),
//! RFC 9293 §3.8.6.2.2 (no small window updates). As in Linux, the first segments of a connection
//! are acknowledged at once, so that the peer's window grows quickly.

use super::Receiver;
use crate::assembly::Inserted;
use crate::context::Context;
use crate::time::{Instant, OptionalInstant};

/// Segments at the begin of a connection that are acknowledged at once.
pub(super) const QUICK: u8 = 16;

/// Before every instant of a connection.
const NOW: Instant = Instant(0);

impl Receiver {
    /// Whether an acknowledgement must be sent now, if no data carries it.
    pub(crate) fn is_ack_due(&self) -> bool {
        self.due.get() == Some(NOW)
    }

    /// When the delayed acknowledgement is due.
    pub(crate) fn delayed(&self) -> OptionalInstant {
        if self.is_ack_due() {
            OptionalInstant::NONE
        } else {
            self.due
        }
    }

    /// An acknowledgement is due at once.
    pub(crate) fn acknowledge_now(&mut self) {
        self.due = NOW.into();
    }

    /// Decides when the data of a segment is acknowledged.
    pub(super) fn on_inserted(&mut self, inserted: &Inserted, bytes: u32, context: &Context<'_>) {
        self.unacked = self.unacked.saturating_add(bytes);
        let is_second = self.unacked >= 2 * u32::from(self.peer_mss);
        let is_quick = self.quick > 0;
        self.quick = self.quick.saturating_sub(1);
        let must_not_wait = inserted.is_out_of_order || inserted.advanced < bytes;
        if must_not_wait || is_second || is_quick {
            self.acknowledge_now();
        } else {
            self.due.set_first(context.now + context.config.ack_delay);
        }
    }

    /// The time of a delayed acknowledgement has come.
    pub(crate) fn on_timeout(&mut self, now: Instant) {
        if self.due.has_come(now) {
            self.acknowledge_now();
        }
    }

    /// The application has read bytes. An update of the window is due if it opens a window that was
    /// nearly closed, or by half of the buffer.
    pub(crate) fn on_read(&mut self, bytes: u32) {
        self.read = (self.read + bytes).earlier_of(self.data_nxt());
        // Without this, an old end would be a later one after two gibibytes.
        self.urgent = self.urgent.later_of(self.read);
        let announced = self.window();
        let free = self.free();
        let least = u32::from(self.peer_mss).min(self.buffer / 2).max(1);
        let gain = free.saturating_sub(announced);
        let opens = announced < least && gain >= least;
        if opens || gain >= self.buffer / 2 && !self.is_finished {
            self.acknowledge_now();
        }
    }

    /// The caller's buffer has another size. What was announced stays valid.
    pub(crate) fn resize(&mut self, buffer: u32) {
        self.buffer = buffer;
        self.on_read(0);
    }

    /// Bytes of the announced window that are not used: `RCV.WND`.
    pub(crate) fn window(&self) -> u32 {
        let nxt = self.nxt();
        if nxt.before(self.edge) {
            self.edge - nxt
        } else {
            0
        }
    }

    /// Bytes of the buffer that are free behind what has come in order.
    fn free(&self) -> u32 {
        self.buffer.saturating_sub(self.unread())
    }

    /// The window field of the next segment, which counts as sent. The window does not move back,
    /// and it moves forward by a segment or half of the buffer at least.
    pub(crate) fn announce(&mut self) -> u16 {
        let nxt = self.nxt();
        let announced = self.window();
        let free = self.free();
        let least = u32::from(self.peer_mss).min(self.buffer / 2);
        let window = if free.saturating_sub(announced) >= least {
            free
        } else {
            announced
        };
        let field = (window >> self.shift).min(u32::from(u16::MAX));
        self.edge = self.edge.later_of(nxt + (field << self.shift));
        self.last_ack = nxt;
        self.due = OptionalInstant::NONE;
        self.unacked = 0;
        u16::try_from(field).unwrap_or(u16::MAX)
    }

    /// Whether the next segment echoes congestion.
    pub(crate) fn is_echoing(&self) -> bool {
        self.echo == super::CongestionEcho::On
    }
}
