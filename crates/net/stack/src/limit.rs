//! Rate limits by token buckets.
//!
//! Another host decides how many packets come that ask for an answer. The answers are limited, so
//! that this host neither floods a third one nor spends its time on them (RFC 4443 §2.4 f, RFC 1812
//! §4.3.2.8).

use saiga_tcp::{Instant, Micros};

/// A token bucket. It begins full.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RateLimit {
    /// Time for which a token lasts.
    interval: Micros,
    burst: u64,
    /// When the bucket would be full again.
    full_at: Instant,
}

impl RateLimit {
    /// At most `per_second` (1 to 1,000,000) in the long run, and `burst` at once.
    pub(crate) const fn new(per_second: u64, burst: u64) -> Self {
        Self {
            interval: Micros(1_000_000 / per_second),
            burst,
            full_at: Instant(0),
        }
    }

    /// Takes a token, if there is one.
    pub(crate) fn allows(&mut self, now: Instant) -> bool {
        let full_at = self.full_at.max(now) + self.interval;
        let is_allowed = full_at.since(now) <= self.interval.times(self.burst);
        if is_allowed {
            self.full_at = full_at;
        }
        is_allowed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_and_then_the_rate() {
        let mut limit = RateLimit::new(1000, 5);
        let allowed = |limit: &mut RateLimit, now, tries| {
            (0..tries).filter(|_| limit.allows(Instant(now))).count()
        };
        assert_eq!(allowed(&mut limit, 1_000_000, 100), 5);
        assert_eq!(allowed(&mut limit, 1_000_999, 100), 0);
        assert_eq!(allowed(&mut limit, 1_001_000, 100), 1);
        assert_eq!(allowed(&mut limit, 1_003_000, 100), 2);
        assert_eq!(allowed(&mut limit, 9_000_000, 100), 5);
    }
}
