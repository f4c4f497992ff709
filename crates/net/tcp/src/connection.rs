//! A connection: the one door through which its state changes.
//!
//! Spec: RFC 9293 §3.10. Each state decides about a segment, a call or a time-out and returns an
//! [`Outcome`]; only this module applies outcomes. The caller asks for segments after each call,
//! and for the next time-out.

mod api;
mod cookie;
mod icmp;
#[cfg(test)]
mod tests;

pub use icmp::IcmpError;

use core::num::NonZeroU32;

use saiga_wire::SeqNum;
use saiga_wire::tcp::Header;

use crate::challenge::Challenges;
use crate::config::KeepAlive;
use crate::context::{Arrival, Context};
use crate::early::Early;
use crate::event::{CloseReason, Events};
use crate::handshake::{self, Start};
use crate::open::{Born, Open};
use crate::syn_received::SynReceived;
use crate::syn_sent::SynSent;
use crate::time_wait::TimeWait;

/// A TCP connection, without its buffers, addresses and ports.
#[derive(Debug, Clone)]
pub struct Connection {
    pub(crate) phase: Phase,
    settings: Settings,
    reply: Reply,
    challenges: Challenges,
}

/// Settings that the application can change at any time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Settings {
    /// Whether small segments are sent at once (TCP_NODELAY).
    pub is_nodelay: bool,
    /// Probes of an idle connection (SO_KEEPALIVE).
    pub keep_alive: Option<KeepAlive>,
    /// How long data may stay without acknowledgement (TCP_USER_TIMEOUT, RFC 5482).
    pub user_timeout_ms: Option<NonZeroU32>,
}

/// Where the bytes of a payload go.
pub trait Place {
    /// Copies `length` bytes at `from` in the payload of the segment to `to` bytes behind the first
    /// unread byte of the receive buffer. `to + length` is at most the size of the buffer, and at
    /// most what [`Self::room`] has returned.
    fn place(&mut self, from: u32, to: u32, length: u32);

    /// The bytes behind the first unread one for which there is memory; at least those that were
    /// placed. `end` is the end of the segment, counted in the same way. Bytes beyond are dropped
    /// as if the network had lost them, although they are in the window.
    fn room(&mut self, end: u32) -> u32 {
        let _ = end;
        u32::MAX
    }
}

/// The states of RFC 9293 §3.3.2.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "the RFC defines them")]
pub enum StateName {
    SynSent,
    SynReceived,
    Established,
    FinWait1,
    FinWait2,
    CloseWait,
    Closing,
    LastAck,
    TimeWait,
    Closed,
}

impl StateName {
    /// The name in the RFC.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::SynSent => "SYN-SENT",
            Self::SynReceived => "SYN-RECEIVED",
            Self::Established => "ESTABLISHED",
            Self::FinWait1 => "FIN-WAIT-1",
            Self::FinWait2 => "FIN-WAIT-2",
            Self::CloseWait => "CLOSE-WAIT",
            Self::Closing => "CLOSING",
            Self::LastAck => "LAST-ACK",
            Self::TimeWait => "TIME-WAIT",
            Self::Closed => "CLOSED",
        }
    }
}

/// The state with what is valid in it.
#[derive(Debug, Clone)]
#[expect(
    clippy::large_enum_variant,
    reason = "nearly all connections are in the largest state"
)]
pub(crate) enum Phase {
    SynSent(SynSent),
    SynReceived(SynReceived),
    Open(Open),
    TimeWait(TimeWait),
    Closed {
        /// The peer gets a reset, unless it has gone before: its number, and the acknowledgement.
        reset: Option<(SeqNum, SeqNum)>,
    },
}

/// What a state has decided.
#[derive(Debug)]
pub(crate) enum Outcome {
    /// The state stays.
    Stay(Events),
    /// The state stays, and the segment is answered.
    Answer(Reply),
    /// Both sides have opened at the same time.
    Cross(SynReceived),
    /// The handshake is complete by a SYN, which must be acknowledged.
    Establish(Born),
    /// The handshake is complete, and the rest of the segment is for the new state.
    Continue(Born),
    /// Both sides have closed, and late segments may be on their way.
    Wait(TimeWait, Events),
    /// The connection ends in order.
    Finish(Events),
    /// The connection ends.
    Close(CloseReason),
    /// The connection ends, and the peer is reset.
    Reset(CloseReason),
    /// A SYN in TIME-WAIT begins a new connection: the caller removes this one.
    Reopen,
}

/// A segment that answers one which is not acceptable.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Reply {
    #[default]
    None,
    /// The present state.
    Ack,
    /// The present state, at most so often in a second.
    Challenge,
    /// A reset with this number.
    Rst(SeqNum),
}

impl Phase {
    /// Nothing is left.
    const CLOSED: Self = Self::Closed { reset: None };

    /// What waits for the handshake.
    fn early(&mut self) -> Option<&mut Early> {
        match self {
            Self::SynSent(state) => Some(&mut state.early),
            Self::SynReceived(state) => Some(&mut state.early),
            Self::Open(_) | Self::TimeWait(_) | Self::Closed { .. } => None,
        }
    }
}

impl Connection {
    /// An active open (RFC 9293 §3.10.1).
    #[must_use]
    pub fn connect(start: Start, context: &mut Context<'_>) -> Self {
        context.counters.active_opens += 1;
        Self::with(Phase::SynSent(SynSent::new(start, context.now)))
    }

    /// A passive open: answers the SYN of a peer, which the caller has decided to accept.
    #[must_use]
    pub fn accept(start: Start, syn: &Header, context: &mut Context<'_>) -> Self {
        context.counters.passive_opens += 1;
        let agreed = handshake::Agreed::of(context.config, &start, syn, false);
        let state = SynReceived::new(start, agreed, syn, false, context.now);
        Self::with(Phase::SynReceived(state))
    }

    fn with(phase: Phase) -> Self {
        Self {
            phase,
            settings: Settings::default(),
            reply: Reply::None,
            challenges: Challenges::default(),
        }
    }

    /// The name of the state.
    #[must_use]
    pub fn state(&self) -> StateName {
        match &self.phase {
            Phase::SynSent(_) => StateName::SynSent,
            Phase::SynReceived(_) => StateName::SynReceived,
            Phase::Open(open) => open.name(),
            Phase::TimeWait(_) => StateName::TimeWait,
            Phase::Closed { .. } => StateName::Closed,
        }
    }

    /// Whether the state is TIME-WAIT.
    #[inline]
    #[must_use]
    pub fn is_time_wait(&self) -> bool {
        matches!(self.phase, Phase::TimeWait(_))
    }

    /// Whether the connection has ended.
    #[inline]
    #[must_use]
    pub fn is_closed(&self) -> bool {
        matches!(self.phase, Phase::Closed { .. })
    }

    /// Takes a segment of this connection. `place` gets the bytes of its payload that are new.
    pub fn on_segment(
        &mut self,
        arrival: &Arrival<'_>,
        place: &mut impl Place,
        context: &mut Context<'_>,
    ) -> Events {
        context.counters.in_segs += 1;
        let outcome = match &mut self.phase {
            Phase::SynSent(state) => state.on_segment(arrival, context),
            Phase::SynReceived(state) => state.on_segment(arrival, context),
            Phase::Open(state) => state.on_segment(arrival, place, context),
            Phase::TimeWait(state) => state.on_segment(arrival, context),
            Phase::Closed { .. } => Outcome::Stay(Events::NONE),
        };
        let has_more = matches!(outcome, Outcome::Continue(..));
        let events = self.apply(outcome, context);
        if !has_more {
            return events;
        }
        let more = self.on_segment_again(arrival, place, context);
        Events {
            is_established: events.is_established,
            ..more
        }
    }

    /// The rest of the segment that completed the handshake.
    fn on_segment_again(
        &mut self,
        arrival: &Arrival<'_>,
        place: &mut impl Place,
        context: &mut Context<'_>,
    ) -> Events {
        let Phase::Open(open) = &mut self.phase else {
            return Events::NONE;
        };
        let outcome = open.on_segment(arrival, place, context);
        self.apply(outcome, context)
    }

    /// Applies what a state has decided.
    fn apply(&mut self, outcome: Outcome, context: &mut Context<'_>) -> Events {
        match outcome {
            Outcome::Stay(events) => events,
            Outcome::Answer(reply) => {
                self.answer(reply, context);
                Events::NONE
            }
            Outcome::Cross(state) => {
                self.enter(Phase::SynReceived(state), context);
                Events::NONE
            }
            Outcome::Establish(born) => {
                self.enter(Phase::Open(Open::new(&born, context)), context);
                if let Phase::Open(open) = &mut self.phase {
                    open.acknowledge_now();
                }
                Events::ESTABLISHED
            }
            Outcome::Continue(born) => {
                self.enter(Phase::Open(Open::new(&born, context)), context);
                Events::ESTABLISHED
            }
            Outcome::Wait(state, events) => {
                self.phase = Phase::TimeWait(state);
                events
            }
            Outcome::Finish(events) => {
                self.phase = Phase::CLOSED;
                Events {
                    closed: Some(CloseReason::Finished),
                    ..events
                }
            }
            Outcome::Close(reason) => self.end(reason, None, context),
            Outcome::Reset(reason) => self.end(reason, self.reset_numbers(), context),
            Outcome::Reopen => self.end(CloseReason::Finished, None, context),
        }
    }

    /// Enters a state of the handshake, or the one after it.
    fn enter(&mut self, phase: Phase, context: &Context<'_>) {
        let early = self.phase.early().copied();
        self.phase = phase;
        if let Some(early) = early {
            self.take_over(&early, context);
        }
    }

    /// Does what the application asked for before the handshake was complete, or keeps it.
    fn take_over(&mut self, early: &Early, context: &Context<'_>) {
        match &mut self.phase {
            Phase::SynReceived(state) => state.early = *early,
            Phase::Open(open) => early.apply(open, context),
            Phase::SynSent(_) | Phase::TimeWait(_) | Phase::Closed { .. } => {}
        }
    }

    /// Ends the connection, with a reset of these numbers or silently.
    fn end(
        &mut self,
        reason: CloseReason,
        reset: Option<(SeqNum, SeqNum)>,
        context: &mut Context<'_>,
    ) -> Events {
        match self.state() {
            StateName::SynSent | StateName::SynReceived => context.counters.attempt_fails += 1,
            StateName::Established | StateName::CloseWait if reason != CloseReason::Finished => {
                context.counters.estab_resets += 1;
            }
            StateName::Established
            | StateName::CloseWait
            | StateName::FinWait1
            | StateName::FinWait2
            | StateName::Closing
            | StateName::LastAck
            | StateName::TimeWait
            | StateName::Closed => {}
        }
        self.phase = Phase::Closed { reset };
        Events::closed(reason)
    }

    /// Notes a reply for the next [`Self::transmit`]. A challenge takes part in the limit.
    fn answer(&mut self, reply: Reply, context: &mut Context<'_>) {
        self.reply = match reply {
            Reply::Challenge if self.may_challenge(context) => Reply::Ack,
            // An answer to a segment before may still wait.
            Reply::None | Reply::Challenge => return,
            other @ (Reply::Ack | Reply::Rst(_)) => other,
        };
    }

    /// Whether a challenge acknowledgement may be sent now.
    fn may_challenge(&mut self, context: &mut Context<'_>) -> bool {
        let per_second = context.config.challenges_per_second;
        let is_allowed = self.challenges.take(context.now, per_second);
        if is_allowed {
            context.counters.challenge_acks += 1;
        } else {
            context.counters.acks_skipped_challenge += 1;
        }
        is_allowed
    }

    /// The numbers of a reset that the peer accepts, if it knows of the connection.
    fn reset_numbers(&self) -> Option<(SeqNum, SeqNum)> {
        match &self.phase {
            Phase::Open(open) => Some(open.reset_numbers()),
            Phase::SynReceived(state) => Some((state.start.iss + 1, state.irs + 1)),
            Phase::SynSent(_) | Phase::TimeWait(_) | Phase::Closed { .. } => None,
        }
    }
}

// Half a million idle connections fit into a gibibyte with their entries in tables.
const _: () = assert!(size_of::<Connection>() <= 440);
