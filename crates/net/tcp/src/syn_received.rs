//! SYN-RECEIVED: the peer's SYN has come, and the acknowledgement of this side's SYN has not.
//!
//! Spec: RFC 9293 §3.10.7.4, RFC 5961 §3 to §5. A passive open that is reset ends silently: the
//! listener goes on. Linux answers a repeated SYN with its SYN again, not with an acknowledgement;
//! so does this state, because the peer waits for exactly that.

use saiga_wire::SeqNum;
use saiga_wire::tcp::{Flags, Header, Options};

use crate::connection::{Outcome, Reply};
use crate::context::{Arrival, Context};
use crate::early::Early;
use crate::event::{CloseReason, Events};
use crate::handshake::{Agreed, Start, syn_ack};
use crate::open::Born;
use crate::time::Instant;

/// The state.
#[derive(Debug, Clone)]
pub(crate) struct SynReceived {
    pub(crate) start: Start,
    pub(crate) agreed: Agreed,
    /// The peer's initial sequence number and its timestamp.
    pub(crate) irs: SeqNum,
    pub(crate) ts_recent: u32,
    /// Whether this side's open was active, too.
    is_active: bool,
    sent_at: Option<Instant>,
    pub(crate) retries: u8,
    /// When the SYN is due, first or again.
    pub(crate) due: Instant,
    pub(crate) early: Early,
}

impl SynReceived {
    pub(crate) fn new(
        start: Start,
        agreed: Agreed,
        syn: &Header,
        is_active: bool,
        now: Instant,
    ) -> Self {
        Self {
            start,
            agreed,
            irs: syn.seq,
            ts_recent: syn.options.timestamps.map_or(0, |one| one.value),
            is_active,
            sent_at: None,
            retries: 0,
            due: now,
            early: Early::default(),
        }
    }

    /// Handles a segment in the order of RFC 9293 §3.10.7.4.
    pub(crate) fn on_segment(&mut self, arrival: &Arrival<'_>, context: &Context<'_>) -> Outcome {
        let header = arrival.header;
        let nxt = self.irs + 1;
        let is_syn = header.flags.contains(Flags::SYN);
        let is_rst = header.flags.contains(Flags::RST);
        if is_syn && !is_rst && header.seq == self.irs {
            return self.on_repeated_syn(arrival, context);
        }
        if !self.is_acceptable(arrival) {
            let reply = if is_rst {
                Reply::None
            } else {
                Reply::Challenge
            };
            return Outcome::Answer(reply);
        }
        if is_rst {
            return match (header.seq == nxt, self.is_active) {
                (true, true) => Outcome::Close(CloseReason::Refused),
                (true, false) => Outcome::Close(CloseReason::Reset),
                // RFC 5961 §3.2: a guess within the window is challenged.
                (false, _) => Outcome::Answer(Reply::Challenge),
            };
        }
        if is_syn {
            return Outcome::Answer(Reply::Challenge);
        }
        match header.ack {
            None => Outcome::Stay(Events::NONE),
            Some(ack) if ack == self.start.iss + 1 => self.established(arrival, context),
            Some(ack) => Outcome::Answer(Reply::Rst(ack)),
        }
    }

    /// The SYN again: the answer was lost. With an acknowledgement, it ends a simultaneous open.
    fn on_repeated_syn(&mut self, arrival: &Arrival<'_>, context: &Context<'_>) -> Outcome {
        match arrival.header.ack {
            Some(ack) if ack == self.start.iss + 1 => self.established(arrival, context),
            Some(_) | None => {
                // Counts as a retransmission: repeated SYNs cannot keep the state for ever, and the
                // round-trip time of the answer is not known any more.
                if self.retries < context.config.syn_ack_retries {
                    self.retries += 1;
                    self.due = context.now;
                }
                Outcome::Stay(Events::NONE)
            }
        }
    }

    /// The window test of RFC 9293 §3.10.7.4 with the window of this side's SYN.
    fn is_acceptable(&self, arrival: &Arrival<'_>) -> bool {
        let (seq, length) = (arrival.header.seq, arrival.sequence_length());
        let nxt = self.irs + 1;
        let window = self.start.buffer.min(u32::from(u16::MAX));
        let last = seq + length.saturating_sub(1);
        if window == 0 {
            return length == 0 && seq == nxt;
        }
        seq.in_window(nxt, window) || length > 0 && last.in_window(nxt, window)
    }

    /// The handshake is complete. Data and FIN of the same segment are for the next state.
    fn established(&self, arrival: &Arrival<'_>, context: &Context<'_>) -> Outcome {
        let header = arrival.header;
        let is_syn = header.flags.contains(Flags::SYN);
        // The window of a segment with SYN is never scaled (RFC 7323 §2.2).
        let shift = if is_syn { 0 } else { self.agreed.send_shift };
        let born = Born {
            start: self.start,
            agreed: self.agreed,
            irs: self.irs,
            window: u32::from(header.window) << shift,
            ts_recent: self.ts_recent,
            rtt: self.sent_at.map(|sent_at| context.now.since(sent_at)),
            syn_retries: self.retries,
        };
        if is_syn {
            Outcome::Establish(born)
        } else {
            Outcome::Continue(born)
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
        if self.retries >= context.config.syn_ack_retries {
            return Some(CloseReason::TimedOut);
        }
        self.retries += 1;
        None
    }

    /// The answer to a segment that is not acceptable.
    pub(crate) fn acknowledgement(&self, context: &Context<'_>) -> Header {
        let echo = (self.irs + 1, self.ts_recent);
        let own = syn_ack(context.config, &self.start, &self.agreed, echo, context.now);
        Header {
            seq: self.start.iss + 1,
            flags: Flags::NONE,
            options: Options {
                timestamps: own.options.timestamps,
                ..Options::NONE
            },
            ..own
        }
    }
}
