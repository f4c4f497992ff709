//! The states of loss recovery.
//!
//! Spec: RFC 6675 §5 and RFC 6937 (fast recovery), RFC 6582 (a peer without selective
//! acknowledgements), RFC 5681 §3.1 (after a time-out), RFC 5682 §3 (F-RTO), RFC 3522 (a
//! retransmission that a timestamp shows to be unnecessary).
//!
//! F-RTO needs selective acknowledgements here: data that arrives by its first transmission after
//! the time-out proves that the time-out was spurious. RFC 5682 §2, for peers without them, is left
//! out: such peers are rare, and a spurious time-out costs them one slow start.

use alloc::boxed::Box;

use saiga_wire::SeqNum;
use saiga_wire::tcp::SackBlock;

use super::Sender;
use super::acknowledge::{Ack, Tally};
use crate::congestion::Acked;
use crate::congestion::prr::{self, Prr};
use crate::context::Context;
use crate::rack::Scene;
use crate::time::{Instant, Micros, OptionalInstant};

/// Duplicate acknowledgements that make a loss (RFC 5681 §3.2).
const DUP_THRESH: u8 = 3;

/// The state.
#[derive(Debug, Clone)]
pub(super) enum Recovery {
    /// No loss is known. Duplicate acknowledgements are counted for peers without selective ones.
    Normal { dup_acks: u8 },
    /// Losses are being repaired.
    Fast(Box<Fast>),
    /// A time-out has expired: slow start from one segment.
    Loss {
        recover: SeqNum,
        frto: Frto,
        retransmitted_at: OptionalInstant,
    },
    /// Segments that were too big for the path are sent again. The window stays.
    Resize { recover: SeqNum },
}

/// An episode of fast recovery.
#[derive(Debug, Clone)]
pub(super) struct Fast {
    /// The episode ends when everything up to this number is acknowledged.
    recover: SeqNum,
    prr: Prr,
    /// One retransmission is due whatever the window says (RFC 6675 §5 step 4.3).
    is_first_due: bool,
    /// The first retransmission.
    retransmitted_at: OptionalInstant,
}

/// The test whether a time-out was spurious.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Frto {
    /// The loss is real, or cannot be doubted.
    Off,
    /// The first segment was sent again.
    Repeated,
    /// New data follow, to see whether their acknowledgements tell more.
    New,
}

impl Recovery {
    /// Whether the window was reduced for what is sent again.
    pub(super) fn is_reducing(&self) -> bool {
        matches!(self, Self::Fast(_) | Self::Loss { .. })
    }

    pub(super) fn is_normal(&self) -> bool {
        matches!(self, Self::Normal { .. })
    }

    /// Whether new data go before lost data.
    pub(super) fn prefers_new_data(&self) -> bool {
        matches!(
            self,
            Self::Loss {
                frto: Frto::New,
                ..
            }
        )
    }

    /// Whether a retransmission is due whatever the window says.
    pub(super) fn is_first_due(&self) -> bool {
        match self {
            Self::Normal { .. } | Self::Resize { .. } => false,
            Self::Fast(fast) => fast.is_first_due,
            // RFC 6298 §5.4.
            Self::Loss {
                retransmitted_at, ..
            } => !retransmitted_at.is_some(),
        }
    }

    /// Notes a transmission.
    pub(super) fn on_sent(&mut self, bytes: u32, is_retransmission: bool, now: Instant) {
        match self {
            Self::Normal { .. } | Self::Resize { .. } => {}
            Self::Fast(fast) => {
                fast.prr.on_send(bytes);
                if is_retransmission {
                    fast.is_first_due = false;
                    fast.retransmitted_at.set_first(now);
                }
            }
            Self::Loss {
                retransmitted_at,
                recover: _,
                frto: _,
            } => {
                if is_retransmission {
                    retransmitted_at.set_first(now);
                }
            }
        }
    }
}

impl Sender {
    /// Finds losses, moves between the states, and sets the congestion window.
    pub(super) fn recover(
        &mut self,
        ack: &Ack<'_>,
        tally: &Tally,
        rtt: Option<Micros>,
        context: &mut Context<'_>,
    ) {
        // An acknowledgement that ends the recovery can show that it was needless.
        if self.is_all_there() || self.is_echo_older(ack, tally) {
            self.undo(context);
        }
        self.end_recovery();
        if self.is_spurious(tally) {
            self.undo(context);
        }
        let delivered = tally.delivered + self.count_duplicates(tally);
        let lost = self.flight.lost();
        self.detect_losses(context.now);
        let is_safe = tally.is_advance && self.flight.lost() <= lost;
        self.begin_recovery(context);
        match &mut self.recovery {
            Recovery::Normal { .. } | Recovery::Resize { .. } => self.grow(tally, rtt, context.now),
            Recovery::Fast(_) => self.reduce(delivered, if is_safe { self.mss.into() } else { 0 }),
            Recovery::Loss { frto, .. } => {
                *frto = match *frto {
                    Frto::Repeated if tally.is_advance => Frto::New,
                    // A duplicate before or after the new data: the loss is real.
                    Frto::Repeated | Frto::New if tally.is_duplicate || tally.delivered > 0 => {
                        Frto::Off
                    }
                    same @ (Frto::Off | Frto::Repeated | Frto::New) => same,
                };
                self.grow(tally, rtt, context.now);
            }
        }
    }

    /// Ends a recovery when everything that was sent before it is acknowledged.
    fn end_recovery(&mut self) {
        let una = self.una();
        let is_over = match &self.recovery {
            Recovery::Normal { .. } => false,
            Recovery::Fast(fast) => una.at_or_after(fast.recover),
            Recovery::Loss { recover, .. } | Recovery::Resize { recover } => {
                una.at_or_after(*recover)
            }
        };
        if !is_over {
            return;
        }
        if matches!(self.recovery, Recovery::Fast(_)) {
            self.congestion.set_cwnd(self.congestion.ssthresh());
        }
        self.recovery = Recovery::Normal { dup_acks: 0 };
        self.reno_sacked = 0;
        self.rack.on_recovered();
    }

    /// Whether all that was given up has come before any of it was sent again. A driver that takes
    /// several segments before it sends sees this, too.
    fn is_all_there(&self) -> bool {
        let Recovery::Fast(fast) = &self.recovery else {
            return false;
        };
        !fast.retransmitted_at.is_some() && self.flight.lost() == 0
    }

    /// Whether the acknowledgement answers a segment from before the first retransmission (Eifel,
    /// RFC 3522 §3.2).
    fn is_echo_older(&self, ack: &Ack<'_>, tally: &Tally) -> bool {
        let at = match &self.recovery {
            Recovery::Normal { .. } | Recovery::Resize { .. } => OptionalInstant::NONE,
            Recovery::Fast(fast) => fast.retransmitted_at,
            Recovery::Loss {
                retransmitted_at, ..
            } => *retransmitted_at,
        };
        let at = at.get().filter(|_| tally.is_advance);
        let is_older = at
            .zip(ack.echo)
            .is_some_and(|(at, echo)| echo.is_before(at));
        // As in Linux (`tcp_try_undo_partial`): one late segment does not show that others of the
        // recovery, which were sent again and did not arrive yet, were not lost.
        let is_fast = matches!(self.recovery, Recovery::Fast(_));
        is_older && !(is_fast && self.flight.has_retransmissions_out())
    }

    /// Whether data arrived after a time-out by its first transmission (RFC 5682 §3).
    fn is_spurious(&self, tally: &Tally) -> bool {
        let Recovery::Loss { recover, frto, .. } = &self.recovery else {
            return false;
        };
        let end = tally.original_end.filter(|_| self.has_sack);
        *frto != Frto::Off && end.is_some_and(|end| end.at_or_before(*recover))
    }

    /// Takes a report of a duplicate, which can be the last one that shows a recovery to be
    /// needless, long after its end.
    pub(super) fn on_duplicate(&mut self, block: &SackBlock, context: &mut Context<'_>) {
        if self.congestion.is_needless(block) {
            context.counters.dsack_undos += 1;
            self.undo(context);
        }
    }

    /// Takes a recovery back.
    fn undo(&mut self, context: &mut Context<'_>) {
        if matches!(self.recovery, Recovery::Loss { .. }) {
            context.counters.spurious_rtos += 1;
        } else {
            self.rack.on_spurious_recovery();
        }
        self.congestion.undo();
        if matches!(self.recovery, Recovery::Resize { .. }) {
            // What was too big does not arrive, whatever an older recovery was about.
            return;
        }
        self.flight.find_lost();
        self.rtt.undo_backoff();
        self.recovery = Recovery::Normal { dup_acks: 0 };
        self.reno_sacked = 0;
    }

    /// Counts a duplicate acknowledgement of a peer without selective ones: one segment has left
    /// the network (RFC 6582 §3.2). Returns its bytes.
    fn count_duplicates(&mut self, tally: &Tally) -> u32 {
        if self.has_sack {
            return 0;
        }
        let mss = u32::from(self.mss);
        if tally.is_advance {
            // A partial acknowledgement covers what the duplicates stood for, and one hole.
            let arrived = tally.delivered.saturating_sub(mss);
            self.reno_sacked = self.reno_sacked.saturating_sub(arrived);
            if let Recovery::Normal { dup_acks } = &mut self.recovery {
                *dup_acks = 0;
                self.reno_sacked = 0;
            } else if matches!(self.recovery, Recovery::Fast(_)) {
                self.flight.lose_first(mss);
            }
            return 0;
        }
        // After a time-out, duplicates come from what was sent again needlessly.
        if !tally.is_duplicate || matches!(self.recovery, Recovery::Loss { .. }) {
            return 0;
        }
        self.reno_sacked = (self.reno_sacked + mss).min(self.flight.in_flight());
        if let Recovery::Normal { dup_acks } = &mut self.recovery {
            *dup_acks = dup_acks.saturating_add(1);
            if *dup_acks == DUP_THRESH {
                self.flight.lose_first(mss);
            }
        }
        mss
    }

    /// Lets RACK mark losses, and notes when to look again.
    pub(super) fn detect_losses(&mut self, now: Instant) {
        self.timers.reorder = OptionalInstant::NONE;
        if !self.has_sack || self.flight.is_empty() {
            return;
        }
        let scene = self.scene(now);
        let wait = self.rack.detect(&mut self.flight, &scene);
        self.timers.reorder = wait.map(|wait| now + wait).into();
        if wait.is_some() {
            // The end of the window tells more than a probe; as in Linux, where both are one timer.
            self.timers.probe = OptionalInstant::NONE;
        }
    }

    fn scene(&self, now: Instant) -> Scene {
        Scene {
            now,
            min_rtt: self.min_rtt.get().unwrap_or_default(),
            srtt: self.rtt.srtt().unwrap_or_default(),
            mss: self.mss,
            is_in_recovery: !self.recovery.is_normal(),
        }
    }

    /// Begins a recovery if there are losses that none repairs yet.
    pub(super) fn begin_recovery(&mut self, context: &mut Context<'_>) {
        if self.flight.lost() == 0 {
            return;
        }
        self.resize_after_loss(context);
        if self.recovery.is_normal() {
            self.begin_fast(context);
        }
    }

    /// The reordering window has ended: begins recovery if losses are known now. As in Linux
    /// (`tcp_rack_reo_timeout`), one segment may go before the next acknowledgement.
    pub(super) fn on_reorder_timeout(&mut self, context: &mut Context<'_>) {
        self.detect_losses(context.now);
        let was_normal = self.recovery.is_normal();
        self.begin_recovery(context);
        if was_normal {
            self.reduce(self.mss.into(), 0);
        }
    }

    /// Sets the congestion window during fast recovery; see [`prr::Ack`] for the arguments.
    fn reduce(&mut self, delivered: u32, growth: u32) {
        let Recovery::Fast(fast) = &mut self.recovery else {
            return;
        };
        let pipe = self.flight.in_flight().saturating_sub(self.reno_sacked);
        let more = fast.prr.on_ack(&prr::Ack {
            delivered,
            pipe,
            ssthresh: self.congestion.ssthresh(),
            growth,
        });
        self.congestion.set_cwnd(pipe.saturating_add(more));
    }

    fn begin_fast(&mut self, context: &mut Context<'_>) {
        if self.has_sack {
            context.counters.sack_recovery += 1;
        } else {
            context.counters.reno_recovery += 1;
        }
        let in_flight = self.nxt() - self.una();
        self.congestion.on_congestion(in_flight);
        self.congestion.watch(self.una());
        self.tlp.reset();
        self.timers.probe = OptionalInstant::NONE;
        self.reduced_until = Some(self.nxt());
        self.must_send_cwr = true;
        self.recovery = Recovery::Fast(Box::new(Fast {
            recover: self.nxt(),
            prr: Prr::new(in_flight),
            is_first_due: true,
            retransmitted_at: OptionalInstant::NONE,
        }));
    }

    /// Begins recovery after a time-out.
    pub(super) fn begin_loss(&mut self, context: &mut Context<'_>) {
        let is_first = !matches!(self.recovery, Recovery::Loss { .. });
        // As in Linux, a recovery that has reduced the window for the same data counts.
        let must_reduce = !self.recovery.is_reducing();
        self.congestion
            .on_timeout(self.nxt() - self.una(), must_reduce);
        self.congestion.watch(self.una());
        if self.flight.has_reneged() {
            context.counters.sack_reneging += 1;
            self.flight.forget_sacks();
        }
        if self.has_sack {
            let scene = self.scene(context.now);
            self.rack.on_timeout(&mut self.flight, &scene);
        } else {
            self.flight.mark_lost(|_, _| true);
        }
        self.tlp.reset();
        self.reno_sacked = 0;
        self.must_send_cwr = true;
        self.recovery = Recovery::Loss {
            recover: self.nxt(),
            frto: if is_first && self.has_sack {
                Frto::Repeated
            } else {
                Frto::Off
            },
            retransmitted_at: OptionalInstant::NONE,
        };
    }

    /// Grows the window by what was acknowledged. Duplicates do not grow it (RFC 5681 §3.2 step 1),
    /// but on a path that reorders, there is nearly always a hole: what arrives above it counts, as
    /// in Linux (`tcp_may_raise_cwnd` in net/ipv4/tcp_input.c). An acknowledgement that tells of
    /// congestion does not grow it either (RFC 3168 §6.1.2).
    fn grow(&mut self, tally: &Tally, rtt: Option<Micros>, now: Instant) {
        let is_progress = tally.delivered > 0 && self.rack.is_reordering_seen();
        if !tally.is_advance && !is_progress || tally.is_congested {
            return;
        }
        self.congestion.on_ack(&Acked {
            bytes: tally.delivered,
            una: self.flight.una(),
            nxt: self.flight.nxt(),
            rtt,
            srtt: self.rtt.srtt().unwrap_or_default(),
            is_limited: tally.is_limited,
            now,
        });
    }
}
