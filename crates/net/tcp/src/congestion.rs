//! Congestion control: how many bytes may be in flight.
//!
//! Loss recovery tells this module what was acknowledged and lost; the module answers with the
//! congestion window. Two algorithms: CUBIC (RFC 9438) with HyStart++ (RFC 9406), the default, and
//! NewReno (RFC 5681 with the recovery of RFC 6675). Recovery itself reduces the window by PRR.
//!
//! All windows are bytes.

mod cubic;
mod hystart;
mod newreno;
pub(crate) mod prr;
#[cfg(test)]
mod tests;

use alloc::boxed::Box;

use saiga_wire::SeqNum;
use saiga_wire::tcp::SackBlock;

use crate::time::{Instant, Micros};
use crate::undo::Undo;
use cubic::Cubic;
use hystart::HyStart;
use newreno::NewReno;

/// The largest congestion window: half of the sequence space that a scaled window can address.
const MOST: u32 = 1 << 29;

/// The congestion control of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Algorithm {
    /// CUBIC with HyStart++ (RFC 9438, RFC 9406).
    #[default]
    Cubic,
    /// NewReno (RFC 5681).
    NewReno,
}

/// What one acknowledgement says.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Acked {
    /// Bytes that were newly acknowledged or selectively acknowledged.
    pub(crate) bytes: u32,
    /// The new `SND.UNA`, and `SND.NXT`.
    pub(crate) una: SeqNum,
    pub(crate) nxt: SeqNum,
    /// The round-trip time of the newest acknowledged segment, if that segment was sent once.
    pub(crate) rtt: Option<Micros>,
    pub(crate) srtt: Micros,
    /// Whether the window, not the application, limited what was in flight (RFC 7661 §3 and RFC
    /// 9438 §5.8: otherwise the window does not grow).
    pub(crate) is_limited: bool,
    pub(crate) now: Instant,
}

/// The congestion window and what decides its growth.
#[derive(Debug, Clone)]
pub(crate) struct Congestion {
    /// Congestion window.
    cwnd: u32,
    /// Slow start threshold; the largest number before the first loss.
    ssthresh: u32,
    /// Sender maximum segment size.
    mss: u16,
    control: Control,
    /// `cwnd` and `ssthresh` before the last reduction, for its undo.
    before: Option<Box<Before>>,
}

/// What decides the growth.
#[derive(Debug, Clone)]
enum Control {
    /// The first slow start of CUBIC: `ssthresh` was never set.
    HyStart(HyStart),
    Cubic(Cubic),
    NewReno(NewReno),
}

#[derive(Debug, Clone)]
struct Before {
    cwnd: u32,
    ssthresh: u32,
    control: Control,
    /// The retransmissions of the recovery that the reduction belongs to.
    undo: Option<Undo>,
}

impl Congestion {
    /// The state after the handshake. The initial window is that of RFC 6928 §2. It is one segment
    /// if the SYN or its acknowledgement was repeated more than once; as in Linux, one repetition
    /// does not count.
    pub(crate) fn new(algorithm: Algorithm, mss: u16, syn_retries: u8, iss: SeqNum) -> Self {
        Self {
            cwnd: if syn_retries > 1 {
                u32::from(mss)
            } else {
                initial_window(mss)
            },
            ssthresh: u32::MAX,
            mss,
            control: match algorithm {
                // RFC 9406 §4.3: HyStart++ is for the first slow start only.
                Algorithm::Cubic => Control::HyStart(HyStart::new(iss)),
                Algorithm::NewReno => Control::NewReno(NewReno::default()),
            },
            before: None,
        }
    }

    pub(crate) fn cwnd(&self) -> u32 {
        self.cwnd
    }

    pub(crate) fn ssthresh(&self) -> u32 {
        self.ssthresh
    }

    /// Full segments have another size from now on. The window is bytes and stays.
    pub(crate) fn set_mss(&mut self, mss: u16) {
        self.mss = mss;
    }

    pub(crate) fn is_slow_start(&self) -> bool {
        self.cwnd < self.ssthresh
    }

    /// Grows the window outside of recovery.
    pub(crate) fn on_ack(&mut self, acked: &Acked) {
        self.watch_delay(acked);
        if !acked.is_limited {
            self.pause(acked.now);
            return;
        }
        let mut bytes = acked.bytes;
        if self.is_slow_start() {
            bytes = self.slow_start(acked);
        }
        if bytes > 0 && !self.is_slow_start() {
            self.avoid(bytes, acked);
        }
        self.cwnd = self.cwnd.min(MOST);
    }

    /// Lets HyStart++ judge the round-trip time. The round ends first: the sample belongs to the
    /// next one.
    fn watch_delay(&mut self, acked: &Acked) {
        let Control::HyStart(hystart) = &mut self.control else {
            return;
        };
        if hystart.on_ack(acked.una, acked.nxt) {
            // RFC 9406 §4.2: after CSS_ROUNDS, congestion avoidance begins.
            self.ssthresh = self.cwnd;
            self.control = Control::Cubic(Cubic::default());
        } else if let Some(rtt) = acked.rtt {
            hystart.on_sample(rtt);
        }
    }

    /// Grows by the acknowledged bytes up to `ssthresh`; returns the bytes that are left for
    /// congestion avoidance.
    fn slow_start(&mut self, acked: &Acked) -> u32 {
        let growth = match &self.control {
            Control::HyStart(hystart) => hystart.growth(acked.bytes, self.mss),
            Control::Cubic(_) | Control::NewReno(_) => acked.bytes,
        };
        let room = self.ssthresh - self.cwnd;
        let used = growth.min(room);
        self.cwnd += used;
        growth - used
    }

    fn avoid(&mut self, bytes: u32, acked: &Acked) {
        let mss = u32::from(self.mss);
        self.cwnd = match &mut self.control {
            // No window reaches the threshold.
            Control::HyStart(_) => self.cwnd,
            Control::Cubic(cubic) => cubic.grow(self.cwnd, bytes, mss, acked.srtt, acked.now),
            Control::NewReno(newreno) => newreno.grow(self.cwnd, bytes, mss),
        };
    }

    /// The application limits the load, so that time does not count for CUBIC.
    fn pause(&mut self, now: Instant) {
        match &mut self.control {
            Control::Cubic(cubic) => cubic.pause(now),
            Control::HyStart(_) | Control::NewReno(_) => {}
        }
    }

    /// Reduces `ssthresh` at the begin of recovery or on ECN-Echo. The caller reduces `cwnd` by PRR
    /// or by [`Self::set_cwnd`].
    pub(crate) fn on_congestion(&mut self, in_flight: u32) {
        self.before = Some(Box::new(Before {
            cwnd: self.cwnd,
            ssthresh: self.ssthresh,
            control: self.control.clone(),
            undo: None,
        }));
        self.reduce(in_flight);
    }

    fn reduce(&mut self, in_flight: u32) {
        let least = 2 * u32::from(self.mss);
        // Data above a hole counts as in flight, so that this can be more than the window.
        let in_flight = in_flight.min(self.cwnd);
        let reduced = match &mut self.control {
            Control::HyStart(_) => {
                let mut cubic = Cubic::default();
                let reduced = cubic.reduce(self.cwnd, in_flight);
                self.control = Control::Cubic(cubic);
                reduced
            }
            Control::Cubic(cubic) => cubic.reduce(self.cwnd, in_flight),
            Control::NewReno(newreno) => newreno.reduce(in_flight),
        };
        self.ssthresh = reduced.max(least);
    }

    /// Sets the loss window of one segment after a retransmission time-out (RFC 5681 §3.1). Only
    /// the first time-out of a segment reduces `ssthresh`.
    pub(crate) fn on_timeout(&mut self, in_flight: u32, is_first: bool) {
        if is_first {
            self.on_congestion(in_flight);
        }
        match &mut self.control {
            Control::Cubic(cubic) => cubic.on_timeout(),
            Control::HyStart(_) | Control::NewReno(_) => {}
        }
        self.cwnd = u32::from(self.mss);
    }

    /// The window that PRR computes during recovery, or `ssthresh` at its end.
    pub(crate) fn set_cwnd(&mut self, cwnd: u32) {
        self.cwnd = cwnd.clamp(u32::from(self.mss), MOST);
    }

    /// Takes the last reduction back, because it was spurious (RFC 5682, RFC 2883, Eifel). The
    /// window does not become smaller than it is.
    pub(crate) fn undo(&mut self) {
        if let Some(before) = self.before.take() {
            self.cwnd = self.cwnd.max(before.cwnd);
            self.ssthresh = self.ssthresh.max(before.ssthresh);
            self.control = before.control;
        }
    }

    /// The last reduction begins a recovery from `una`, whose retransmissions are counted.
    pub(crate) fn watch(&mut self, una: SeqNum) {
        if let Some(before) = &mut self.before {
            before.undo.get_or_insert(Undo::new(una));
        }
    }

    /// Counts a retransmission of the recovery.
    pub(crate) fn on_retransmit(&mut self, start: SeqNum, end: SeqNum) {
        if let Some(undo) = self.undo_of_last() {
            undo.on_retransmit(start, end);
        }
    }

    /// Whether this report of a duplicate shows that the recovery was needless.
    pub(crate) fn is_needless(&mut self, duplicate: &SackBlock) -> bool {
        let undo = self.undo_of_last();
        undo.is_some_and(|undo| undo.on_duplicate(duplicate))
    }

    fn undo_of_last(&mut self) -> Option<&mut Undo> {
        self.before.as_mut()?.undo.as_mut()
    }

    /// Ends the chance of an undo.
    pub(crate) fn confirm(&mut self) {
        self.before = None;
    }

    /// After the connection was idle for longer than a time-out, the window is at most the initial
    /// one (RFC 5681 §4.1).
    pub(crate) fn on_idle(&mut self) {
        // RFC 2861 §3.1: slow start goes up to three quarters of the window that was reached.
        self.ssthresh = self.ssthresh.max(self.cwnd / 4 * 3);
        self.cwnd = self.cwnd.min(initial_window(self.mss));
    }
}

/// `min(10 * MSS, max(2 * MSS, 14600))` (RFC 6928 §2).
pub(crate) fn initial_window(mss: u16) -> u32 {
    let mss = u32::from(mss);
    (10 * mss).min((2 * mss).max(14_600))
}
