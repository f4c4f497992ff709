//! Computes rates of counters. A counter that is new, missing or has decreased has no rate.
//!
//! A counter decreases when it wraps, when its device was replugged, or when a core went offline.
//! The events in between are unknown, so the rate is `None` once, and the next rate starts from the
//! new value.

/// Computes the rate of one counter from successive readings.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct RateMeter {
    before: Option<(f64, u64)>,
}

impl RateMeter {
    /// Events per second since the previous call; `None` if either call had no reading, no time has
    /// passed, or the counter has decreased.
    pub(crate) fn rate(&mut self, at_s: f64, now: Option<u64>) -> Option<f64> {
        let before = std::mem::replace(&mut self.before, now.map(|now| (at_s, now)));
        let ((before_s, before), now) = (before?, now?);
        per_second(before, now, at_s - before_s)
    }
}

/// Events per second; `None` if no time has passed or the counter has decreased.
pub(crate) fn per_second(before: u64, now: u64, seconds: f64) -> Option<f64> {
    let events = now.checked_sub(before)?;
    (seconds > 0.0).then(|| events as f64 / seconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_counter_that_does_not_decrease_has_a_rate() {
        let mut meter = RateMeter::default();
        for (what, at_s, count, rate) in [
            ("first look", 0.0, Some(10), None),
            ("forward", 2.0, Some(30), Some(10.0)),
            ("idle", 3.0, Some(30), Some(0.0)),
            ("wrapped at 32 bits", 4.0, Some(5), None),
            ("after the wrap", 5.0, Some(6), Some(1.0)),
            ("gone", 6.0, None, None),
            ("back", 7.0, Some(100), None),
            ("and counting", 9.0, Some(104), Some(2.0)),
            ("no time passed", 9.0, Some(105), None),
        ] {
            assert_eq!(meter.rate(at_s, count), rate, "{what}");
        }
    }
}
