//! The limit of challenge acknowledgements.
//!
//! Spec: RFC 5961 §7 (throttling). The limit is that of one connection, not of the host: a limit
//! that connections share lets an attacker count the challenges of others (CVE-2016-5696).

use crate::time::Instant;

/// Challenges of a connection in the present second.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Challenges {
    /// Whole seconds of the clock, which wrap after 18 hours: a second that looks like the last one
    /// has fewer challenges.
    second: u16,
    sent: u8,
}

impl Challenges {
    /// Whether one more may be sent now; counts it.
    pub(crate) fn take(&mut self, now: Instant, per_second: u8) -> bool {
        let second = (now.whole_seconds() & 0xffff) as u16;
        if second != self.second {
            *self = Self { second, sent: 0 };
        }
        let is_allowed = self.sent < per_second;
        self.sent += u8::from(is_allowed);
        is_allowed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_in_a_second_and_again_in_the_next() {
        let mut challenges = Challenges::default();
        let mut take = |ms: u64| challenges.take(Instant(ms * 1000), 2);
        assert_eq!([take(5000), take(5500), take(5999)], [true, true, false]);
        assert_eq!([take(6000), take(6001), take(6002)], [true, true, false]);
    }
}
