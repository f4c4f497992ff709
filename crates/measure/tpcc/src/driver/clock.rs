//! The clock of a run: microseconds since its start. Tests use a clock that jumps.

use std::fmt;
use std::thread;
use std::time::{Duration, Instant};

pub const SECOND_US: u64 = 1_000_000;

/// A source of time, and a way to wait. The threads of a run read the time only from it.
pub trait Clock: Send + Sync + fmt::Debug {
    /// Microseconds since the start of the run; 0 before the start.
    fn now_us(&self) -> u64;

    /// Waits until `at_us`. Returns earlier if `Thread::unpark` wakes the thread. The caller then
    /// checks whether the run is over.
    fn pause_until(&self, at_us: u64);
}

/// The monotonic system clock.
#[derive(Debug, Clone, Copy)]
pub struct WallClock {
    start: Instant,
}

impl WallClock {
    /// The clock of a run that starts at `start`, which may be in the future.
    #[must_use]
    pub fn starting_at(start: Instant) -> Self {
        Self { start }
    }
}

impl Clock for WallClock {
    fn now_us(&self) -> u64 {
        micros(Instant::now().saturating_duration_since(self.start))
    }

    fn pause_until(&self, at_us: u64) {
        let left =
            (self.start + Duration::from_micros(at_us)).saturating_duration_since(Instant::now());
        if !left.is_zero() {
            thread::park_timeout(left);
        }
    }
}

/// Converts a duration to whole microseconds; saturates at `u64::MAX`.
#[must_use]
pub fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

/// Converts microseconds to seconds.
#[must_use]
pub fn seconds(us: u64) -> f64 {
    us as f64 / SECOND_US as f64
}
