//! Probes of a silent peer, and the ends of patience.
//!
//! Spec: RFC 9293 §3.8.4 (keep-alive), RFC 5482 (user time-out), `man 7 tcp` (TCP_KEEPIDLE,
//! TCP_USER_TIMEOUT, tcp_fin_timeout).

use super::Open;
use crate::config::KeepAlive;
use crate::connection::Settings;
use crate::context::Context;
use crate::event::CloseReason;
use crate::sender::Expired;
use crate::time::{Instant, Micros, OptionalInstant};

/// Silence of the peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Idle {
    heard_at: Instant,
    /// Keep-alive probes without an answer.
    probes: u32,
    /// A segment without data that makes the peer answer is due.
    pub(super) is_probe_due: bool,
    /// A tail loss probe is due.
    pub(super) is_tail_probe_due: bool,
}

impl Idle {
    pub(super) fn new(now: Instant) -> Self {
        Self {
            heard_at: now,
            probes: 0,
            is_probe_due: false,
            is_tail_probe_due: false,
        }
    }

    pub(super) fn on_segment(&mut self, now: Instant) {
        self.heard_at = now;
        self.probes = 0;
    }

    pub(super) fn on_progress(&mut self) {
        self.is_probe_due = false;
    }
}

impl Open {
    /// The next instant at which [`Self::on_timeout`] must be called.
    pub(crate) fn next_timeout(
        &self,
        settings: &Settings,
        context: &Context<'_>,
    ) -> OptionalInstant {
        let fin_wait = self
            .fin_wait_since
            .get()
            .map(|since| since + context.config.fin_wait);
        self.sender
            .next_timeout()
            .earlier_of(self.receiver.delayed())
            .earlier_of(self.keep_alive_at(settings).into())
            .earlier_of(self.patience_ends_at(settings).into())
            .earlier_of(fin_wait.into())
    }

    /// Handles everything that is due now. Returns why the connection ends, if it does.
    pub(crate) fn on_timeout(
        &mut self,
        settings: &Settings,
        context: &mut Context<'_>,
    ) -> Option<CloseReason> {
        let now = context.now;
        self.receiver.on_timeout(now);
        match self.sender.on_timeout(context) {
            Expired::None | Expired::Retransmit => {}
            Expired::Probe => self.idle.is_tail_probe_due = true,
            Expired::WindowProbe => self.idle.is_probe_due = true,
            Expired::TimedOut => return Some(CloseReason::TimedOut),
        }
        if self.patience_ends_at(settings).is_some_and(|at| at <= now) {
            context.counters.abort_on_timeout += 1;
            return Some(CloseReason::TimedOut);
        }
        if self
            .fin_wait_since
            .get()
            .is_some_and(|since| now.since(since) >= context.config.fin_wait)
        {
            return Some(CloseReason::Finished);
        }
        self.keep_alive(settings, context)
    }

    /// A keep-alive probe is due while nothing is in flight.
    fn keep_alive_at(&self, settings: &Settings) -> Option<Instant> {
        let keep_alive = settings.keep_alive.filter(|_| self.sender.is_idle())?;
        let interval_ms = u64::from(keep_alive.interval_ms.get());
        let silent_ms = interval_ms * u64::from(self.idle.probes) + u64::from(keep_alive.idle_ms);
        Some(self.idle.heard_at + Micros::from_millis(silent_ms))
    }

    fn keep_alive(
        &mut self,
        settings: &Settings,
        context: &mut Context<'_>,
    ) -> Option<CloseReason> {
        let due = self.keep_alive_at(settings)?;
        let keep_alive = settings.keep_alive.filter(|_| due <= context.now)?;
        if self.is_dead(keep_alive, settings, context.now) {
            context.counters.abort_on_timeout += 1;
            return Some(CloseReason::TimedOut);
        }
        self.idle.probes = self.idle.probes.saturating_add(1);
        self.idle.is_probe_due = true;
        context.counters.keep_alives += 1;
        None
    }

    /// Whether the probes have shown that the peer is gone. The user time-out, if there is one,
    /// counts in place of their number (`man 7 tcp`, TCP_USER_TIMEOUT).
    fn is_dead(&self, keep_alive: KeepAlive, settings: &Settings, now: Instant) -> bool {
        match settings.user_timeout_ms {
            Some(ms) => {
                let is_over = now.since(self.idle.heard_at) >= Micros::from_millis(ms.get().into());
                self.idle.probes > 0 && is_over
            }
            None => self.idle.probes >= keep_alive.count.get().into(),
        }
    }

    /// Data was not acknowledged for the user time-out.
    fn patience_ends_at(&self, settings: &Settings) -> Option<Instant> {
        let since = self.sender.waiting_since()?;
        Some(since + Micros::from_millis(settings.user_timeout_ms?.get().into()))
    }
}
