//! How large a segment the path takes: path MTU discovery and the search after a black hole.
//!
//! Spec: RFC 1191 and RFC 8201 (errors by ICMP), RFC 5927 §7.2 (their delayed acceptance), RFC 4821
//! §7 and RFC 8899 (search by probes), Linux's `tcp_mtu_probing`. Takes claims of routers,
//! time-outs and answers to probes; tells the size of segments to use and of the next probe.
//!
//! All sizes are payloads of full segments in bytes. The caller keeps the present size, which is
//! the lower end of the search.

#[cfg(test)]
mod tests;

use saiga_wire::SeqNum;

use crate::time::{Instant, Micros, OptionalInstant};

/// Timeouts in a row after which a path that drops large segments silently is suspected
/// (`tcp_retries1`).
pub(crate) const SUSPICIOUS: u8 = 3;
/// The first size that a path without such errors is thought to take (`tcp_base_mss`).
const BASE: u16 = 1024;
/// The search ends at this distance (`tcp_probe_threshold`).
const STEP: u16 = 8;
/// When larger sizes are tried again (RFC 1191 §6.3, `tcp_probe_interval`).
const RAISE_AFTER: Micros = Micros::from_secs(600);

/// What is known of a path that does not take segments of the size agreed on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PathMtu {
    /// The size agreed on in the handshake.
    ceiling: u16,
    /// The largest size that is worth a probe.
    high: u16,
    /// Whether `high` itself was tried. It comes first, because most time-outs have other causes.
    is_high_tried: bool,
    /// A claim that contradicts acknowledgements: it holds if a time-out follows.
    claim: Option<Claim>,
    /// The probe in flight.
    probe: Option<Probe>,
    raise_at: OptionalInstant,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Claim {
    size: u16,
    seq: SeqNum,
}

/// A segment that is larger than the present size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Probe {
    pub(crate) start: SeqNum,
    pub(crate) size: u16,
}

impl Probe {
    pub(crate) fn end(&self) -> SeqNum {
        self.start + u32::from(self.size)
    }

    fn covers(&self, seq: SeqNum) -> bool {
        seq.in_window(self.start, u32::from(self.size))
    }
}

/// What a router's claim leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// The claim says nothing new, or has to wait for a time-out.
    Ignore,
    /// This size from now on.
    Shrink(u16),
    /// The present size stays, and the probe is lost.
    ProbeLost(Probe),
}

impl PathMtu {
    /// A path that is thought to take segments of `size`.
    pub(crate) fn new(size: u16) -> Self {
        Self {
            ceiling: size,
            high: size,
            is_high_tried: false,
            claim: None,
            probe: None,
            raise_at: OptionalInstant::NONE,
        }
    }

    /// Takes the claim of a router that the segment at `seq` was too big. `is_proven`: segments of
    /// the present size were acknowledged. Such a claim can be true if the route has changed; it
    /// waits until a time-out confirms it, because it is more likely forged.
    pub(crate) fn on_claim(
        &mut self,
        (size, seq): (u16, SeqNum),
        present: u16,
        is_proven: bool,
        now: Instant,
    ) -> Verdict {
        if let Some(probe) = self.probe.filter(|probe| probe.covers(seq))
            && size < probe.size
        {
            self.on_probe_lost(now);
            self.high = self.high.min(size.max(present));
            return Verdict::ProbeLost(probe);
        }
        if size >= present {
            return Verdict::Ignore;
        }
        if is_proven {
            self.claim = Some(Claim { size, seq });
            return Verdict::Ignore;
        }
        self.accept(size, now);
        Verdict::Shrink(size)
    }

    fn accept(&mut self, size: u16, now: Instant) {
        self.high = size;
        self.claim = None;
        self.raise_at = (now + RAISE_AFTER).into();
    }

    /// Takes a retransmission time-out. `is_suspicious`: several came in a row, for data that does
    /// not fit into a smaller segment. Returns the size from now on, at least `floor`.
    pub(crate) fn on_timeout(
        &mut self,
        present: u16,
        is_suspicious: bool,
        floor: u16,
        now: Instant,
    ) -> Option<u16> {
        if self.probe.is_some() {
            self.on_probe_lost(now);
        }
        if let Some(claim) = self.claim {
            self.accept(claim.size, now);
            return Some(claim.size);
        }
        is_suspicious
            .then(|| lower(present, floor))
            .filter(|lower| *lower < present)
    }

    /// `SND.UNA` has moved: returns the size of a probe that arrived. A claim about a segment that
    /// arrived was wrong.
    pub(crate) fn on_progress(&mut self, una: SeqNum, now: Instant) -> Option<u16> {
        self.claim = self.claim.filter(|claim| !una.after(claim.seq));
        let probe = self.probe.filter(|probe| una.at_or_after(probe.end()))?;
        self.probe = None;
        if probe.size < self.ceiling {
            self.raise_at = (now + RAISE_AFTER).into();
        }
        Some(probe.size)
    }

    /// The size of the next probe; `None` while one is in flight, or when the search is over.
    pub(crate) fn next_probe(&mut self, present: u16, now: Instant) -> Option<u16> {
        if self.probe.is_some() {
            return None;
        }
        if self.raise_at.has_come(now) {
            self.high = self.ceiling;
            self.is_high_tried = false;
            self.raise_at = OptionalInstant::NONE;
        }
        let distance = self.high.saturating_sub(present);
        if distance < STEP {
            return None;
        }
        Some(if self.is_high_tried {
            present + distance.div_ceil(2)
        } else {
            self.high
        })
    }

    pub(crate) fn on_probe_sent(&mut self, probe: Probe) {
        self.probe = Some(probe);
    }

    pub(crate) fn probe(&self) -> Option<Probe> {
        self.probe
    }

    /// The probe did not arrive, while other segments did.
    pub(crate) fn on_probe_lost(&mut self, now: Instant) {
        if let Some(probe) = self.probe.take() {
            self.high = self.high.min(probe.size - 1);
            self.is_high_tried = true;
            self.raise_at = (now + RAISE_AFTER).into();
        }
    }

    /// Whether the path takes what was agreed on, so that there is nothing left to know.
    pub(crate) fn is_over(&self, present: u16) -> bool {
        present >= self.ceiling && self.claim.is_none() && self.probe.is_none()
    }
}

/// The size below `present`.
fn lower(present: u16, floor: u16) -> u16 {
    let size = if present > BASE { BASE } else { present / 2 };
    size.max(floor)
}
