//! The end of slow start before it causes loss: HyStart++.
//!
//! Spec: RFC 9406 §4.2 and §4.3. Takes round-trip times and acknowledgements during the first slow
//! start; tells how much the window grows and when congestion avoidance begins. The limit `L` of
//! the growth is 8 segments, as for senders without pacing.

use saiga_wire::SeqNum;

use crate::time::Micros;

const MIN_RTT_THRESH: u32 = 4_000;
const MAX_RTT_THRESH: u32 = 16_000;
const MIN_RTT_DIVISOR: u32 = 8;
const N_RTT_SAMPLE: u8 = 8;
const CSS_GROWTH_DIVISOR: u32 = 4;
const CSS_ROUNDS: u8 = 5;
const LIMIT: u32 = 8;
/// No sample yet.
const INFINITE: u32 = u32::MAX;

/// Times in microseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct HyStart {
    window_end: SeqNum,
    last_round_min: u32,
    current_round_min: u32,
    samples: u8,
    /// Rounds of conservative slow start, of which the present one is the last.
    css_rounds: u8,
    /// The least time of the round before conservative slow start; `None` in slow start.
    css_baseline: Option<u32>,
}

impl HyStart {
    pub(super) fn new(iss: SeqNum) -> Self {
        Self {
            window_end: iss,
            last_round_min: INFINITE,
            current_round_min: INFINITE,
            samples: 0,
            css_rounds: 0,
            css_baseline: None,
        }
    }

    /// Takes a round-trip time and decides between slow start and conservative slow start.
    pub(super) fn on_sample(&mut self, rtt: Micros) {
        let rtt = u32::try_from(rtt.0).unwrap_or(INFINITE);
        self.current_round_min = self.current_round_min.min(rtt);
        self.samples = self.samples.saturating_add(1);
        if self.samples < N_RTT_SAMPLE {
            return;
        }
        match self.css_baseline {
            None => {
                if self.last_round_min == INFINITE {
                    return;
                }
                let threshold =
                    (self.last_round_min / MIN_RTT_DIVISOR).clamp(MIN_RTT_THRESH, MAX_RTT_THRESH);
                if self.current_round_min >= self.last_round_min.saturating_add(threshold) {
                    self.css_baseline = Some(self.current_round_min);
                    self.css_rounds = 0;
                }
            }
            // The rise was spurious: back to slow start.
            Some(baseline) if self.current_round_min < baseline => self.css_baseline = None,
            Some(_) => {}
        }
    }

    /// Bytes by which the window grows for acknowledged bytes.
    pub(super) fn growth(&self, bytes: u32, mss: u16) -> u32 {
        let growth = bytes.min(LIMIT * u32::from(mss));
        match self.css_baseline {
            None => growth,
            Some(_) => growth / CSS_GROWTH_DIVISOR,
        }
    }

    /// Ends a round when `una` passes its end. Returns whether slow start ends for good.
    pub(super) fn on_ack(&mut self, una: SeqNum, nxt: SeqNum) -> bool {
        if !una.after(self.window_end) {
            return false;
        }
        self.last_round_min = self.current_round_min;
        self.current_round_min = INFINITE;
        self.samples = 0;
        self.window_end = nxt;
        if self.css_baseline.is_some() {
            self.css_rounds += 1;
        }
        self.css_rounds >= CSS_ROUNDS && self.css_baseline.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether eight samples of `present` in a round end slow start after a round of `last`.
    fn ends_slow_start(last_ms: u64, present_ms: u64) -> bool {
        let mut hystart = HyStart::new(SeqNum(0));
        hystart.on_sample(Micros::from_millis(last_ms));
        assert!(!hystart.on_ack(SeqNum(1000), SeqNum(9000)));
        for _ in 0..N_RTT_SAMPLE {
            hystart.on_sample(Micros::from_millis(present_ms));
        }
        hystart.growth(4000, 1000) == 1000
    }

    /// RFC 9406 §4.2: an eighth of the round trip, at least 4 ms and at most 16 ms.
    #[test]
    fn the_threshold_is_an_eighth_within_bounds() {
        for (last_ms, least_ms) in [(1, 5), (20, 24), (80, 90), (400, 416)] {
            assert!(!ends_slow_start(last_ms, least_ms - 1), "{last_ms} ms");
            assert!(ends_slow_start(last_ms, least_ms), "{last_ms} ms");
        }
    }
}
