//! Round-trip time and retransmission time-out.
//!
//! Spec: RFC 6298 §2 and §5.5, RFC 7323 §4.2 and appendix G. Takes samples; gives the smoothed time
//! and the time-out. The floor holds for the term of the variance, as in Linux (`tcp_rtt_estimator`
//! in net/ipv4/tcp_input.c): a time-out is then at least the floor longer than the round trip, so
//! that a delayed acknowledgement of the peer does not cause it.
//!
//! Deliberately absent: which segments may be timed (Karn's algorithm), see `ack`.

use crate::time::Micros;

/// Clock granularity `G` of RFC 6298: instants are microseconds, but drivers poll less often.
const GRANULARITY: Micros = Micros::from_millis(1);

/// Bounds of the time-out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// Least value of `4 * RTTVAR`. RFC 6298 §2.4 asks for a time-out of 1 s; Linux uses 200 ms.
    pub floor: Micros,
    /// Largest time-out, at least 60 s by RFC 6298 §2.5.
    pub ceiling: Micros,
    /// The time-out before the first sample (RFC 6298 §2.1).
    pub initial: Micros,
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            floor: Micros::from_millis(200),
            ceiling: Micros::from_secs(120),
            initial: Micros::from_secs(1),
        }
    }
}

/// The estimator: `SRTT` and `RTTVAR`, and how often the time-out was doubled.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Rtt {
    /// Eight times `SRTT` in microseconds; 0 before the first sample.
    scaled_srtt: u32,
    /// Four times `RTTVAR` in microseconds.
    scaled_rttvar: u32,
    /// Times that the time-out was doubled since the last sample (RFC 6298 §5.5).
    backoff: u8,
}

impl Rtt {
    /// Takes a sample. `expected` is the number of samples in a round trip: with timestamps, there
    /// is one for each acknowledgement, and each weighs accordingly less (RFC 7323 appendix G).
    pub(crate) fn on_sample(&mut self, sample: Micros, expected: u32) {
        // A sample of zero would read as "no sample"; above four minutes the fields would overflow.
        let sample = u32::try_from(sample.0)
            .unwrap_or(u32::MAX)
            .clamp(1, 1 << 28);
        self.backoff = 0;
        if self.scaled_srtt == 0 {
            self.scaled_srtt = sample * 8;
            self.scaled_rttvar = sample * 2;
            return;
        }
        let expected = expected.max(1);
        let srtt = self.scaled_srtt / 8;
        let deviation = srtt.abs_diff(sample);
        // RTTVAR moves by a quarter of the difference and SRTT by an eighth: with the scaled
        // fields, these are whole differences.
        self.scaled_rttvar = moved(
            self.scaled_rttvar,
            deviation,
            self.scaled_rttvar / 4,
            expected,
        );
        self.scaled_srtt = moved(self.scaled_srtt, sample, srtt, expected);
    }

    /// The smoothed round-trip time.
    pub(crate) fn srtt(&self) -> Option<Micros> {
        (self.scaled_srtt > 0).then_some(Micros(u64::from(self.scaled_srtt / 8)))
    }

    /// The mean deviation of the samples.
    pub(crate) fn rttvar(&self) -> Micros {
        Micros(u64::from(self.scaled_rttvar / 4))
    }

    /// The retransmission time-out with all doublings.
    pub(crate) fn rto(&self, bounds: &Bounds) -> Micros {
        self.base(bounds)
            .doubled(u32::from(self.backoff))
            .min(bounds.ceiling)
    }

    /// The retransmission time-out before doublings.
    fn base(&self, bounds: &Bounds) -> Micros {
        match self.srtt() {
            None => bounds.initial,
            Some(srtt) => {
                let variance = Micros(u64::from(self.scaled_rttvar));
                srtt + variance.max(GRANULARITY).max(bounds.floor)
            }
        }
    }

    /// Doubles the time-out after it expired.
    pub(crate) fn back_off(&mut self) {
        self.backoff = self.backoff.saturating_add(1);
    }

    /// Takes doublings back after a spurious time-out.
    pub(crate) fn undo_backoff(&mut self) {
        self.backoff = 0;
    }

    /// The time-out is 3 s for the data of a connection whose SYN was retransmitted without
    /// timestamps (RFC 6298 §5.7).
    pub(crate) fn after_lost_syn(&mut self) {
        *self = Self::default();
        const THREE_SECONDS: u32 = 3_000_000;
        // SRTT + 4 RTTVAR is 3 s.
        self.scaled_srtt = THREE_SECONDS / 3 * 8;
        self.scaled_rttvar = THREE_SECONDS / 3 * 2;
    }
}

/// `scaled` moved towards `sample` by their difference, which one of `expected` samples has.
fn moved(scaled: u32, sample: u32, present: u32, expected: u32) -> u32 {
    if sample >= present {
        scaled.saturating_add((sample - present) / expected)
    } else {
        scaled - ((present - sample) / expected).min(scaled)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MILLISECOND: u64 = 1000;

    fn millis(ms: u64) -> Micros {
        Micros::from_millis(ms)
    }

    #[test]
    fn the_first_sample_sets_both_estimates() {
        let mut rtt = Rtt::default();
        assert_eq!(rtt.rto(&Bounds::default()), Micros::from_secs(1));
        rtt.on_sample(millis(400), 1);
        assert_eq!((rtt.srtt(), rtt.rttvar()), (Some(millis(400)), millis(200)));
        // RTO = SRTT + 4 * RTTVAR.
        assert_eq!(rtt.rto(&Bounds::default()), millis(1200));
    }

    #[test]
    fn further_samples_move_the_estimates_by_an_eighth_and_a_quarter() {
        let mut rtt = Rtt::default();
        rtt.on_sample(millis(400), 1);
        rtt.on_sample(millis(800), 1);
        // RTTVAR = 3/4 * 200 + 1/4 * 400, SRTT = 7/8 * 400 + 1/8 * 800.
        assert_eq!((rtt.srtt(), rtt.rttvar()), (Some(millis(450)), millis(250)));
        rtt.on_sample(millis(50), 1);
        // RTTVAR = 3/4 * 250 + 1/4 * 400, SRTT = 7/8 * 450 + 1/8 * 50.
        assert_eq!(rtt.srtt(), Some(millis(400)));
        assert_eq!(rtt.rttvar(), Micros(287 * MILLISECOND + 500));
    }

    #[test]
    fn one_of_many_samples_in_a_round_trip_weighs_less() {
        let mut rtt = Rtt::default();
        rtt.on_sample(millis(400), 1);
        rtt.on_sample(millis(800), 10);
        assert_eq!(rtt.srtt(), Some(millis(405)));
    }

    #[test]
    fn the_time_out_is_longer_than_the_round_trip_by_the_floor() {
        let mut rtt = Rtt::default();
        for _ in 0..100 {
            rtt.on_sample(millis(30), 1);
        }
        assert_eq!(rtt.rto(&Bounds::default()), millis(230));
    }

    #[test]
    fn the_time_out_doubles_up_to_the_ceiling_and_a_sample_ends_that() {
        let mut rtt = Rtt::default();
        rtt.on_sample(millis(100), 1);
        let bounds = Bounds::default();
        let mut shown = [0; 11];
        for rto in &mut shown {
            *rto = rtt.rto(&bounds).as_millis();
            rtt.back_off();
        }
        let expected = [
            300, 600, 1200, 2400, 4800, 9600, 19_200, 38_400, 76_800, 120_000, 120_000,
        ];
        assert_eq!(shown, expected);
        for _ in 0..300 {
            rtt.back_off();
        }
        assert_eq!(rtt.rto(&bounds), Micros::from_secs(120));
        rtt.on_sample(millis(100), 1);
        assert_eq!((rtt.backoff, rtt.rto(&bounds)), (0, millis(300)));
    }

    #[test]
    fn a_lost_syn_makes_the_first_time_out_three_seconds() {
        let mut rtt = Rtt::default();
        rtt.back_off();
        rtt.after_lost_syn();
        assert_eq!(rtt.rto(&Bounds::default()), Micros::from_secs(3));
    }

    #[test]
    fn extreme_samples_stay_in_bounds() {
        let mut rtt = Rtt::default();
        rtt.on_sample(Micros(0), 1);
        assert_eq!(rtt.srtt(), Some(Micros(1)));
        for sample in [u64::MAX, 0, u64::MAX, u64::MAX] {
            rtt.on_sample(Micros(sample), 0);
            assert!(rtt.srtt().is_some());
            assert!(rtt.rto(&Bounds::default()) <= Micros::from_secs(120));
        }
    }
}
