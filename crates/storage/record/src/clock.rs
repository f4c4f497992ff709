//! Converts times of files (CLOCK_REALTIME) to times of events (CLOCK_MONOTONIC).

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Maximum number of readings of both clocks.
const READINGS: usize = 8;
/// A reading that takes less time than this is precise enough.
const CLOSE_NS: u64 = 1_000_000;

/// Returns the time of CLOCK_MONOTONIC, the clock of events, in nanoseconds.
pub(crate) fn now_ns() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    let parts = u64::try_from(now.tv_sec)
        .ok()
        .zip(u64::try_from(now.tv_nsec).ok());
    parts.map_or(0, |(seconds, nanoseconds)| {
        seconds * 1_000_000_000 + nanoseconds
    })
}

/// Converts a time of CLOCK_REALTIME to CLOCK_MONOTONIC; 0 for times before boot.
pub(crate) fn monotonic_ns(time: (i64, u32)) -> u64 {
    convert(time, &mut || Reading {
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

/// Converts a time by the shortest of several readings.
///
/// On a busy host, other threads may run for tens of milliseconds between the readings of the two
/// clocks. The result of such a reading is too early by that time.
fn convert((seconds, nanoseconds): (i64, u32), read: &mut dyn FnMut() -> Reading) -> u64 {
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

    /// Converts a time on simulated clocks, which advance by a microsecond between readings, plus
    /// interruptions in milliseconds.
    fn found(interruptions: &[(u64, u64)]) -> u64 {
        let mut left = interruptions.iter();
        let mut now_ns = 70 * MS;
        convert((1000, 0), &mut || {
            let (first, second) = left.next().copied().unwrap_or((0, 0));
            let before_ns = now_ns;
            now_ns += 1000 + first * MS;
            // The file was created 20 ms after boot.
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
    fn an_interruption_does_not_change_the_age_of_a_file() {
        let near = |found: u64| found.abs_diff(20 * MS) <= 2000;
        for interruptions in [&[][..], &[(50, 0)], &[(0, 50)], &[(3, 0), (0, 70), (9, 9)]] {
            assert!(near(found(interruptions)), "{interruptions:?}");
        }
        // Always interrupted: the closest of eight readings took 2 ms.
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
    fn times_before_boot_are_zero() {
        assert_eq!(monotonic_ns((0, 0)), 0);
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        let seconds = i64::try_from(now.as_secs()).unwrap();
        let found = monotonic_ns((seconds, now.subsec_nanos()));
        assert!(found <= now_ns(), "{found}");
    }
}
