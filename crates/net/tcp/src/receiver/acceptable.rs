//! The first checks of a segment: its window test, and its timestamp.
//!
//! Spec: RFC 9293 §3.10.7.4 (first check), RFC 7323 §5.3 (PAWS), RFC 5961 §3.2 (RST).

use saiga_wire::SeqNum;
use saiga_wire::tcp::Flags;

use super::Receiver;
use crate::context::{Arrival, Context};

/// After this time in seconds, a timestamp may have wrapped (RFC 7323 §5.5).
const TIMESTAMP_LIFETIME: u32 = 24 * 24 * 3600;

/// The result of the first checks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// The segment is in the window.
    Acceptable,
    /// The segment is dropped, and the peer is told the state.
    Answer,
    /// The segment is dropped.
    Drop,
    /// A valid reset.
    Reset,
    /// The peer must prove that it knows the sequence numbers (RFC 5961).
    Challenge,
}

impl Receiver {
    /// Judges a segment. `has_sack`: the peer is sent selective acknowledgements.
    pub(crate) fn judge(
        &mut self,
        arrival: &Arrival<'_>,
        has_sack: bool,
        context: &mut Context<'_>,
    ) -> Verdict {
        let flags = arrival.header.flags;
        let is_rst = flags.contains(Flags::RST);
        if is_rst {
            return self.judge_reset(arrival.header.seq, has_sack);
        }
        if self.is_old(arrival, context) {
            // Also the late copy of data that was sent again is a duplicate to report.
            return self.on_unacceptable(arrival);
        }
        if !self.is_in_window(arrival) {
            return self.on_unacceptable(arrival);
        }
        if flags.contains(Flags::SYN) {
            return Verdict::Challenge;
        }
        Verdict::Acceptable
    }

    /// RFC 5961 §3.2: only the exact number resets, and a number in the window is challenged. The
    /// data of a reset does not matter, nor whether the window is closed (RFC 9293 MUST-66).
    ///
    /// As in Linux (`tcp_validate_incoming`), two more numbers are exact that only the peer knows:
    /// that behind all data above a hole, of which selective acknowledgements tell, and that of the
    /// FIN. macOS ends a connection with unread data by a FIN and a reset that does not count it,
    /// and would not answer a challenge.
    fn judge_reset(&self, seq: SeqNum, has_sack: bool) -> Verdict {
        let nxt = self.nxt();
        let is_of_fin = self.is_finished && seq == nxt - 1;
        let is_behind_all = has_sack && self.assembly.last() == Some(seq);
        if seq == nxt || is_of_fin || is_behind_all {
            Verdict::Reset
        } else if seq.in_window(nxt, self.window()) {
            Verdict::Challenge
        } else {
            Verdict::Drop
        }
    }

    fn on_unacceptable(&mut self, arrival: &Arrival<'_>) -> Verdict {
        // RFC 5961 §4: a SYN outside of the window is challenged as well.
        if arrival.header.flags.contains(Flags::SYN) {
            return Verdict::Challenge;
        }
        let start = arrival.header.seq;
        let end = (start + arrival.sequence_length()).earlier_of(self.nxt());
        if start.before(end) {
            self.assembly.on_old(start, end);
            self.acknowledge_now();
            return Verdict::Drop;
        }
        if arrival.sequence_length() > 0 {
            // Data above the window: the peer must learn the state.
            self.acknowledge_now();
            return Verdict::Drop;
        }
        Verdict::Answer
    }

    /// The window test of RFC 9293 §3.10.7.4, with the right edge of the largest window that was
    /// announced. A keep-alive probe is one below the window. As in Linux, a segment may begin at
    /// the right edge: the acknowledgement of a peer that has filled the window does so, and also
    /// data for a closed window, of which the acknowledgement and the urgent pointer count.
    fn is_in_window(&self, arrival: &Arrival<'_>) -> bool {
        let (seq, length) = (arrival.header.seq, arrival.sequence_length());
        let (nxt, window) = (self.nxt(), self.window());
        let is_at_edge = seq == nxt + window && (length == 0 || window == 0);
        if seq.in_window(nxt, window) || is_at_edge {
            return true;
        }
        length > 0 && (seq + (length - 1)).in_window(nxt, window)
            || self.covers(seq, length, window)
    }

    /// Whether a segment begins before the window and ends behind it.
    fn covers(&self, seq: SeqNum, length: u32, window: u32) -> bool {
        length > window && seq.before(self.nxt()) && (seq + length).after(self.edge)
    }

    /// PAWS (RFC 7323 §5.3): a segment with an older timestamp is a duplicate from before. One
    /// without a timestamp is taken, as by Linux: §3.2 would drop it, and boxes on the path that
    /// take the option away would end what the handshake has begun.
    fn is_old(&self, arrival: &Arrival<'_>, context: &mut Context<'_>) -> bool {
        let timestamps = arrival.header.options.timestamps;
        let Some(timestamps) = timestamps.filter(|_| self.has_timestamps) else {
            return false;
        };
        let is_before = SeqNum(timestamps.value).before(SeqNum(self.ts_recent));
        let is_old = is_before && self.is_recent_alive(context);
        context.counters.paws_estab += u64::from(is_old);
        is_old
    }

    /// RFC 7323 §4.3: remembers the timestamp of the segment that the last acknowledgement asked
    /// for.
    pub(crate) fn note_timestamp(&mut self, arrival: &Arrival<'_>, context: &Context<'_>) {
        let timestamps = arrival.header.options.timestamps;
        let Some(timestamps) = timestamps.filter(|_| self.has_timestamps) else {
            return;
        };
        let is_before = SeqNum(timestamps.value).before(SeqNum(self.ts_recent));
        let is_newer = !is_before || !self.is_recent_alive(context);
        if is_newer && arrival.header.seq.at_or_before(self.last_ack) {
            self.ts_recent = timestamps.value;
            self.ts_recent_at = context.now.whole_seconds();
        }
    }

    /// Whether the saved timestamp can still be compared (RFC 7323 §5.5).
    fn is_recent_alive(&self, context: &Context<'_>) -> bool {
        let age = context.now.whole_seconds().wrapping_sub(self.ts_recent_at);
        age < TIMESTAMP_LIFETIME
    }
}
