//! The clocks of the load hosts whose parts make a sum: whether their windows are one window.
//!
//! Each worker begins at the same instant of its own clock. By the server's clock, which all of
//! them have asked, the one whose own clock is farthest behind begins last.

use serde::{Deserialize, Serialize};

use super::partial::numbers;
use super::record::Record;
use super::validity::{Check, Verdict};
use crate::driver::clock::SECOND_US;
use crate::server_clock::{Apart, Offset, apart};

/// What the check of the windows is called.
pub(super) const WINDOWS: &str = "windows of the workers coincide";
/// Windows that are farther apart than this share of theirs are not one window.
const MOST_SHARE: u64 = 100;
/// Less than this is within the resolution of a series by the second.
const LEAST_LIMIT_US: u64 = SECOND_US / 10;
/// More than this shows in a series by the second, however long the windows are.
const MOST_LIMIT_US: u64 = SECOND_US;

/// The clock of one worker of a sum.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkerClock {
    /// Number of the worker, from 1.
    pub worker: u32,
    /// How far the server's clock is from its own, where it has asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offset: Option<Offset>,
}

impl WorkerClock {
    /// How long after `first` it began, in microseconds of the server's clock.
    pub(super) fn after_us(&self, first: &Offset) -> Option<i64> {
        let ahead_us = self.offset?.server_ahead_us;
        Some(ahead_us.saturating_sub(first.server_ahead_us))
    }
}

/// The offset of the worker that began first.
pub(super) fn first(clocks: &[WorkerClock]) -> Option<Offset> {
    let known = clocks.iter().filter_map(|clock| clock.offset);
    known.min_by_key(|offset| offset.server_ahead_us)
}

/// Whether the measured windows of all workers are the same, nearly.
pub(super) fn check(record: &Record) -> Option<Check> {
    let clocks = &record.clocks;
    if clocks.len() < 2 {
        return None;
    }
    let known: Vec<Offset> = clocks.iter().filter_map(|clock| clock.offset).collect();
    let unknown = clocks.iter().filter(|clock| clock.offset.is_none());
    let unknown: Vec<u32> = unknown.map(|clock| clock.worker).collect();
    let limit_us = limit_us(record);
    let shift = apart(&known);
    let verdict = match shift {
        Some(shift) if shift.least_us > limit_us => Verdict::Fails,
        Some(shift) if shift.most_us <= limit_us && unknown.is_empty() => Verdict::Holds,
        Some(_) | None => Verdict::CannotTell,
    };
    let mut found: Vec<String> = shift.iter().map(words).collect();
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

/// A shift by a hundredth of a short interval is in the noise of its figures.
fn limit_us(record: &Record) -> u64 {
    let (from_us, to_us) = record.interval_us;
    let share_us = to_us.saturating_sub(from_us) / MOST_SHARE;
    share_us.clamp(LEAST_LIMIT_US, MOST_LIMIT_US)
}

fn words(shift: &Apart) -> String {
    match shift.least_us {
        0 => format!("at most {} apart", ms(shift.most_us)),
        least_us => format!(
            "{:.1} to {} apart",
            least_us as f64 / 1e3,
            ms(shift.most_us)
        ),
    }
}

/// Milliseconds with one decimal, from microseconds.
pub(super) fn ms(us: u64) -> String {
    format!("{:.1} ms", us as f64 / 1e3)
}

impl Offset {
    /// In words: `2.5 ms ahead of this host's, known to 0.1 ms`, where `whose` is `this host's`.
    pub(super) fn words(&self, whose: &str) -> String {
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
