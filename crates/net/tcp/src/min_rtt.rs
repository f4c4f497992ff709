//! The least round-trip time of the last minutes, which RACK's reordering window is a part of.
//!
//! Spec: RFC 8985 §6.2 step 1, which leaves the window open; Linux uses 300 s. Two periods of half
//! a window each are kept: the minimum of both is that of the last half to whole window.

use crate::time::{Instant, Micros};

/// Length of a period in seconds.
const PERIOD: u32 = 150;

/// A minimum that forgets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct MinRtt {
    /// Microseconds in the last and in the present period.
    last: u32,
    present: u32,
    /// Start of the present period, in seconds.
    began: u32,
}

impl Default for MinRtt {
    fn default() -> Self {
        Self {
            last: u32::MAX,
            present: u32::MAX,
            began: 0,
        }
    }
}

impl MinRtt {
    pub(crate) fn on_sample(&mut self, sample: Micros, now: Instant) {
        let sample = u32::try_from(sample.0).unwrap_or(u32::MAX).max(1);
        let now = now.whole_seconds();
        let age = now.wrapping_sub(self.began);
        if age >= PERIOD {
            self.last = if age >= 2 * PERIOD {
                u32::MAX
            } else {
                self.present
            };
            self.present = u32::MAX;
            self.began = now;
        }
        self.present = self.present.min(sample);
    }

    /// The minimum, once there is a sample.
    pub(crate) fn get(&self) -> Option<Micros> {
        let least = self.last.min(self.present);
        (least < u32::MAX).then_some(Micros(u64::from(least)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_minimum_is_forgotten_after_two_periods() {
        let mut min = MinRtt::default();
        assert_eq!(min.get(), None);
        let mut at = |seconds: u64, millis: u64| {
            min.on_sample(Micros::from_millis(millis), Instant(seconds * 1_000_000));
            min.get().map(Micros::as_millis)
        };
        assert_eq!(at(1000, 40), Some(40));
        assert_eq!(at(1010, 50), Some(40));
        assert_eq!(at(1160, 50), Some(40));
        assert_eq!(at(1320, 50), Some(50));
        // A long pause makes both periods old.
        assert_eq!(at(5000, 90), Some(90));
    }
}
