//! Counters to rates. A counter that is new, gone or went backwards has no rate.
//!
//! A wrapped counter, a device that was removed and came back, and a core that was taken
//! offline all look alike: less than before. What happened in between cannot be known, so
//! the answer is `None` once and the new value is where the next rate begins.

/// One counter between two looks at it.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Meter {
    before: Option<(f64, u64)>,
}

impl Meter {
    /// Events per second since the last look that saw the counter.
    pub(crate) fn rate(&mut self, at_s: f64, now: Option<u64>) -> Option<f64> {
        let before = std::mem::replace(&mut self.before, now.map(|now| (at_s, now)));
        let ((before_s, before), now) = (before?, now?);
        per_second(before, now, at_s - before_s)
    }
}

/// `None` when time or counter did not go forward.
pub(crate) fn per_second(before: u64, now: u64, seconds: f64) -> Option<f64> {
    let events = now.checked_sub(before)?;
    (seconds > 0.0).then(|| events as f64 / seconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_counter_that_went_forward_has_a_rate() {
        let mut meter = Meter::default();
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
