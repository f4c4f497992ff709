//! Points in time, as packets carry them, and the clock that never runs backwards.

use std::time::Duration;

/// Nanoseconds since the Unix epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Timestamp(pub u64);

impl Timestamp {
    /// The time from `earlier` until this one; zero if `earlier` is later.
    #[must_use]
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

/// A step backwards up to this size comes from packets that were written out of order: several
/// receive queues or interfaces. A larger one comes from a clock that was set.
const LARGEST_DISORDER_NS: u64 = 1_000_000_000;

/// Turns the times of packets into times that never decrease.
#[derive(Debug, Default)]
pub(crate) struct Clock {
    latest: Option<u64>,
    /// Sum of the large steps backwards, which is added to all later packets.
    shift: u64,
    pub(crate) steps_back: u64,
    pub(crate) largest_step_back_ns: u64,
}

impl Clock {
    pub(crate) fn advance(&mut self, at: Timestamp) -> Timestamp {
        let now = at.0.saturating_add(self.shift);
        let latest = self.latest.unwrap_or(now);
        let Some(step) = latest.checked_sub(now).filter(|step| *step > 0) else {
            self.latest = Some(now);
            return Timestamp(now);
        };
        self.steps_back += 1;
        self.largest_step_back_ns = self.largest_step_back_ns.max(step);
        if step > LARGEST_DISORDER_NS {
            self.shift = self.shift.saturating_add(step);
        }
        Timestamp(latest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_never_decreases() {
        let mut clock = Clock::default();
        let second = 1_000_000_000;
        for (packet, expected) in [
            (10 * second, 10 * second),
            (10 * second - 5, 10 * second),
            (11 * second, 11 * second),
            // The clock was set back by ten seconds; time goes on from there.
            (second, 11 * second),
            (2 * second, 12 * second),
        ] {
            assert_eq!(clock.advance(Timestamp(packet)), Timestamp(expected));
        }
        assert_eq!(
            (clock.steps_back, clock.largest_step_back_ns),
            (2, 10 * second)
        );
    }
}
