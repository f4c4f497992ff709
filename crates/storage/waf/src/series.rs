//! Divides samples into segments and intervals, so that only continuous counters are subtracted.
//!
//! A segment is a run of samples with continuous counters. A new segment begins when a counter
//! falls or grows faster than any link, or when source or firmware change; not at a reboot or with
//! a new name of the drive.

use std::collections::BTreeMap;
use std::fmt;

use crate::moment::Moment;
use crate::ratio::{Written, error_of};
use crate::sample::{DriveId, Sample};
use crate::source::Source;
use saiga_document::number::bytes;

/// The rate of four lanes of PCIe 7.0, the fastest link of a drive. A counter that grows faster was
/// reset or changed; flash is not written faster, even by garbage collection.
const MOST_BYTES_PER_S: f64 = 64e9;

/// All samples of a drive.
#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    pub drive: DriveId,
    /// In order of time; never empty.
    pub segments: Vec<Segment>,
}

/// Samples with continuous counters.
#[derive(Debug, Clone, PartialEq)]
pub struct Segment {
    /// The reason why the segment begins.
    pub start: Start,
    pub first: Sample,
    /// The last sample; the first again if there is only one.
    pub last: Sample,
    /// The intervals between consecutive samples.
    pub intervals: Vec<Interval>,
    /// The first sample with the drive's wear.
    pub first_worn: Option<Sample>,
}

/// The reason why a segment begins.
#[derive(Debug, Clone, PartialEq)]
pub enum Start {
    /// The first sample of the drive.
    First,
    /// The first sample of the drive, whose name was that of the drive `before`.
    Exchanged { path: String, before: DriveId },
    /// The counters have another source than `before`.
    Source { before: Source },
    /// The drive has other firmware than `before`.
    Firmware { before: String },
    /// A counter (`host` or `flash`) has fallen, because it was reset. Values in bytes.
    Fallen {
        counter: &'static str,
        from: u128,
        to: u128,
    },
    /// A counter (`host` or `flash`) has grown by `by` bytes, faster than any drive can be written.
    Jumped { counter: &'static str, by: u128 },
}

impl fmt::Display for Start {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::First => write!(f, "first sample"),
            Self::Exchanged { path, before } => {
                write!(
                    f,
                    "first sample; {path} was another drive before ({before})"
                )
            }
            Self::Source { before } => write!(f, "another source of counters (before: {before})"),
            Self::Firmware { before } => write!(f, "other firmware (before: {before})"),
            Self::Fallen { counter, from, to } => write!(
                f,
                "the {counter} counter fell by {} to {}",
                bytes(from.saturating_sub(*to)),
                bytes(*to)
            ),
            Self::Jumped { counter, by } => write!(
                f,
                "the {counter} counter jumped by {}, faster than any drive can be written",
                bytes(*by)
            ),
        }
    }
}

/// The time between two consecutive samples of a segment.
#[derive(Debug, Clone, PartialEq)]
pub struct Interval {
    pub start: Moment,
    pub end: Moment,
    pub written: Written,
}

impl Interval {
    /// Returns its length; `None` if the clock was set back in between.
    #[must_use]
    pub fn seconds(&self) -> Option<f64> {
        self.start.seconds_until(&self.end)
    }

    /// Whether the host was restarted in between.
    #[must_use]
    pub fn has_reboot(&self) -> bool {
        self.start.boot != self.end.boot
    }
}

impl Segment {
    /// Returns the writes from its first sample to its last.
    #[must_use]
    pub fn written(&self) -> Written {
        let intervals = self.intervals.iter();
        intervals.fold(Written::default(), |sum, interval| {
            sum.then(interval.written)
        })
    }

    /// Like [`written`](Self::written); `None` for a single sample, whose writes are unknown, not
    /// zero.
    #[must_use]
    pub fn measured(&self) -> Option<Written> {
        (!self.intervals.is_empty()).then(|| self.written())
    }
}

impl Series {
    /// Returns the writes in all segments. Writes between segments are unknown and not included.
    #[must_use]
    pub fn written(&self) -> Written {
        let segments = self.segments.iter().map(Segment::written);
        segments.fold(Written::default(), Written::and)
    }

    /// Like [`written`](Self::written); `None` without any interval.
    #[must_use]
    pub fn measured(&self) -> Option<Written> {
        self.intervals().next().map(|_| self.written())
    }

    /// Returns all intervals in order of time.
    pub fn intervals(&self) -> impl DoubleEndedIterator<Item = &Interval> {
        self.segments.iter().flat_map(|segment| &segment.intervals)
    }

    /// Returns the number of samples.
    #[must_use]
    pub fn samples(&self) -> usize {
        self.segments.len() + self.intervals().count()
    }

    /// Returns the newest sample.
    #[must_use]
    pub fn last(&self) -> Option<&Sample> {
        self.segments.last().map(|segment| &segment.last)
    }
}

/// Divides samples, given in order of time, into a series for each drive, in the order of their
/// first samples.
#[must_use]
pub fn series(samples: &[Sample]) -> Vec<Series> {
    let mut all: Vec<Series> = Vec::new();
    let mut indices: BTreeMap<&DriveId, usize> = BTreeMap::new();
    let mut drives_by_path: BTreeMap<&str, &DriveId> = BTreeMap::new();
    for sample in samples {
        let before = drives_by_path.insert(&sample.path, &sample.drive);
        if let Some(series) = indices
            .get(&sample.drive)
            .and_then(|index| all.get_mut(*index))
        {
            series.add(sample);
            continue;
        }
        indices.insert(&sample.drive, all.len());
        let start = match before {
            Some(before) => Start::Exchanged {
                path: sample.path.clone(),
                before: before.clone(),
            },
            None => Start::First,
        };
        all.push(Series {
            drive: sample.drive.clone(),
            segments: vec![Segment::new(start, sample)],
        });
    }
    all
}

/// Returns the interval between two consecutive samples of a drive.
///
/// # Errors
/// The counters are not continuous; the error is the reason of a new segment.
pub fn between(before: &Sample, after: &Sample) -> Result<Interval, Start> {
    if before.source != after.source || before.steps != after.steps {
        let before = before.source;
        return Err(Start::Source { before });
    }
    if before.firmware != after.firmware {
        let before = before.firmware.clone();
        return Err(Start::Firmware { before });
    }
    let (start, end) = (before.taken.clone(), after.taken.clone());
    // At least a second: the growth between two samples of one second would look too fast.
    let seconds = start.seconds_until(&end).map(|seconds| seconds.max(1.0));
    let grown = |counter, from: u128, to: u128| {
        let by = to
            .checked_sub(from)
            .ok_or(Start::Fallen { counter, from, to })?;
        match seconds {
            Some(seconds) if by as f64 / seconds > MOST_BYTES_PER_S => {
                Err(Start::Jumped { counter, by })
            }
            _ => Ok(by),
        }
    };
    let written = Written {
        host: grown("host", before.counters.host, after.counters.host)?,
        media: grown("flash", before.counters.media, after.counters.media)?,
        host_error: error_of(after.steps.host),
        media_error: error_of(after.steps.media),
    };
    Ok(Interval {
        start,
        end,
        written,
    })
}

impl Segment {
    fn new(start: Start, first: &Sample) -> Self {
        Self {
            start,
            first: first.clone(),
            last: first.clone(),
            intervals: Vec::new(),
            first_worn: first.wear.map(|_| first.clone()),
        }
    }
}

impl Series {
    fn add(&mut self, sample: &Sample) {
        let Some(segment) = self.segments.last_mut() else {
            return;
        };
        match between(&segment.last, sample) {
            Ok(interval) => {
                segment.intervals.push(interval);
                segment.last = sample.clone();
                let worn = || sample.wear.map(|_| sample.clone());
                segment.first_worn = segment.first_worn.take().or_else(worn);
            }
            Err(start) => self.segments.push(Segment::new(start, sample)),
        }
    }
}

#[cfg(test)]
mod tests;
