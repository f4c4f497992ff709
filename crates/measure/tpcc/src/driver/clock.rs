//! Time of a run: microseconds since its start, so that a test can let it jump.

use std::fmt;
use std::thread;
use std::time::{Duration, Instant};

/// Microseconds of a second.
pub const SECOND_US: u64 = 1_000_000;

/// What time it is, and a way to let it pass.
pub trait Clock: Send + Sync + fmt::Debug {
    /// Microseconds since the start of the run; 0 before it.
    fn now_us(&self) -> u64;

    /// Lets time pass until `at_us`, or less: a thread may be woken early by `Thread::unpark`, and
    /// then looks whether the run is over.
    fn pause_until(&self, at_us: u64);
}

/// The clock on the wall.
#[derive(Debug, Clone, Copy)]
pub struct WallClock {
    start: Instant,
}

impl WallClock {
    /// The run starts at `start`, which may be in the future.
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

/// A duration in whole microseconds.
#[must_use]
pub fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

/// Microseconds as seconds.
#[must_use]
pub fn seconds(us: u64) -> f64 {
    us as f64 / SECOND_US as f64
}
