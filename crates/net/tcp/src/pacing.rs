//! Pacing: when the next data may leave, so that a window leaves over a round trip, not as a burst.
//!
//! No RFC defines the rate of TCP. This one is Linux's (`tcp_update_pacing_rate` in
//! net/ipv4/tcp_input.c): a window in a round trip, times 2 in the first half of slow start, in
//! which the window doubles, and times 1.2 otherwise, so that the window remains the limit.
//! Segments without data are not paced, nor are retransmissions by time-out and probes.

use crate::time::Micros;

/// Percent of the rate of a window in a round trip (`tcp_pacing_ss_ratio`, `tcp_pacing_ca_ratio`).
const SLOW_START: u64 = 200;
const AVOIDANCE: u64 = 120;
/// Data of this time leaves at once, so that a device can cut it (`tcp_tso_autosize`).
const BURST: Micros = Micros::from_millis(1);

/// The rate of a connection: `window` bytes in `time`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Rate {
    window: u64,
    time_us: u64,
}

impl Rate {
    /// The rate of a congestion window; `None` without a round-trip time.
    pub(crate) fn new(cwnd: u32, ssthresh: u32, srtt: Option<Micros>) -> Option<Self> {
        let is_doubling = cwnd < ssthresh / 2;
        let percent = if is_doubling { SLOW_START } else { AVOIDANCE };
        Some(Self {
            window: u64::from(cwnd.max(1)) * percent,
            time_us: srtt?.0 * 100,
        })
    }

    /// How long `bytes` occupy the path. `late`: how much later than allowed they leave, which
    /// makes up for half of the time at most.
    pub(crate) fn interval(&self, bytes: u32, late: Micros) -> Micros {
        let full = u64::from(bytes).saturating_mul(self.time_us) / self.window;
        Micros(full - late.0.min(full / 2))
    }

    /// Bytes that leave at once at most, at least two segments.
    pub(crate) fn burst(&self, mss: u16) -> u32 {
        let bytes = self.window * BURST.0 / self.time_us.max(1);
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
        bytes.max(2 * u32::from(mss))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rate(cwnd: u32, ssthresh: u32) -> Rate {
        Rate::new(cwnd, ssthresh, Some(Micros::from_millis(20))).expect("a rate")
    }

    #[test]
    fn a_window_leaves_in_half_a_round_trip_of_slow_start() {
        let late = Micros::ZERO;
        for (name, ssthresh, expected_us) in [
            ("first half of slow start", u32::MAX, 10_000),
            ("second half", 150_000, 16_666),
            ("avoidance", 50_000, 16_666),
        ] {
            let found = rate(100_000, ssthresh).interval(100_000, late);
            assert_eq!(found, Micros(expected_us), "{name}");
        }
        assert_eq!(Rate::new(100_000, u32::MAX, None), None);
    }

    #[test]
    fn what_leaves_late_waits_for_less_but_at_least_for_half() {
        let rate = rate(100_000, u32::MAX);
        for (late_us, expected_us) in [(0, 1000), (100, 900), (500, 500), (9000, 500)] {
            let found = rate.interval(10_000, Micros(late_us));
            assert_eq!(found, Micros(expected_us), "{late_us}");
        }
    }

    #[test]
    fn a_burst_is_a_millisecond_of_the_rate_or_two_segments() {
        assert_eq!(rate(1_000_000, u32::MAX).burst(1460), 100_000);
        assert_eq!(rate(10_000, u32::MAX).burst(1460), 2920);
    }

    #[test]
    fn extreme_rates_stay_in_bounds() {
        let slow = Rate::new(0, 0, Some(Micros(1 << 28))).expect("a rate");
        assert!(slow.interval(u32::MAX, Micros::ZERO) > Micros::from_secs(1));
        let fast = Rate::new(u32::MAX, u32::MAX, Some(Micros(0))).expect("a rate");
        assert_eq!(fast.interval(u32::MAX, Micros(1)), Micros::ZERO);
        assert_eq!(fast.burst(1460), u32::MAX);
    }
}
