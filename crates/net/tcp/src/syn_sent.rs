//! SYN-SENT: an active open that waits for the peer's SYN.
//!
//! Spec: RFC 9293 §3.10.7.3. Reads one segment; returns the next state, and at most one reply.
//!
//! Deliberately absent: data on SYN (TCP Fast Open, RFC 7413).

use saiga_wire::tcp::{Flags, Header};

use crate::connection::{Outcome, Reply, Settings};
use crate::context::{Arrival, Context};
use crate::early::Early;
use crate::event::{CloseReason, Events};
use crate::handshake::{Agreed, Start, syn};
use crate::open::Born;
use crate::syn_received::SynReceived;
use crate::time::{Instant, Micros};

/// The state.
#[derive(Debug, Clone)]
pub(crate) struct SynSent {
    pub(crate) start: Start,
    opened_at: Instant,
    /// First transmission of the SYN, for the round-trip time; `None` after a retransmission.
    sent_at: Option<Instant>,
    pub(crate) retries: u8,
    /// When the SYN is due, first or again.
    pub(crate) due: Instant,
    pub(crate) early: Early,
}

impl SynSent {
    pub(crate) fn new(start: Start, now: Instant) -> Self {
        Self {
            start,
            opened_at: now,
            sent_at: None,
            retries: 0,
            due: now,
            early: Early::default(),
        }
    }

    /// Handles a segment in the order of RFC 9293 §3.10.7.3: ACK, RST, SYN. The order matters: an
    /// RST closes the connection only if it acknowledges the SYN, or any host could do so.
    pub(crate) fn on_segment(&self, arrival: &Arrival<'_>, context: &Context<'_>) -> Outcome {
        let header = arrival.header;
        let nxt = self.start.iss + 1;
        let is_rst = header.flags.contains(Flags::RST);
        let is_ours = match header.ack {
            None => false,
            Some(ack) if ack == nxt => true,
            Some(_) if is_rst => return Outcome::Stay(Events::NONE),
            Some(ack) => return Outcome::Answer(Reply::Rst(ack)),
        };
        // RFC 7323 §3.2 and RFC 5961 do not apply before the connection is synchronised.
        match (is_rst, header.flags.contains(Flags::SYN), is_ours) {
            (true, _, true) => Outcome::Close(CloseReason::Refused),
            (false, true, true) => self.established(arrival, context),
            (false, true, false) => self.crossed(arrival, context),
            (true, _, false) | (false, false, _) => Outcome::Stay(Events::NONE),
        }
    }

    /// The peer has answered.
    fn established(&self, arrival: &Arrival<'_>, context: &Context<'_>) -> Outcome {
        let header = arrival.header;
        Outcome::Establish(Born {
            start: self.start,
            agreed: self.agreed(arrival, true, context),
            irs: header.seq,
            window: u32::from(header.window),
            ts_recent: header.options.timestamps.map_or(0, |one| one.value),
            rtt: self.sent_at.map(|sent_at| context.now.since(sent_at)),
            syn_retries: self.retries,
        })
    }

    /// Both sides open at the same time (RFC 9293 §3.5 figure 7).
    fn crossed(&self, arrival: &Arrival<'_>, context: &Context<'_>) -> Outcome {
        let agreed = self.agreed(arrival, false, context);
        let crossed = SynReceived::new(self.start, agreed, arrival.header, true, context.now);
        Outcome::Cross(crossed)
    }

    /// When the application's limit ends, if there is one (TCP_USER_TIMEOUT, RFC 9293 MUST-22).
    pub(crate) fn ends_at(&self, settings: &Settings) -> Option<Instant> {
        let limit_ms = settings.user_timeout_ms?;
        Some(self.opened_at + Micros::from_millis(limit_ms.get().into()))
    }

    /// The SYN. As in Linux, only the first one asks for ECN: a firewall may drop those that do
    /// (RFC 3168 §6.1.1.1).
    pub(crate) fn header(&self, context: &Context<'_>) -> Header {
        let header = syn(context.config, &self.start, context.now);
        if self.retries == 0 {
            return header;
        }
        Header {
            flags: Flags::SYN,
            ..header
        }
    }

    /// What both SYNs say. A host whose own SYN did not ask for ECN does not use it.
    fn agreed(&self, arrival: &Arrival<'_>, is_answer: bool, context: &Context<'_>) -> Agreed {
        let agreed = Agreed::of(context.config, &self.start, arrival.header, is_answer);
        Agreed {
            has_ecn: agreed.has_ecn && self.retries == 0,
            ..agreed
        }
    }

    /// Notes the transmission of the SYN, and doubles the time-out (RFC 6298 §5.5).
    pub(crate) fn on_sent(&mut self, context: &Context<'_>) {
        let now = context.now;
        self.sent_at = (self.retries == 0).then_some(now);
        let rto = context.config.rto;
        let timeout = rto
            .initial
            .doubled(u32::from(self.retries))
            .min(rto.ceiling);
        self.due = now + timeout;
    }

    /// The SYN is due again, or the peer has not answered often enough.
    pub(crate) fn on_timeout(&mut self, context: &Context<'_>) -> Option<CloseReason> {
        if self.retries == 0 && self.sent_at.is_none() {
            return None; // Not sent yet: the caller handles time-outs before it sends.
        }
        if self.retries >= context.config.syn_retries {
            return Some(CloseReason::TimedOut);
        }
        self.retries += 1;
        None
    }
}
