//! The send half of a synchronised connection: what may be sent, what must be sent again, and when.
//!
//! Spec: RFC 9293 §3.8, RFC 5681, RFC 6675, RFC 8985. Takes the acknowledgement part of each
//! segment and the expiry of timers; gives ranges to send. The bytes of a range are the caller's.
//!
//! - `acknowledge`: what an acknowledgement delivered, and round-trip times
//! - `recovery`: states of loss recovery
//! - `resize`: segments of another size
//! - `window`, `urgent`: the peer's window, silly windows, Nagle's algorithm
//! - `timer`: time-out, tail loss probe, reordering window, zero window
//! - `pace`: when data may leave
//! - `produce`: the next range

mod acknowledge;
mod pace;
mod produce;
mod recovery;
mod resize;
mod timer;
mod urgent;
mod window;

pub(crate) use acknowledge::{Ack, Echo};
pub(crate) use produce::{Limits, Part, Reason};
pub(crate) use timer::Expired;

use alloc::boxed::Box;

use saiga_wire::SeqNum;

use crate::congestion::{Algorithm, Congestion};
use crate::context::Context;
use crate::flight::Flight;
use crate::info::Info;
use crate::min_rtt::MinRtt;
use crate::path_mtu::PathMtu;
use crate::rack::Rack;
use crate::rtt::Rtt;
use crate::time::{Instant, Micros};
use crate::tlp::Tlp;
use recovery::Recovery;
use timer::Timers;
use window::PeerWindow;

/// The end of the stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fin {
    /// The application may write.
    Open,
    /// The application has closed; the FIN follows the last byte.
    Queued,
    /// The FIN was sent. It is acknowledged when `SND.UNA` is behind it.
    Sent,
}

/// The state of the send half.
#[derive(Debug, Clone)]
pub(crate) struct Sender {
    /// Bytes of payload in a full segment.
    mss: u16,
    /// Whether segments of this size were acknowledged.
    is_mss_proven: bool,
    /// What is known of a path that does not take the size agreed on.
    path: Option<Box<PathMtu>>,
    has_sack: bool,
    /// What was sent, from `SND.UNA` to `SND.NXT`.
    flight: Flight,
    /// The end of what the application has written.
    end: SeqNum,
    fin: Fin,
    /// The end of urgent data (`SND.UP`); not after `SND.UNA` if there is none.
    urgent: SeqNum,
    /// Whether the application has gone.
    is_abandoned: bool,
    window: PeerWindow,
    congestion: Congestion,
    rtt: Rtt,
    min_rtt: MinRtt,
    rack: Rack,
    tlp: Tlp,
    recovery: Recovery,
    /// Bytes that duplicate acknowledgements say have arrived, of a peer without selective ones.
    reno_sacked: u32,
    /// `SND.NXT` when the congestion window last held data back; below `SND.UNA` if that is over.
    limited_at: SeqNum,
    /// The last transmission.
    sent_at: Instant,
    timers: Timers,
    /// Segments that were sent again.
    retransmitted: u32,
    /// Expiries of the retransmission or of the zero window timer since the last progress.
    retries: u8,
    /// The same since the peer was heard.
    unanswered: u8,
    /// Pacing: microseconds after the last transmission before which no data leaves, and whether
    /// data waits for that.
    pace_gap_us: u32,
    is_pace_waiting: bool,
    /// ECN: the window was reduced for this much data, and the peer must learn of it.
    reduced_until: Option<SeqNum>,
    must_send_cwr: bool,
}

/// What a new sender knows.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SenderStart {
    /// `SND.UNA`: one above the initial sequence number.
    pub(crate) una: SeqNum,
    pub(crate) mss: u16,
    pub(crate) has_sack: bool,
    pub(crate) algorithm: Algorithm,
    /// The peer's window, and the numbers of the segment that announced it.
    pub(crate) window: u32,
    pub(crate) wl1: SeqNum,
    /// The round-trip time of the SYN, if it was sent once.
    pub(crate) rtt: Option<Micros>,
    /// Repetitions of the SYN, or of the SYN with its acknowledgement.
    pub(crate) syn_retries: u8,
    pub(crate) now: Instant,
}

impl Sender {
    pub(crate) fn new(start: &SenderStart) -> Self {
        let mut rtt = Rtt::default();
        let mut min_rtt = MinRtt::default();
        if let Some(sample) = start.rtt {
            rtt.on_sample(sample, 1);
            min_rtt.on_sample(sample, start.now);
        } else if start.syn_retries > 0 {
            rtt.after_lost_syn();
        }
        Self {
            mss: start.mss,
            is_mss_proven: false,
            path: None,
            has_sack: start.has_sack,
            flight: Flight::new(start.una),
            end: start.una,
            fin: Fin::Open,
            urgent: start.una,
            is_abandoned: false,
            window: PeerWindow::new(start.window, start.wl1, start.una),
            congestion: Congestion::new(start.algorithm, start.mss, start.syn_retries, start.una),
            rtt,
            min_rtt,
            rack: Rack::new(start.una),
            tlp: Tlp::default(),
            recovery: Recovery::Normal { dup_acks: 0 },
            reno_sacked: 0,
            limited_at: start.una - 1,
            sent_at: start.now,
            timers: Timers::NONE,
            retransmitted: 0,
            retries: 0,
            unanswered: 0,
            pace_gap_us: 0,
            is_pace_waiting: false,
            reduced_until: None,
            must_send_cwr: false,
        }
    }

    /// `SND.UNA`.
    pub(crate) fn una(&self) -> SeqNum {
        self.flight.una()
    }

    /// `SND.NXT`.
    pub(crate) fn nxt(&self) -> SeqNum {
        self.flight.nxt()
    }

    /// The end of what the application has written.
    pub(crate) fn end(&self) -> SeqNum {
        self.end
    }

    /// `MAX.SND.WND`.
    pub(crate) fn largest_window(&self) -> u32 {
        self.window.largest()
    }

    pub(crate) fn mss(&self) -> u16 {
        self.mss
    }

    /// Whether the application has closed.
    pub(crate) fn is_closed(&self) -> bool {
        self.fin != Fin::Open
    }

    /// Whether the FIN was sent, and whether it was acknowledged.
    pub(crate) fn is_fin_sent(&self) -> bool {
        self.fin == Fin::Sent
    }

    /// See `is_fin_sent`.
    pub(crate) fn is_fin_acked(&self) -> bool {
        self.fin == Fin::Sent && self.una() == self.end + 1
    }

    /// Whether all data and the FIN were acknowledged.
    pub(crate) fn is_idle(&self) -> bool {
        self.flight.is_empty() && self.nxt().at_or_after(self.end)
    }

    /// Adds bytes that the application has written. Does nothing after a close.
    pub(crate) fn on_write(&mut self, bytes: u32) {
        if self.fin == Fin::Open {
            self.end += bytes;
        }
    }

    /// The application has closed: a FIN follows the last byte.
    pub(crate) fn on_close(&mut self) {
        if self.fin == Fin::Open {
            self.fin = Fin::Queued;
        }
    }

    /// See [`crate::Connection::info`]. `rcv_wnd` is the receiver's.
    pub(crate) fn info(&self, rcv_wnd: u32, context: &Context<'_>) -> Info {
        Info {
            cwnd: self.congestion.cwnd(),
            ssthresh: self.congestion.ssthresh(),
            in_flight: self.pipe(),
            lost: self.flight.lost(),
            srtt: self.rtt.srtt(),
            rttvar: self.rtt.srtt().map(|_| self.rtt.rttvar()),
            rto: self.rtt.rto(&context.config.rto),
            snd_wnd: self.window.size(),
            rcv_wnd,
            mss: self.mss,
            retransmitted: self.retransmitted,
        }
    }

    /// Expiries of timers since the last progress, and since the peer was heard.
    pub(crate) fn unanswered(&self) -> u8 {
        self.retries.min(self.unanswered)
    }

    /// The application has gone.
    pub(crate) fn on_abandoned(&mut self) {
        self.is_abandoned = true;
    }

    /// The part of acknowledged sequence numbers that are bytes, not the FIN.
    fn bytes_of(&self, from: SeqNum, to: SeqNum) -> u32 {
        to.earlier_of(self.end.later_of(from)) - from
    }

    /// Bytes that are thought to be in the network.
    fn pipe(&self) -> u32 {
        self.flight.in_flight().saturating_sub(self.reno_sacked)
    }
}
