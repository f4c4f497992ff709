//! The timers of the send half: retransmission, tail loss probe, reordering window, zero window.
//!
//! Spec: RFC 6298 §5, RFC 8985 §6.3 and §7.2, RFC 9293 §3.8.6.1. All of them are instants; the
//! caller asks for the next one and calls when it has passed.

use super::Sender;
use super::acknowledge::Tally;
use crate::context::Context;
use crate::rtt::Bounds;
use crate::time::{Instant, Micros, OptionalInstant};
use crate::tlp::Tlp;

/// The instants at which something is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Timers {
    /// Retransmission, while data is in flight.
    rto: OptionalInstant,
    /// Tail loss probe.
    pub(super) probe: OptionalInstant,
    /// End of the reordering window.
    pub(super) reorder: OptionalInstant,
    /// Zero window probe.
    persist: OptionalInstant,
    /// Since when data or a closed window waits for the peer.
    waiting_since: OptionalInstant,
}

impl Timers {
    pub(super) const NONE: Self = Self {
        rto: OptionalInstant::NONE,
        probe: OptionalInstant::NONE,
        reorder: OptionalInstant::NONE,
        persist: OptionalInstant::NONE,
        waiting_since: OptionalInstant::NONE,
    };
}

/// What an expired timer asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Expired {
    /// Nothing has expired.
    None,
    /// Ask [`Sender::produce`]: there is data to send again.
    Retransmit,
    /// A segment beyond what the windows allow is due: new data, or the last segment again.
    Probe,
    /// A segment without data is due, so that the peer tells its window.
    WindowProbe,
    /// The peer did not answer often enough.
    TimedOut,
}

impl Sender {
    /// The next instant at which a timer expires.
    pub(crate) fn next_timeout(&self) -> OptionalInstant {
        let Timers {
            rto,
            probe,
            reorder,
            persist,
            waiting_since: _,
        } = self.timers;
        rto.earlier_of(probe)
            .earlier_of(reorder)
            .earlier_of(persist)
            .earlier_of(self.pace_ends_at())
    }

    /// Since when data waits for an acknowledgement or for a window.
    pub(crate) fn waiting_since(&self) -> Option<Instant> {
        self.timers.waiting_since.get()
    }

    /// Sets the timers after an acknowledgement.
    pub(super) fn arm(&mut self, tally: &Tally, context: &Context<'_>) {
        let now = context.now;
        if self.flight.is_empty() {
            self.timers.rto = OptionalInstant::NONE;
            self.timers.probe = OptionalInstant::NONE;
            self.timers.reorder = OptionalInstant::NONE;
            // A peer that answers probes with a closed window does not make progress.
            if tally.is_advance || !self.timers.persist.is_some() {
                self.timers.waiting_since = OptionalInstant::NONE;
            }
        } else if tally.is_advance {
            // RFC 6298 §5.3.
            self.timers.rto = (now + self.rtt.rto(&context.config.rto)).into();
            self.timers.waiting_since = now.into();
            self.arm_probe(now);
        }
        self.arm_persist(now, &context.config.rto);
    }

    /// Sets the timers after a transmission.
    pub(super) fn arm_after_send(&mut self, is_new: bool, context: &Context<'_>) {
        let now = context.now;
        if !self.timers.rto.is_some() {
            // RFC 6298 §5.1.
            self.restart_rto(context);
        }
        if self.timers.persist.is_some() {
            // The window has opened: probes are no retransmissions.
            self.timers.persist = OptionalInstant::NONE;
            self.timers.waiting_since = OptionalInstant::NONE;
            self.retries = 0;
        }
        self.timers.waiting_since.set_first(now);
        if is_new {
            self.arm_probe(now);
        }
    }

    /// A probe is due two round trips after the last new data, if no loss is known (RFC 8985 §7.2).
    fn arm_probe(&mut self, now: Instant) {
        let is_possible = self.has_sack
            && self.recovery.is_normal()
            && self.tlp.may_probe()
            && self.flight.sacked() == 0;
        let is_single = self.nxt() - self.una() <= u32::from(self.mss);
        let due = now + Tlp::timeout(self.rtt.srtt(), is_single);
        // A probe goes in place of a time-out that would come first.
        let due = self.timers.rto.get().map_or(due, |rto| due.min(rto));
        self.timers.probe = is_possible.then_some(due).into();
    }

    /// Nothing is in flight, and data waits for a window that is closed or too small: at first
    /// after a time-out, then at doubling intervals, the peer is asked for its window (RFC 9293
    /// §3.8.6.1), or gets what fits (§3.8.6.2.1).
    fn arm_persist(&mut self, now: Instant, bounds: &Bounds) {
        let is_waiting = self.unsent() > 0 || self.is_fin_waiting();
        if !self.flight.is_empty() || !is_waiting {
            if self.timers.persist.is_some() {
                self.timers.persist = OptionalInstant::NONE;
                self.retries = 0;
            }
            return;
        }
        self.timers.waiting_since.set_first(now);
        if !self.timers.persist.is_some() {
            self.timers.persist = (now + self.persist_interval(bounds)).into();
        }
    }

    fn persist_interval(&self, bounds: &Bounds) -> Micros {
        let interval = self.rtt.rto(bounds);
        interval
            .doubled(u32::from(self.retries))
            .min(bounds.ceiling)
    }

    /// Data that waits behind a closed window after a write: see `arm_persist`.
    pub(crate) fn arm_after_write(&mut self, context: &Context<'_>) {
        self.arm_persist(context.now, &context.config.rto);
    }

    /// Handles the timer that has expired.
    pub(crate) fn on_timeout(&mut self, context: &mut Context<'_>) -> Expired {
        let now = context.now;
        if self.timers.probe.has_come(now) {
            self.timers.probe = OptionalInstant::NONE;
            // RFC 8985 §7.3: the time-out waits for the answer to the probe.
            self.timers.rto = (now + self.rtt.rto(&context.config.rto)).into();
            context.counters.loss_probes += 1;
            return Expired::Probe;
        }
        if self.timers.rto.has_come(now) {
            return self.on_rto(context);
        }
        if self.timers.reorder.has_come(now) {
            self.on_reorder_timeout(context);
            return Expired::Retransmit;
        }
        if self.timers.persist.has_come(now) {
            if self.is_given_up(context) {
                return Expired::TimedOut;
            }
            self.retries = self.retries.saturating_add(1);
            self.unanswered = self.unanswered.saturating_add(1);
            self.timers.persist = (now + self.persist_interval(&context.config.rto)).into();
            return Expired::WindowProbe;
        }
        Expired::None
    }

    /// A retransmission begins the time-out anew.
    pub(super) fn restart_rto(&mut self, context: &Context<'_>) {
        self.timers.rto = (context.now + self.rtt.rto(&context.config.rto)).into();
    }

    /// Whether the peer did not answer often enough (RFC 9293 §3.8.3 R2). While its window is
    /// closed, each answer counts (MUST-37), even if the window was shrunk below what was sent
    /// (SHLD-17), unless the application has gone: then only progress counts, as in Linux.
    fn is_given_up(&self, context: &mut Context<'_>) -> bool {
        let limit = context.config.data_retries;
        let is_closed = !self.una().before(self.window_end());
        let is_given_up = if self.is_abandoned {
            self.retries >= limit.min(context.config.orphan_retries)
        } else if is_closed {
            self.unanswered >= limit
        } else {
            self.retries >= limit
        };
        context.counters.abort_on_timeout += u64::from(is_given_up);
        is_given_up
    }

    /// RFC 6298 §5.4 to §5.6.
    fn on_rto(&mut self, context: &mut Context<'_>) -> Expired {
        if self.is_given_up(context) {
            return Expired::TimedOut;
        }
        context.counters.timeouts += 1;
        self.retries = self.retries.saturating_add(1);
        self.unanswered = self.unanswered.saturating_add(1);
        self.begin_loss(context);
        self.stop_pacing();
        self.resize_after_timeout(context);
        self.rtt.back_off();
        self.restart_rto(context);
        self.timers.probe = OptionalInstant::NONE;
        self.timers.reorder = OptionalInstant::NONE;
        Expired::Retransmit
    }
}
