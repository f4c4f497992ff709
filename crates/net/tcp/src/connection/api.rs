//! The calls of the caller: segments to send, time-outs, and what the application does.

use saiga_wire::tcp::{Flags, Header};

use super::{Connection, Phase, Reply, Settings};
use crate::context::Context;
use crate::event::{CloseReason, Events};
use crate::handshake::{syn_ack, timestamp};
use crate::time::Instant;
use crate::time_wait::TimeWait;
use crate::transmit::{Transmit, reset};

impl Connection {
    /// The next segment to send, until there is none. `most` is the largest payload that the device
    /// divides into segments (TSO); 0 if it divides none.
    pub fn transmit(&mut self, most: u32, context: &mut Context<'_>) -> Option<Transmit> {
        if let Some(reply) = self.reply(context) {
            return Some(reply);
        }
        match &mut self.phase {
            Phase::SynSent(state) if state.due <= context.now => {
                let header = state.header(context);
                context.counters.out_segs += 1;
                state.on_sent(context);
                Some(bare(header))
            }
            Phase::SynReceived(state) if state.due <= context.now => {
                let echo = (state.irs + 1, state.ts_recent);
                let header = syn_ack(
                    context.config,
                    &state.start,
                    &state.agreed,
                    echo,
                    context.now,
                );
                context.counters.out_segs += 1;
                state.on_sent(context);
                Some(bare(header))
            }
            Phase::Open(open) => open.transmit(most, &self.settings, context),
            Phase::TimeWait(state) if state.is_ack_due => {
                state.is_ack_due = false;
                Some(bare(state.header(context.now)))
            }
            Phase::SynSent(_)
            | Phase::SynReceived(_)
            | Phase::TimeWait(_)
            | Phase::Closed { .. } => None,
        }
    }

    /// The answer to a segment that was not acceptable.
    fn reply(&mut self, context: &mut Context<'_>) -> Option<Transmit> {
        if let Phase::Closed { reset: numbers } = &mut self.phase {
            let (seq, ack) = numbers.take()?;
            return Some(bare(reset(seq, Some(ack))));
        }
        let reply = core::mem::take(&mut self.reply);
        match (reply, &mut self.phase) {
            (Reply::None | Reply::Challenge, _) => None,
            (Reply::Rst(seq), _) => Some(bare(reset(seq, None))),
            (Reply::Ack, Phase::Open(open)) => Some(open.answer(context)),
            (Reply::Ack, Phase::TimeWait(state)) => {
                state.is_ack_due = false;
                Some(bare(state.header(context.now)))
            }
            (Reply::Ack, Phase::SynReceived(state)) => Some(bare(state.acknowledgement(context))),
            (Reply::Ack, Phase::SynSent(_) | Phase::Closed { .. }) => None,
        }
    }

    /// The instant at which [`Self::on_timeout`] must be called, if no segment or call changes
    /// that.
    #[must_use]
    pub fn next_timeout(&self, context: &Context<'_>) -> Option<Instant> {
        match &self.phase {
            Phase::SynSent(state) => {
                let end = state.ends_at(&self.settings);
                Some(end.map_or(state.due, |end| end.min(state.due)))
            }
            Phase::SynReceived(state) => Some(state.due),
            Phase::Open(open) => open.next_timeout(&self.settings, context).get(),
            Phase::TimeWait(state) => Some(state.end),
            Phase::Closed { .. } => None,
        }
    }

    /// Handles what is due now. Calls that come too early do nothing.
    pub fn on_timeout(&mut self, context: &mut Context<'_>) -> Events {
        let now = context.now;
        let before = self.unanswered();
        let path_retries = context.config.path_retries;
        let reason = match &mut self.phase {
            Phase::SynSent(state) if state.ends_at(&self.settings).is_some_and(|at| at <= now) => {
                Some(CloseReason::TimedOut)
            }
            Phase::SynSent(state) if state.due <= now => state.on_timeout(context),
            Phase::SynReceived(state) if state.due <= now => state.on_timeout(context),
            Phase::Open(open) => open.on_timeout(&self.settings, context),
            Phase::TimeWait(state) if state.end <= now => Some(CloseReason::Finished),
            Phase::SynSent(_)
            | Phase::SynReceived(_)
            | Phase::TimeWait(_)
            | Phase::Closed { .. } => None,
        };
        match reason {
            None => Events {
                is_doubtful: before < path_retries && path_retries <= self.unanswered(),
                ..Events::NONE
            },
            Some(mut reason) => {
                // A handshake ends silently; a peer that was there once is reset.
                let mut reset = None;
                if reason == CloseReason::TimedOut && matches!(self.phase, Phase::Open(_)) {
                    reset = self.reset_numbers();
                    reason = self.soft_error().unwrap_or(reason);
                }
                self.end(reason, reset, context)
            }
        }
    }

    /// Retransmissions since the peer was heard.
    fn unanswered(&self) -> u8 {
        match &self.phase {
            Phase::SynSent(state) => state.retries,
            Phase::SynReceived(state) => state.retries,
            Phase::Open(open) => open.unanswered(),
            Phase::TimeWait(_) | Phase::Closed { .. } => 0,
        }
    }

    /// The application has put `bytes` more bytes into the send buffer.
    pub fn on_write(&mut self, bytes: u32, context: &mut Context<'_>) {
        if let Phase::Open(open) = &mut self.phase {
            open.on_write(bytes, context);
        } else if let Some(early) = self.phase.early() {
            early.on_write(bytes);
        }
    }

    /// As [`Self::on_write`]; the last of the bytes is urgent: `send(MSG_OOB)`. The urgent pointer
    /// names the byte behind it (RFC 6093 §3.1).
    pub fn on_write_urgent(&mut self, bytes: u32, context: &mut Context<'_>) {
        if let Phase::Open(open) = &mut self.phase {
            open.on_write_urgent(bytes, context);
        } else if let Some(early) = self.phase.early() {
            early.on_write_urgent(bytes);
        }
    }

    /// The application has taken `bytes` from the front of the receive buffer.
    pub fn on_read(&mut self, bytes: u32) {
        if let Phase::Open(open) = &mut self.phase {
            open.on_read(bytes);
        }
    }

    /// The application will not write any more: `shutdown(SHUT_WR)`. A FIN follows the data.
    pub fn shutdown(&mut self, context: &mut Context<'_>) {
        if let Phase::Open(open) = &mut self.phase {
            open.on_shutdown(context);
        } else if let Some(early) = self.phase.early() {
            early.on_shutdown();
        }
    }

    /// The application has gone: `close()`. The connection ends in order, or with a reset if data
    /// was not read, even if the peer has sent its FIN and would not be reset by [`Self::abort`].
    pub fn close(&mut self, context: &mut Context<'_>) -> Events {
        let must_reset = match &mut self.phase {
            Phase::Open(open) => open.on_close(context),
            Phase::SynReceived(state) => {
                state.early.on_close();
                false
            }
            Phase::SynSent(_) => return self.end(CloseReason::Aborted, None, context),
            Phase::TimeWait(_) | Phase::Closed { .. } => false,
        };
        if must_reset {
            return self.end(CloseReason::Aborted, self.reset_numbers(), context);
        }
        Events::NONE
    }

    /// Ends the connection at once, with a reset if the peer can still send or wait for data (RFC
    /// 9293 §3.10.5).
    pub fn abort(&mut self, context: &mut Context<'_>) -> Events {
        let is_closing = matches!(&self.phase, Phase::Open(open) if open.is_closing());
        let reset = self.reset_numbers().filter(|_| !is_closing);
        self.end(CloseReason::Aborted, reset, context)
    }

    /// Whether the connection waits for the acknowledgement of its SYN-ACK, and the segment
    /// acknowledges another number: perhaps that of a SYN cookie, which answered an earlier SYN.
    #[must_use]
    pub fn is_acknowledged_elsewhere(&self, header: &Header) -> bool {
        let Phase::SynReceived(state) = &self.phase else {
            return false;
        };
        let is_other = header.ack.is_some_and(|ack| ack != state.start.iss + 1);
        is_other && !header.flags.intersects(Flags::SYN | Flags::RST)
    }

    /// The receive buffer has another size in bytes. What was announced to the peer stays valid, so
    /// a smaller buffer must still have room for it, except for what
    /// [`Place::room`](crate::Place::room) refuses.
    pub fn resize(&mut self, buffer: u32) {
        if let Phase::Open(open) = &mut self.phase {
            open.resize(buffer);
        }
    }

    /// Bytes that the application has not read up to the end of urgent data, if there is any
    /// (`man 3 sockatmark`).
    #[must_use]
    pub fn urgent_ahead(&self) -> Option<u32> {
        match &self.phase {
            Phase::Open(open) => open.urgent_ahead(),
            Phase::SynSent(_)
            | Phase::SynReceived(_)
            | Phase::TimeWait(_)
            | Phase::Closed { .. } => None,
        }
    }

    /// Changes the settings of the application.
    pub fn set(&mut self, settings: Settings) {
        self.settings = settings;
    }
}

impl TimeWait {
    /// The acknowledgement of the peer's FIN.
    fn header(&self, now: Instant) -> Header {
        let timestamps = self
            .timestamps
            .map(|(echo, offset)| saiga_wire::tcp::Timestamps {
                value: timestamp(offset, now),
                echo,
            });
        Header {
            window: self.window,
            flags: saiga_wire::tcp::Flags::NONE,
            options: saiga_wire::tcp::Options {
                timestamps,
                ..saiga_wire::tcp::Options::NONE
            },
            ..reset(self.snd_nxt, Some(self.rcv_nxt))
        }
    }
}

/// A segment without data.
fn bare(header: Header) -> Transmit {
    Transmit {
        header,
        offset: 0,
        length: 0,
        mss: u16::MAX,
        is_ecn_capable: false,
    }
}
