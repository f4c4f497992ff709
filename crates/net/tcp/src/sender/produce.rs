//! The next range to send.
//!
//! Spec: RFC 6675 §4 (`NextSeg`), RFC 5681 §3.1, RFC 9293 §3.8.6.2.1, RFC 8985 §7.3. Lost data goes
//! before new data, except while F-RTO doubts a time-out. Ranges are whole segments where possible;
//! a device that cuts segments (TSO) takes several as one range.

use saiga_wire::SeqNum;

use super::{Fin, Sender};
use crate::context::Context;
use crate::time::OptionalInstant;

/// A range to send, and whether the FIN follows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Part {
    pub(crate) start: SeqNum,
    /// Bytes.
    pub(crate) length: u32,
    pub(crate) is_fin: bool,
    pub(crate) reason: Reason,
}

/// Why a range is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reason {
    New,
    Retransmission,
    /// New data in a segment that is larger than full ones, to see whether the path takes it.
    SizeProbe,
}

/// Limits of one range.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    /// Most bytes of a range; at least a segment.
    pub(crate) most: u32,
    /// Whether Nagle's algorithm is off (TCP_NODELAY).
    pub(crate) is_nodelay: bool,
}

impl Sender {
    /// The next range that the windows allow; it counts as sent.
    pub(crate) fn produce(&mut self, limits: Limits, context: &mut Context<'_>) -> Option<Part> {
        // A driver asks until there is nothing more, so every second answer is this one.
        if self.unsent() == 0 && self.flight.lost() == 0 && !self.is_fin_waiting() {
            self.is_pace_waiting = false;
            return None;
        }
        self.restart_after_idle(context);
        if self.must_wait(context.now) {
            return None;
        }
        let mut limits = self.paced(limits, context);
        if self.is_urgent() {
            // Each segment has its own pointer, which a device that cuts segments does not know.
            limits.most = u32::from(self.mss);
        }
        let part = if self.recovery.prefers_new_data() {
            self.new_data(limits).or_else(|| self.lost_data(limits))
        } else {
            self.lost_data(limits)
                .or_else(|| self.size_probe(context.now))
                .or_else(|| self.new_data(limits))
        }?;
        self.on_sent(&part, context);
        Some(part)
    }

    /// RFC 5681 §4.1: after a pause of more than a time-out, the window says nothing of the path
    /// any more.
    fn restart_after_idle(&mut self, context: &Context<'_>) {
        let pause = context.now.since(self.sent_at);
        if self.flight.is_empty() && self.unsent() > 0 && pause > self.rtt.rto(&context.config.rto)
        {
            self.congestion.on_idle();
            self.stop_pacing();
            self.sent_at = context.now;
        }
    }

    /// A probe of the tail: new data if there is room in the peer's window, or else the last
    /// segment again (RFC 8985 §7.3).
    pub(crate) fn produce_probe(&mut self, context: &mut Context<'_>) -> Option<Part> {
        let mss = u32::from(self.mss);
        let length = self.unsent().min(self.usable_window()).min(mss);
        let part = if length > 0 {
            self.part(self.nxt(), length, Reason::New)
        } else {
            let (una, nxt) = (self.una(), self.nxt());
            let length = (nxt - una).min(mss);
            if length == 0 {
                return None;
            }
            self.part_up_to(nxt - length, nxt, Reason::Retransmission)
        };
        self.on_sent(&part, context);
        self.tlp
            .on_probe(self.nxt(), part.reason == Reason::Retransmission);
        // New data has armed the timer; no further probe goes before this one is answered.
        self.timers.probe = OptionalInstant::NONE;
        Some(part)
    }

    /// New data in a window that is too small for a full segment, after a time-out.
    pub(crate) fn produce_forced(&mut self, context: &mut Context<'_>) -> Option<Part> {
        let mss = u32::from(self.mss);
        let length = self.unsent().min(self.usable_window()).min(mss);
        if length == 0 {
            return None;
        }
        let part = self.part(self.nxt(), length, Reason::New);
        self.on_sent(&part, context);
        Some(part)
    }

    /// Lost data that the congestion window allows.
    fn lost_data(&self, limits: Limits) -> Option<Part> {
        if self.flight.lost() == 0 {
            return None;
        }
        let mss = u32::from(self.mss);
        let room = self.congestion.cwnd().saturating_sub(self.pipe());
        let is_due = self.recovery.is_first_due();
        if room < mss && !is_due && self.pipe() > 0 {
            return None;
        }
        let most = whole_segments(room.min(limits.most), mss);
        let (start, end) = self.flight.next_lost(most)?;
        Some(self.part_up_to(start, end, Reason::Retransmission))
    }

    /// New data that both windows allow.
    fn new_data(&mut self, limits: Limits) -> Option<Part> {
        let mss = u32::from(self.mss);
        let unsent = self.unsent();
        if unsent == 0 {
            return self.lone_fin();
        }
        let pipe = self.pipe();
        let room = self.congestion.cwnd().saturating_sub(pipe);
        let usable = self.usable_window();
        // If the peer's window is smaller, the load says nothing of the congestion window.
        if room < unsent && room <= usable {
            self.limited_at = self.nxt();
        }
        if room < unsent.min(mss) && pipe > 0 {
            return None;
        }
        let mut length = unsent.min(usable).min(room.max(mss)).min(limits.most);
        if length < unsent && length > mss {
            length -= length % mss;
        }
        self.may_send(length, unsent, limits.is_nodelay)
            .then(|| self.part(self.nxt(), length, Reason::New))
    }

    /// A FIN behind data that was sent.
    fn lone_fin(&self) -> Option<Part> {
        let is_due = self.is_fin_waiting() && self.usable_window() > 0;
        is_due.then_some(Part {
            start: self.end,
            length: 0,
            is_fin: true,
            reason: Reason::New,
        })
    }

    /// Whether only the FIN is left to send.
    pub(super) fn is_fin_waiting(&self) -> bool {
        self.fin == Fin::Queued && self.nxt() == self.end
    }

    /// A range of bytes; the FIN follows if it is due behind them and fits into the window.
    fn part(&self, start: SeqNum, length: u32, reason: Reason) -> Part {
        let end = start + length;
        let is_last = self.fin != Fin::Open && end == self.end;
        Part {
            start,
            length,
            is_fin: is_last && end.before(self.window_end()),
            reason,
        }
    }

    /// A range of sequence numbers, of which the last can be the FIN's.
    fn part_up_to(&self, start: SeqNum, end: SeqNum, reason: Reason) -> Part {
        let is_fin = self.fin == Fin::Sent && end == self.end + 1;
        Part {
            start,
            length: end - start - u32::from(is_fin),
            is_fin,
            reason,
        }
    }

    /// Notes a transmission.
    fn on_sent(&mut self, part: &Part, context: &mut Context<'_>) {
        let now = context.now;
        let end = part.start + part.length + u32::from(part.is_fin);
        let is_retransmission = part.reason == Reason::Retransmission;
        if is_retransmission {
            context.counters.retrans_segs += 1;
            self.retransmitted = self.retransmitted.saturating_add(1);
            self.flight.on_retransmit(part.start, end, now);
            if self.recovery.is_reducing() {
                self.congestion.on_retransmit(part.start, end);
            }
        } else {
            context.counters.out_segs += 1;
            self.flight.on_send(end, now);
            if part.is_fin {
                self.fin = Fin::Sent;
            }
            // What the peer's window has cut off is not small because the application wrote so
            // little.
            let is_whole = part.start + part.length == self.end;
            let is_full = part.length.is_multiple_of(u32::from(self.mss));
            if is_whole && !is_full && part.reason == Reason::New {
                self.window.on_small_segment(end);
            }
        }
        self.pace_after(part.length, context);
        self.sent_at = now;
        self.recovery.on_sent(part.length, is_retransmission, now);
        self.arm_after_send(!is_retransmission, context);
        if is_retransmission && part.start == self.una() {
            // RFC 6298 §5: no segment goes again sooner than a time-out after it went last.
            self.restart_rto(context);
        }
    }

    /// Whether the next new data must tell the peer that the window was reduced (CWR).
    pub(crate) fn take_cwr(&mut self, part: &Part) -> bool {
        let is_told =
            self.must_send_cwr && part.reason != Reason::Retransmission && part.length > 0;
        if is_told {
            self.must_send_cwr = false;
        }
        is_told
    }
}

/// The largest multiple of a segment, at least one segment.
fn whole_segments(bytes: u32, mss: u32) -> u32 {
    (bytes - bytes % mss).max(mss)
}
