//! Loss detection by time: RACK.
//!
//! Spec: RFC 8985 §6. A range is lost if one that was sent later was delivered, and a reordering
//! window has passed. Takes the deliveries of each acknowledgement; marks losses in the scoreboard
//! and tells when to look again. The duplicate acknowledgements of RFC 6675 are the case without
//! observed reordering, in which three delivered segments close the window (§6.2 step 4).

#[cfg(test)]
mod tests;

use saiga_wire::SeqNum;

use crate::flight::{Delivered, Flight, Sent};
use crate::time::{Instant, Micros};

/// Delivered segments above a hole from which it is a loss, not reordering (RFC 5681 §3.2).
const DUP_THRESH: u32 = 3;
/// Recoveries for which a widened reordering window stays (§6.2 step 4).
const PERSIST: u8 = 16;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Rack {
    /// The delivered range that was sent last (`RACK.xmit_ts`, `RACK.end_seq`), and the time it
    /// took.
    xmit_ts: Instant,
    end_seq: SeqNum,
    rtt_us: u32,
    /// The highest delivered sequence number (`RACK.fack`).
    fack: SeqNum,
    /// Whether a range was delivered behind one with a higher number.
    is_reordering_seen: bool,
    /// Quarters of the least round-trip time in the reordering window.
    multiplier: u8,
    persist: u8,
    /// `SND.NXT` when the window was last widened: once in a round trip.
    dsack_round: Option<SeqNum>,
}

/// What loss detection reads beside the scoreboard.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Scene {
    pub(crate) now: Instant,
    pub(crate) min_rtt: Micros,
    pub(crate) srtt: Micros,
    pub(crate) mss: u16,
    pub(crate) is_in_recovery: bool,
}

impl Rack {
    pub(crate) fn new(iss: SeqNum) -> Self {
        Self {
            xmit_ts: Instant(0),
            end_seq: iss,
            rtt_us: 0,
            fack: iss,
            is_reordering_seen: false,
            multiplier: 1,
            persist: 0,
            dsack_round: None,
        }
    }

    /// Takes a delivered range (§6.2 steps 2 and 3). `is_echo_older`: the acknowledgement echoes a
    /// timestamp from before the last transmission, so that it belongs to an earlier one.
    pub(crate) fn on_delivered(
        &mut self,
        one: &Delivered,
        is_echo_older: bool,
        min_rtt: Option<Micros>,
        now: Instant,
    ) {
        if one.end.after(self.fack) {
            self.fack = one.end;
        } else if one.end.before(self.fack) && !one.is_retransmitted {
            self.is_reordering_seen = true;
        }
        let rtt = now.since(one.at);
        let is_too_soon = min_rtt.is_some_and(|min_rtt| rtt < min_rtt);
        if one.is_retransmitted && (is_echo_older || is_too_soon) {
            return;
        }
        self.rtt_us = u32::try_from(rtt.0).unwrap_or(u32::MAX);
        if is_sent_after((one.at, one.end), (self.xmit_ts, self.end_seq)) {
            (self.xmit_ts, self.end_seq) = (one.at, one.end);
        }
    }

    /// Takes a duplicate selective acknowledgement: the reordering window was too small (§6.2 step
    /// 4).
    pub(crate) fn on_dsack(&mut self, una: SeqNum, nxt: SeqNum) {
        let is_over = |round: SeqNum| una.at_or_after(round);
        if self.dsack_round.is_none_or(is_over) {
            self.dsack_round = Some(nxt);
            self.multiplier = self.multiplier.saturating_add(1);
            self.persist = PERSIST;
        }
    }

    /// Whether the path has reordered ranges.
    pub(crate) fn is_reordering_seen(&self) -> bool {
        self.is_reordering_seen
    }

    /// A recovery was taken back: its segments were late, and the next ones must be waited for, as
    /// in Linux (`tcp_try_undo_partial` in net/ipv4/tcp_input.c). §6.2 step 3 misses reordering of
    /// segments that were sent again.
    pub(crate) fn on_spurious_recovery(&mut self) {
        self.is_reordering_seen = true;
    }

    /// Ends an episode of recovery.
    pub(crate) fn on_recovered(&mut self) {
        self.persist = self.persist.saturating_sub(1);
        if self.persist == 0 {
            self.multiplier = 1;
        }
    }

    /// Marks losses (§6.2 step 5). Returns the time after which to call this again, if a range
    /// waits for the end of the reordering window.
    pub(crate) fn detect(&self, flight: &mut Flight, scene: &Scene) -> Option<Micros> {
        let window = self.window(flight, scene);
        let delivered = (self.xmit_ts, self.end_seq);
        let rtt = Micros(self.rtt_us.into());
        let mut longest = Micros::ZERO;
        flight.mark_lost(|_, sent: &Sent| {
            if !is_sent_after(delivered, (sent.at, sent.end)) {
                return false;
            }
            let left = (sent.at + rtt + window).since(scene.now);
            longest = longest.max(left);
            left == Micros::ZERO
        });
        (longest > Micros::ZERO).then_some(longest)
    }

    /// Marks losses at a time-out (§6.3): the first range, and those that should have been
    /// acknowledged. What was sent later than that may still arrive.
    pub(crate) fn on_timeout(&self, flight: &mut Flight, scene: &Scene) {
        let una = flight.una();
        let patience = Micros(self.rtt_us.into()) + self.window(flight, scene);
        flight.mark_lost(|start, sent| start == una || sent.at + patience <= scene.now);
    }

    /// The reordering window (§6.2 step 4).
    fn window(&self, flight: &Flight, scene: &Scene) -> Micros {
        if !self.is_reordering_seen {
            let threshold = DUP_THRESH * u32::from(scene.mss);
            if scene.is_in_recovery || flight.sacked() >= threshold {
                return Micros::ZERO;
            }
        }
        let quarters = u64::from(self.multiplier);
        scene.min_rtt.times(quarters).divided_by(4).min(scene.srtt)
    }
}

/// Whether the first transmission happened after the second (§6.2, `RACK_sent_after`).
fn is_sent_after(one: (Instant, SeqNum), other: (Instant, SeqNum)) -> bool {
    one.0 > other.0 || one.0 == other.0 && one.1.after(other.1)
}
