//! The time of a sample: by the wall clock, and since boot.

use std::io;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use saiga_process::proc;

/// An instant. Differences within one boot do not depend on changes of the wall clock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Moment {
    /// Milliseconds since 1970 in UTC.
    pub unix_ms: i64,
    /// The kernel's ID of the boot.
    pub boot: String,
    /// Milliseconds since boot, including suspend (CLOCK_BOOTTIME).
    pub since_boot_ms: i64,
}

impl Moment {
    /// Returns the present instant.
    ///
    /// # Errors
    /// The boot ID in /proc cannot be read.
    pub fn now() -> io::Result<Self> {
        let uptime = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
        Ok(Self {
            unix_ms: unix_ms(SystemTime::now()),
            boot: proc::boot_id()?,
            since_boot_ms: uptime.tv_sec * 1000 + uptime.tv_nsec / 1_000_000,
        })
    }

    /// Returns the seconds to a later instant. `None` if the instants are of different boots and
    /// the clock was set back in between, or if the numbers (from a file) are out of range.
    #[must_use]
    pub fn seconds_until(&self, later: &Self) -> Option<f64> {
        let ms = if self.boot == later.boot {
            later.since_boot_ms.checked_sub(self.since_boot_ms)?
        } else {
            later.unix_ms.checked_sub(self.unix_ms)?
        };
        (ms >= 0).then_some(ms as f64 / 1000.0)
    }

    /// Formats the time like `2026-11-22T07:00:00Z`.
    #[must_use]
    pub fn rfc3339(&self) -> String {
        rfc3339(self.unix_ms)
    }
}

/// Returns the milliseconds since 1970; 0 for earlier times.
#[must_use]
pub fn unix_ms(time: SystemTime) -> i64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

/// Formats a time in UTC to the second.
pub(crate) fn rfc3339(unix_ms: i64) -> String {
    // The format ends with the year 9999.
    let ms = u64::try_from(unix_ms).unwrap_or(0).min(253_402_300_799_000);
    humantime::format_rfc3339_seconds(UNIX_EPOCH + Duration::from_millis(ms)).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moment(unix_s: i64, boot: &str, since_boot_s: i64) -> Moment {
        Moment {
            unix_ms: unix_s * 1000,
            boot: boot.to_owned(),
            since_boot_ms: since_boot_s * 1000,
        }
    }

    #[test]
    fn setting_the_clock_changes_no_difference_within_a_boot() {
        let start = moment(1000, "a", 10);
        assert_eq!(start.seconds_until(&moment(500, "a", 70)), Some(60.0));
        assert_eq!(start.seconds_until(&moment(1100, "b", 5)), Some(100.0));
        assert_eq!(start.seconds_until(&moment(500, "b", 5)), None);
        // A file may have any numbers.
        let (mut first, mut last) = (moment(0, "a", 0), moment(0, "a", 0));
        (first.since_boot_ms, last.since_boot_ms) = (i64::MIN, i64::MAX);
        (first.unix_ms, last.unix_ms) = (i64::MIN, i64::MAX);
        assert_eq!(first.seconds_until(&last), None);
        last.boot = "b".to_owned();
        assert_eq!(first.seconds_until(&last), None);
    }

    #[test]
    fn times_are_written_in_utc() {
        assert_eq!(
            moment(1_795_330_800, "a", 0).rfc3339(),
            "2026-11-22T07:00:00Z"
        );
        assert_eq!(rfc3339(-5), "1970-01-01T00:00:00Z");
        assert_eq!(rfc3339(i64::MAX), "9999-12-31T23:59:59Z");
    }

    #[test]
    fn now_is_after_the_last_boot() {
        let now = Moment::now().unwrap();
        assert_eq!(now.boot.len(), 36);
        assert!(now.since_boot_ms > 0 && now.unix_ms > 1_700_000_000_000);
    }
}
