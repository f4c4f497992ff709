//! Errors that ICMP reports about segments of the connection.
//!
//! Spec: RFC 5927 §4.1 (the quoted number must be one that is not acknowledged) and §5.2 (no error
//! ends a synchronised connection), RFC 9293 §3.9.2.2, RFC 1122 §4.2.3.9, RFC 6633 (source quench
//! is ignored). Any host can send such a message, so an error is a hint: it is noted, and it is the
//! reason that the application gets if the connection later times out. As in Linux
//! (`tcp_v4_err` in net/ipv4/tcp_ipv4.c), every error ends a handshake, also a soft one.

use saiga_wire::SeqNum;

use super::{Connection, Phase};
use crate::context::Context;
use crate::event::{CloseReason, Events};

/// What an ICMP message says about a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IcmpError {
    /// The segment did not reach the host: network or host unreachable, prohibited, TTL exceeded.
    Unreachable,
    /// The host refused the segment: protocol or port unreachable.
    Refused,
    /// Source quench: ignored.
    SourceQuench,
    /// Packet too big, or fragmentation needed (RFC 8201, RFC 1191).
    TooBig {
        /// The MTU of the link without IP and TCP headers, as in [`crate::Config::mss`]; 0 if the
        /// router does not tell.
        mss: u16,
    },
}

impl IcmpError {
    /// The reason that the application gets.
    fn reason(self) -> Option<CloseReason> {
        match self {
            Self::Unreachable => Some(CloseReason::Unreachable),
            Self::Refused => Some(CloseReason::Refused),
            Self::SourceQuench | Self::TooBig { .. } => None,
        }
    }
}

impl Connection {
    /// Takes an ICMP error about a segment of this connection. `seq` is the sequence number of the
    /// segment, from the quote in the message.
    pub fn on_icmp(&mut self, error: IcmpError, seq: SeqNum, context: &mut Context<'_>) -> Events {
        if !self.has_in_flight(seq) {
            context.counters.out_of_window_icmps += 1;
            return Events::NONE;
        }
        if let (IcmpError::TooBig { mss }, Phase::Open(open)) = (error, &mut self.phase) {
            open.on_too_big(mss, seq, context);
        }
        let Some(reason) = error.reason() else {
            return Events::NONE;
        };
        match &mut self.phase {
            Phase::SynSent(_) | Phase::SynReceived(_) => return self.end(reason, None, context),
            Phase::Open(open) => open.on_soft_error(reason),
            Phase::TimeWait(_) | Phase::Closed { .. } => {}
        }
        Events::NONE
    }

    /// The caller knows what the path takes, from its device or from another connection: the MTU
    /// without IP and TCP headers, as in [`crate::Config::mss`]. Larger segments in flight are sent
    /// again. Does nothing before the handshake is complete.
    pub fn on_path_mtu(&mut self, mss: u16, context: &mut Context<'_>) {
        if let Phase::Open(open) = &mut self.phase {
            open.on_path_mtu(mss, context);
        }
    }

    /// Whether the number is that of a segment that the peer has not acknowledged.
    fn has_in_flight(&self, seq: SeqNum) -> bool {
        match &self.phase {
            Phase::SynSent(state) => seq == state.start.iss,
            Phase::SynReceived(state) => seq == state.start.iss,
            Phase::Open(open) => open.has_in_flight(seq),
            Phase::TimeWait(_) | Phase::Closed { .. } => false,
        }
    }

    /// The last error that ICMP reported since the peer acknowledged something: what `SO_ERROR`
    /// tells while the connection lives, and why a time-out ends it.
    #[must_use]
    pub fn soft_error(&self) -> Option<CloseReason> {
        match &self.phase {
            Phase::Open(open) => open.soft_error(),
            Phase::SynSent(_)
            | Phase::SynReceived(_)
            | Phase::TimeWait(_)
            | Phase::Closed { .. } => None,
        }
    }
}
