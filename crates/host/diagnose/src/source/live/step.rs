//! Steps of the wall clock.

use rustix::time::{ClockId, clock_gettime};

/// The wall clock beside a clock that cannot be set (`man 2 clock_gettime`).
#[derive(Debug)]
pub(super) struct WallClock {
    /// Wall clock minus CLOCK_BOOTTIME, in nanoseconds.
    distance_ns: i128,
    /// The largest change between two looks, with its sign.
    largest_ns: i128,
}

impl WallClock {
    pub(super) fn begin() -> Self {
        Self {
            distance_ns: distance_ns(),
            largest_ns: 0,
        }
    }

    /// Compares the clocks again.
    pub(super) fn look(&mut self) {
        self.see(distance_ns());
    }

    fn see(&mut self, now_ns: i128) {
        let step = now_ns - self.distance_ns;
        if step.abs() > self.largest_ns.abs() {
            self.largest_ns = step;
        }
        self.distance_ns = now_ns;
    }

    /// The largest step in seconds; negative if the clock was set back.
    pub(super) fn largest_step_s(&self) -> f64 {
        self.largest_ns as f64 / 1e9
    }
}

/// The wall clock is read between two readings of the other clock, because the process may be
/// interrupted between any two.
fn distance_ns() -> i128 {
    let ns = |clock| {
        let time = clock_gettime(clock);
        i128::from(time.tv_sec) * 1_000_000_000 + i128::from(time.tv_nsec)
    };
    let before = ns(ClockId::Boottime);
    let wall = ns(ClockId::Realtime);
    let after = ns(ClockId::Boottime);
    wall - i128::midpoint(before, after)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_step_is_kept_with_its_sign() {
        let mut clock = WallClock {
            distance_ns: 1_000,
            largest_ns: 0,
        };
        for now_ns in [1_500, 2_000_001_500, 1_500, 1_600] {
            clock.see(now_ns);
        }
        assert_eq!(clock.largest_step_s(), 2.0);
        clock.see(-3_000_000_000);
        assert!(clock.largest_step_s() < -2.9);
    }
}
