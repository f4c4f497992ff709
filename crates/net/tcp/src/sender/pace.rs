//! Pacing of the send half: data that the windows allow waits for its turn.

use super::Sender;
use super::produce::Limits;
use crate::congestion::initial_window;
use crate::context::Context;
use crate::pacing::Rate;
use crate::time::{Instant, Micros, OptionalInstant};

impl Sender {
    /// The rate of a path that is long enough. A window that a new connection may send at once (RFC
    /// 6928) is not paced.
    fn rate(&self, context: &Context<'_>) -> Option<Rate> {
        let least = self.min_rtt.get()?;
        let cwnd = self.congestion.cwnd();
        if least < context.config.paced_from || cwnd <= initial_window(self.mss) {
            return None;
        }
        Rate::new(cwnd, self.congestion.ssthresh(), self.rtt.srtt())
    }

    fn paced_until(&self) -> Instant {
        self.sent_at + Micros(self.pace_gap_us.into())
    }

    /// Whether the data that there is must wait. Notes that it does, so that a time-out asks again.
    pub(super) fn must_wait(&mut self, now: Instant) -> bool {
        self.is_pace_waiting = now < self.paced_until();
        self.is_pace_waiting
    }

    /// When data that waits may leave.
    pub(super) fn pace_ends_at(&self) -> OptionalInstant {
        self.is_pace_waiting.then(|| self.paced_until()).into()
    }

    /// Limits a range to what may leave at once.
    pub(super) fn paced(&self, limits: Limits, context: &Context<'_>) -> Limits {
        let burst = self.rate(context).map(|rate| rate.burst(self.mss));
        Limits {
            most: burst.map_or(limits.most, |burst| limits.most.min(burst)),
            ..limits
        }
    }

    /// Notes a transmission of data, before it counts as the last one.
    pub(super) fn pace_after(&mut self, bytes: u32, context: &Context<'_>) {
        let until = self.paced_until();
        let early = until.since(context.now);
        let late = context.now.since(until);
        let gap = match self.rate(context) {
            None => Micros::ZERO,
            Some(rate) => early + rate.interval(bytes, late),
        };
        self.pace_gap_us = u32::try_from(gap.0).unwrap_or(u32::MAX);
    }

    /// Nothing waits any more: after a time-out, or when the connection was idle.
    pub(super) fn stop_pacing(&mut self) {
        self.pace_gap_us = 0;
        self.is_pace_waiting = false;
    }
}
