//! Samples as segments and intervals: where differences mean something, and where they would not.
//!
//! A segment is a run of samples whose counters continue each other. A counter that falls, another source, other
//! firmware, or more bytes than any link carries begin a new one; a reboot or a new name of the drive does not.

use std::collections::BTreeMap;
use std::fmt;

use crate::moment::Moment;
use crate::ratio::{Written, error_of};
use crate::sample::{DriveId, Sample};
use crate::source::Source;
use saiga_document::number::bytes;

/// What four lanes of PCIe 7.0 carry, the widest link of a drive: a counter that grows faster was
/// not counting. Flash is written no faster, even by garbage collection.
const MOST_BYTES_PER_S: f64 = 64e9;

/// All samples of a drive.
#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    /// Which drive.
    pub drive: DriveId,
    /// In the order of time; never empty.
    pub segments: Vec<Segment>,
}

/// Samples that continue each other.
#[derive(Debug, Clone, PartialEq)]
pub struct Segment {
    /// Why it begins.
    pub start: Start,
    /// Its first sample.
    pub first: Sample,
    /// Its last; the same when there is but one.
    pub last: Sample,
    /// From each sample to the next.
    pub intervals: Vec<Interval>,
    /// The first sample with which the drive said how worn it was.
    pub first_worn: Option<Sample>,
}

/// Why a segment begins.
#[derive(Debug, Clone, PartialEq)]
pub enum Start {
    /// It is the first of the drive.
    First,
    /// It is the first of the drive, and its name was another drive's before.
    Exchanged {
        /// The name.
        path: String,
        /// The other drive.
        before: DriveId,
    },
    /// Counters come from elsewhere.
    Source {
        /// Until now.
        before: Source,
    },
    /// The drive runs other firmware.
    Firmware {
        /// Until now.
        before: String,
    },
    /// A counter has fallen: it was reset.
    Fallen {
        /// Which: `host` or `flash`.
        counter: &'static str,
        /// From this many bytes.
        from: u128,
        /// To so many.
        to: u128,
    },
    /// A counter has grown faster than any drive can be written to.
    Leapt {
        /// Which: `host` or `flash`.
        counter: &'static str,
        /// By so many bytes.
        by: u128,
    },
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
            Self::Leapt { counter, by } => write!(
                f,
                "the {counter} counter leapt by {}, faster than any drive can be written to",
                bytes(*by)
            ),
        }
    }
}

/// From one sample to the next.
#[derive(Debug, Clone, PartialEq)]
pub struct Interval {
    /// The earlier one.
    pub start: Moment,
    /// The later one.
    pub end: Moment,
    /// What was written in between.
    pub written: Written,
}

impl Interval {
    /// Its length; `None` when the clock was set back meanwhile.
    #[must_use]
    pub fn seconds(&self) -> Option<f64> {
        self.start.seconds_until(&self.end)
    }

    /// Whether the host was restarted meanwhile.
    #[must_use]
    pub fn has_reboot(&self) -> bool {
        self.start.boot != self.end.boot
    }
}

impl Segment {
    /// What was written from its first sample to its last.
    #[must_use]
    pub fn written(&self) -> Written {
        let intervals = self.intervals.iter();
        intervals.fold(Written::default(), |sum, interval| {
            sum.then(interval.written)
        })
    }

    /// The same; `None` of a lone sample, of which nothing is known. That is not idleness.
    #[must_use]
    pub fn measured(&self) -> Option<Written> {
        (!self.intervals.is_empty()).then(|| self.written())
    }
}

impl Series {
    /// What was written in all segments; what happened between two of them is not known.
    #[must_use]
    pub fn written(&self) -> Written {
        let segments = self.segments.iter().map(Segment::written);
        segments.fold(Written::default(), Written::and)
    }

    /// The same; `None` when no two samples continue each other.
    #[must_use]
    pub fn measured(&self) -> Option<Written> {
        self.intervals().next().map(|_| self.written())
    }

    /// All intervals, in the order of time.
    pub fn intervals(&self) -> impl DoubleEndedIterator<Item = &Interval> {
        self.segments.iter().flat_map(|segment| &segment.intervals)
    }

    /// Number of samples.
    #[must_use]
    pub fn samples(&self) -> usize {
        self.segments.len() + self.intervals().count()
    }

    /// The newest sample.
    #[must_use]
    pub fn last(&self) -> Option<&Sample> {
        self.segments.last().map(|segment| &segment.last)
    }
}

/// Series by drive, in the order of their first samples; `samples` are in the order in which they were taken.
#[must_use]
pub fn series(samples: &[Sample]) -> Vec<Series> {
    let mut all: Vec<Series> = Vec::new();
    let mut place: BTreeMap<&DriveId, usize> = BTreeMap::new();
    let mut behind: BTreeMap<&str, &DriveId> = BTreeMap::new();
    for sample in samples {
        let before = behind.insert(&sample.path, &sample.drive);
        if let Some(series) = place
            .get(&sample.drive)
            .and_then(|index| all.get_mut(*index))
        {
            series.add(sample);
            continue;
        }
        place.insert(&sample.drive, all.len());
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

/// What was written from one sample of a drive to the next, or why that cannot be said.
///
/// # Errors
/// The reason why a segment begins between them.
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
    // Two samples of one second are no reason to find a drive too fast.
    let seconds = start.seconds_until(&end).map(|seconds| seconds.max(1.0));
    let grown = |counter, from: u128, to: u128| {
        let by = to
            .checked_sub(from)
            .ok_or(Start::Fallen { counter, from, to })?;
        match seconds {
            Some(seconds) if by as f64 / seconds > MOST_BYTES_PER_S => {
                Err(Start::Leapt { counter, by })
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
