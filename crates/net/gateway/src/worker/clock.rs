//! The present for stacks: microseconds of the monotonic clock.

use std::time::{Duration, Instant as SystemInstant};

use saiga_stack::{Instant, Micros};

/// Stacks begin an hour after their instant zero, which stands for "never" in places.
const BEGIN: Micros = Micros::from_secs(3600);

/// A clock that all stacks of a gateway share.
#[derive(Debug, Clone, Copy)]
pub struct Clock(SystemInstant);

impl Clock {
    /// A clock that begins now.
    #[must_use]
    pub fn start() -> Self {
        Self(SystemInstant::now())
    }

    /// The present.
    #[must_use]
    pub fn now(&self) -> Instant {
        let micros = u64::try_from(self.0.elapsed().as_micros()).unwrap_or(u64::MAX);
        Instant(micros) + BEGIN
    }

    /// How long it is until `at`.
    pub(crate) fn until(&self, at: Instant) -> Duration {
        Duration::from_micros(at.since(self.now()).0)
    }
}
