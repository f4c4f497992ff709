//! Checks whether the load hosts of a merged run measured at the same time.
//!
//! All workers start at the same time, each by its own clock. Each worker measures the offset of
//! the server's clock from its own clock. The differences between these offsets show how far apart
//! the workers started.

use serde::{Deserialize, Serialize};

use super::partial::numbers;
use super::record::Record;
use super::validity::{Check, Verdict};
use crate::driver::clock::SECOND_US;
use crate::server_clock::{Offset, StartSpread, start_spread};

/// Name of this check.
pub(super) const WINDOWS: &str = "windows of the workers coincide";
/// Limit on the difference between the windows: their length divided by this number.
const MAX_SHARE: u64 = 100;
/// Smallest limit. A smaller difference is not visible in a series with one value per second.
const MIN_LIMIT_US: u64 = SECOND_US / 10;
/// Largest limit. A larger difference is visible in a series with one value per second, even if the
/// windows are long.
const MAX_LIMIT_US: u64 = SECOND_US;

/// The clock of one worker of a merged run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkerClock {
    pub worker: u32,
    /// Offset of the server's clock from the clock of the worker; `None` if it was not measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offset: Option<Offset>,
}

impl WorkerClock {
    /// Time by the server's clock, in microseconds, from the start of the worker with the offset
    /// `first` to the start of this worker.
    pub(super) fn after_us(&self, first: &Offset) -> Option<i64> {
        let ahead_us = self.offset?.server_ahead_us;
        Some(ahead_us.saturating_sub(first.server_ahead_us))
    }
}

/// The offset of the worker that started first.
pub(super) fn first(clocks: &[WorkerClock]) -> Option<Offset> {
    let known = clocks.iter().filter_map(|clock| clock.offset);
    known.min_by_key(|offset| offset.server_ahead_us)
}

/// Compares the measured windows of all workers; `None` if fewer than two records were merged.
pub(super) fn check(record: &Record) -> Option<Check> {
    let clocks = &record.clocks;
    if clocks.len() < 2 {
        return None;
    }
    let known: Vec<Offset> = clocks.iter().filter_map(|clock| clock.offset).collect();
    let unknown = clocks.iter().filter(|clock| clock.offset.is_none());
    let unknown: Vec<u32> = unknown.map(|clock| clock.worker).collect();
    let limit_us = limit_us(record);
    let shift = start_spread(&known);
    let verdict = match shift {
        Some(shift) if shift.least_us > limit_us => Verdict::Fails,
        Some(shift) if shift.most_us <= limit_us && unknown.is_empty() => Verdict::Holds,
        Some(_) | None => Verdict::CannotTell,
    };
    let mut found: Vec<String> = shift.iter().map(describe_spread).collect();
    if !unknown.is_empty() {
        let noun = if unknown.len() == 1 {
            "worker"
        } else {
            "workers"
        };
        found.push(format!("not known for {noun} {}", numbers(&unknown)));
    }
    Some(Check {
        name: WINDOWS.to_owned(),
        clause: "§5.4.2".to_owned(),
        found: found.join("; "),
        allowed: format!("at most {} apart", ms(limit_us)),
        verdict,
    })
}

/// The limit on the difference between the windows: a hundredth of the interval, but not less than
/// [`MIN_LIMIT_US`] or more than [`MAX_LIMIT_US`]. A hundredth is within the noise of the results.
fn limit_us(record: &Record) -> u64 {
    let (from_us, to_us) = record.interval_us;
    let share_us = to_us.saturating_sub(from_us) / MAX_SHARE;
    share_us.clamp(MIN_LIMIT_US, MAX_LIMIT_US)
}

fn describe_spread(shift: &StartSpread) -> String {
    match shift.least_us {
        0 => format!("at most {} apart", ms(shift.most_us)),
        least_us => format!(
            "{:.1} to {} apart",
            least_us as f64 / 1e3,
            ms(shift.most_us)
        ),
    }
}

/// Formats microseconds as milliseconds with one decimal.
pub(super) fn ms(us: u64) -> String {
    format!("{:.1} ms", us as f64 / 1e3)
}

impl Offset {
    /// Describes the offset from the clock `whose`: `2.5 ms ahead of this host's, known to 0.1 ms`.
    pub(super) fn describe(&self, whose: &str) -> String {
        let side = if self.server_ahead_us < 0 {
            "behind"
        } else {
            "ahead of"
        };
        format!(
            "{} {side} {whose}, known to {}",
            ms(self.server_ahead_us.unsigned_abs()),
            ms(self.within_us)
        )
    }
}
