//! Segments of another size: what path MTU discovery decides, applied to the scoreboard.
//!
//! Spec: RFC 1191 §6.2 and RFC 5927 §7 (what was too big is sent again at once; congestion control
//! does not react), RFC 4821 §7.4 to §7.7 (probes, and their loss).

use alloc::boxed::Box;

use saiga_wire::SeqNum;

use super::Sender;
use super::produce::{Part, Reason};
use super::recovery::Recovery;
use crate::context::Context;
use crate::path_mtu::{PathMtu, Probe, SUSPICIOUS, Verdict};
use crate::time::{Instant, OptionalInstant};

/// Full segments that must follow a probe, so that acknowledgements tell its loss.
const FOLLOWERS: u32 = 3;

impl Sender {
    /// A router says that the segment at `seq` was too big, and that full segments of `size` bytes
    /// are not.
    pub(crate) fn on_too_big(&mut self, size: u16, seq: SeqNum, context: &mut Context<'_>) {
        self.on_claim((size, seq), self.is_mss_proven, context);
    }

    /// As [`Self::on_too_big`], from a source that cannot be forged.
    pub(crate) fn on_path_mtu(&mut self, size: u16, context: &mut Context<'_>) {
        self.on_claim((size, self.una()), false, context);
    }

    fn on_claim(&mut self, (size, seq): (u16, SeqNum), is_proven: bool, context: &mut Context<'_>) {
        let floor = context.config.least_path_mss.min(self.mss);
        let size = size.max(floor);
        let (present, now) = (self.mss, context.now);
        let path = self.path();
        match path.on_claim((size, seq), present, is_proven, now) {
            Verdict::Ignore => {}
            Verdict::Shrink(size) => {
                self.set_mss(size, false);
                let most = u32::from(size);
                self.flight.mark_lost(|start, sent| sent.end - start > most);
                self.resend(context);
            }
            Verdict::ProbeLost(probe) => {
                context.counters.mtu_probe_fails += 1;
                self.flight.lose(probe.start, probe.end());
                self.resend(context);
            }
        }
        self.forget_path();
    }

    /// The knowledge of the path, which only few connections have.
    fn path(&mut self) -> &mut PathMtu {
        let mss = self.mss;
        self.path.get_or_insert_with(|| Box::new(PathMtu::new(mss)))
    }

    fn forget_path(&mut self) {
        let mss = self.mss;
        if self.path.as_ref().is_some_and(|path| path.is_over(mss)) {
            self.path = None;
        }
    }

    fn set_mss(&mut self, mss: u16, is_proven: bool) {
        self.mss = mss;
        self.is_mss_proven = is_proven;
        self.congestion.set_mss(mss);
    }

    /// Sends lost data again without a reduction of the window, unless a recovery does so already.
    fn resend(&mut self, context: &Context<'_>) {
        if self.flight.lost() == 0 || !self.recovery.is_normal() {
            return;
        }
        self.tlp.reset();
        self.timers.probe = OptionalInstant::NONE;
        self.restart_rto(context);
        self.recovery = Recovery::Resize {
            recover: self.nxt(),
        };
    }

    /// A time-out has expired, and everything in flight is lost.
    pub(super) fn resize_after_timeout(&mut self, context: &mut Context<'_>) {
        // A peer that has taken its window back drops segments of any size, but it answers.
        let is_open = self.una().before(self.window_end());
        let tries = if is_open {
            self.retries
        } else {
            self.unanswered
        };
        let is_suspicious = context.config.has_mtu_probing
            && tries >= SUSPICIOUS
            && self.first_length() > u32::from(context.config.least_path_mss);
        if self.path.is_none() && !is_suspicious {
            return;
        }
        let floor = context.config.least_path_mss.min(self.mss);
        let (present, now) = (self.mss, context.now);
        let path = self.path();
        context.counters.mtu_probe_fails += u64::from(path.probe().is_some());
        if let Some(size) = path.on_timeout(present, is_suspicious, floor, now) {
            self.set_mss(size, false);
            self.congestion.set_cwnd(u32::from(size));
        }
        self.forget_path();
    }

    /// Bytes of the first range that is not acknowledged.
    fn first_length(&self) -> u32 {
        let first = self.flight.iter().next();
        first.map_or(0, |(start, sent)| sent.end - start)
    }

    /// `SND.UNA` has moved by `acked`. A segment of the present size was among what arrived if it
    /// is as large; several small ones look alike, which only delays the answer to a claim.
    pub(super) fn resize_after_progress(&mut self, acked: u32, context: &mut Context<'_>) {
        self.is_mss_proven |= acked >= u32::from(self.mss);
        let una = self.una();
        let Some(path) = &mut self.path else { return };
        if let Some(size) = path.on_progress(una, context.now) {
            context.counters.mtu_probe_successes += 1;
            self.set_mss(size, true);
        }
        self.forget_path();
    }

    /// Looks whether a loss is that of a probe alone, which says nothing about congestion.
    pub(super) fn resize_after_loss(&mut self, context: &mut Context<'_>) {
        let flight = &self.flight;
        let probe = self.path.as_ref().and_then(|path| path.probe());
        let Some(probe) = probe.filter(|probe| flight.is_lost(probe.start)) else {
            return;
        };
        context.counters.mtu_probe_fails += 1;
        self.path().on_probe_lost(context.now);
        if self.flight.lost() <= u32::from(probe.size) {
            self.resend(context);
        }
    }

    /// A probe of a larger size, if one is due and there is enough to send behind it.
    pub(super) fn size_probe(&mut self, now: Instant) -> Option<Part> {
        let path = self.path.as_mut().filter(|_| self.recovery.is_normal())?;
        let size = path.next_probe(self.mss, now)?;
        let needed = u32::from(size) + FOLLOWERS * u32::from(self.mss);
        let room = self.congestion.cwnd().saturating_sub(self.pipe());
        let has_room = room >= u32::from(size) && self.congestion.cwnd() >= needed;
        if !has_room || self.unsent() < needed || self.usable_window() < needed {
            return None;
        }
        let start = self.nxt();
        if let Some(path) = &mut self.path {
            path.on_probe_sent(Probe { start, size });
        }
        Some(Part {
            start,
            length: u32::from(size),
            is_fin: false,
            reason: Reason::SizeProbe,
        })
    }
}
