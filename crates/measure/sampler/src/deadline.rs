//! Deadlines of rows: whole multiples of the interval since the start.

use std::time::Duration;

/// The first deadline after `elapsed`. Missed deadlines are skipped. Deadlines are absolute, so
/// that delays do not add up during a long run.
pub(crate) fn next(elapsed: Duration, interval: Duration) -> Duration {
    let passed = elapsed.as_nanos() / interval.as_nanos().max(1);
    let row = u32::try_from(passed + 1).unwrap_or(u32::MAX);
    interval.saturating_mul(row)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deadlines_do_not_drift_and_missed_ones_are_skipped() {
        let second = Duration::from_secs(1);
        for (elapsed_ms, next_ms) in [
            (0, 1000),
            (3, 1000),
            (1000, 2000),
            (1007, 2000),
            (4999, 5000),
            (43_199_010, 43_200_000),
        ] {
            let due = next(Duration::from_millis(elapsed_ms), second);
            assert_eq!(due, Duration::from_millis(next_ms), "{elapsed_ms}");
        }
    }
}
