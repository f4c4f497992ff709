//! Times of files by the clock of events: CLOCK_REALTIME by CLOCK_MONOTONIC.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Readings of both clocks, at most, until they were taken closely enough together.
const READINGS: usize = 8;
/// Closely enough, in nanoseconds.
const CLOSE_NS: u64 = 1_000_000;

/// Nanoseconds of CLOCK_MONOTONIC, as events have them.
pub(crate) fn now_ns() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    let parts = u64::try_from(now.tv_sec)
        .ok()
        .zip(u64::try_from(now.tv_nsec).ok());
    parts.map_or(0, |(seconds, nanoseconds)| {
        seconds * 1_000_000_000 + nanoseconds
    })
}

/// A time of CLOCK_REALTIME by CLOCK_MONOTONIC; 0 for one before the machine was started.
pub(crate) fn monotonic_ns(time: (i64, u32)) -> u64 {
    by(time, &mut || Reading {
        before_ns: now_ns(),
        wall: SystemTime::now(),
        after_ns: now_ns(),
    })
}

/// CLOCK_REALTIME, and CLOCK_MONOTONIC before and after it.
#[derive(Debug, Clone, Copy)]
struct Reading {
    before_ns: u64,
    wall: SystemTime,
    after_ns: u64,
}

impl Reading {
    fn width_ns(&self) -> u64 {
        self.after_ns.saturating_sub(self.before_ns)
    }
}

/// On a busy machine others run between two readings of clocks, for tens of milliseconds: a file
/// would look as if it had been made after its first bytes were written. The closest of several
/// readings counts.
fn by((seconds, nanoseconds): (i64, u32), read: &mut dyn FnMut() -> Reading) -> u64 {
    let mut best = read();
    for _ in 1..READINGS {
        if best.width_ns() < CLOSE_NS {
            break;
        }
        let next = read();
        if next.width_ns() < best.width_ns() {
            best = next;
        }
    }
    let since = Duration::new(u64::try_from(seconds).unwrap_or_default(), nanoseconds);
    let age = best.wall.duration_since(UNIX_EPOCH + since);
    let age = age.map_or(0, |age| u64::try_from(age.as_nanos()).unwrap_or(u64::MAX));
    best.before_ns.saturating_sub(age)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// Both clocks go on by a microsecond from one reading to the next, but for interruptions in
    /// milliseconds.
    fn found(interruptions: &[(u64, u64)]) -> u64 {
        let mut left = interruptions.iter();
        let mut now_ns = 70 * MS;
        by((1000, 0), &mut || {
            let (first, second) = left.next().copied().unwrap_or((0, 0));
            let before_ns = now_ns;
            now_ns += 1000 + first * MS;
            // The file was made 20 ms after the monotonic clock began.
            let wall =
                UNIX_EPOCH + Duration::from_secs(1000) + Duration::from_nanos(now_ns - 20 * MS);
            now_ns += 1000 + second * MS;
            Reading {
                before_ns,
                wall,
                after_ns: now_ns,
            }
        })
    }

    #[test]
    fn an_interruption_makes_no_file_younger_or_older() {
        let near = |found: u64| found.abs_diff(20 * MS) <= 2000;
        for interruptions in [&[][..], &[(50, 0)], &[(0, 50)], &[(3, 0), (0, 70), (9, 9)]] {
            assert!(near(found(interruptions)), "{interruptions:?}");
        }
        // Never quiet: the closest of eight, which is 2 ms wide.
        let busy = [
            (50, 0),
            (9, 0),
            (2, 0),
            (9, 0),
            (9, 0),
            (9, 0),
            (9, 0),
            (9, 0),
        ];
        assert!(found(&busy).abs_diff(20 * MS) <= 2 * MS + 2000);
    }

    #[test]
    fn what_is_older_than_the_machine_is_zero() {
        assert_eq!(monotonic_ns((0, 0)), 0);
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        let seconds = i64::try_from(now.as_secs()).unwrap();
        let found = monotonic_ns((seconds, now.subsec_nanos()));
        assert!(found <= now_ns(), "{found}");
    }
}
