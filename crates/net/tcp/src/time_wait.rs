//! TIME-WAIT: both sides have closed; late segments must not reach a new connection.
//!
//! Spec: RFC 9293 §3.6.1 and §3.10.7.4, RFC 6191 (a new SYN may end the state), RFC 1337 (an RST
//! does not).

use saiga_wire::SeqNum;
use saiga_wire::tcp::Flags;

use crate::connection::{Outcome, Reply};
use crate::context::{Arrival, Context};
use crate::event::Events;
use crate::time::Instant;

/// What is left of a connection.
#[derive(Debug, Clone)]
pub(crate) struct TimeWait {
    /// `SND.NXT` and `RCV.NXT`.
    pub(crate) snd_nxt: SeqNum,
    pub(crate) rcv_nxt: SeqNum,
    /// The window of the last segment, before scaling.
    pub(crate) window: u16,
    /// The peer's last timestamp, and the offset of this side's timestamps.
    pub(crate) timestamps: Option<(u32, u32)>,
    pub(crate) end: Instant,
    /// Whether the peer's FIN is not acknowledged yet.
    pub(crate) is_ack_due: bool,
}

impl TimeWait {
    /// Handles a segment. An acceptable FIN is the peer's, sent again: the wait begins anew.
    pub(crate) fn on_segment(&mut self, arrival: &Arrival<'_>, context: &Context<'_>) -> Outcome {
        let header = arrival.header;
        if header.flags.contains(Flags::RST) {
            return Outcome::Stay(Events::NONE);
        }
        if header.flags.contains(Flags::SYN) && header.ack.is_none() {
            return if self.may_reopen(arrival) {
                Outcome::Reopen
            } else {
                Outcome::Answer(Reply::Challenge)
            };
        }
        let is_last = header.seq + arrival.sequence_length() == self.rcv_nxt;
        if header.flags.contains(Flags::FIN) && is_last {
            self.end = context.now + context.config.time_wait;
            return Outcome::Answer(Reply::Ack);
        }
        if arrival.sequence_length() == 0 && header.seq == self.rcv_nxt {
            return Outcome::Stay(Events::NONE);
        }
        // Two sides that disagree would answer each other for ever without a limit.
        Outcome::Answer(Reply::Challenge)
    }

    /// Whether a SYN begins a new connection (RFC 6191 §2): by a newer timestamp, or else by a
    /// sequence number above all of the old connection.
    fn may_reopen(&self, arrival: &Arrival<'_>) -> bool {
        let header = arrival.header;
        match (self.timestamps, header.options.timestamps) {
            (Some((last, _)), Some(new)) if new.value != last => {
                SeqNum(new.value).after(SeqNum(last))
            }
            (Some(_) | None, Some(_) | None) => header.seq.after(self.rcv_nxt),
        }
    }
}
