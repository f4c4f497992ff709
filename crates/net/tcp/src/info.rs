//! The state of a connection as numbers, like the structure of TCP_INFO.

use crate::connection::{Connection, Phase};
use crate::context::Context;
use crate::time::Micros;

/// Numbers of a synchronised connection (`man 7 tcp`: TCP_INFO). All windows are bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Info {
    /// Congestion window.
    pub cwnd: u32,
    /// Slow start threshold; `u32::MAX` before the first reduction.
    pub ssthresh: u32,
    /// Bytes that are thought to be in the network: `pipe` of RFC 6675.
    pub in_flight: u32,
    /// Bytes that were given up and not sent again yet.
    pub lost: u32,
    /// Smoothed round-trip time, after the first sample.
    pub srtt: Option<Micros>,
    /// Mean deviation of the round-trip time, after the first sample.
    pub rttvar: Option<Micros>,
    /// Retransmission time-out with all doublings.
    pub rto: Micros,
    /// The window that the peer has announced: `SND.WND`.
    pub snd_wnd: u32,
    /// The window that was announced to the peer: `RCV.WND`.
    pub rcv_wnd: u32,
    /// Bytes of payload in a full segment.
    pub mss: u16,
    /// Segments that were sent again, probes of a loss included (`tcpi_total_retrans`).
    pub retransmitted: u32,
}

impl Connection {
    /// The numbers; `None` before the handshake is complete and after both FINs.
    #[must_use]
    pub fn info(&self, context: &Context<'_>) -> Option<Info> {
        match &self.phase {
            Phase::Open(open) => Some(open.info(context)),
            Phase::SynSent(_)
            | Phase::SynReceived(_)
            | Phase::TimeWait(_)
            | Phase::Closed { .. } => None,
        }
    }
}
