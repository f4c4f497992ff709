//! The plot: the factor, and host and flash writes, over time.
//!
//! It has at most [`MOST_POINTS`] points: adjacent intervals of a segment are merged.

mod axis;

use saiga_document::model::{Curve, CurveMark, CurvePanel, CurvePoint, Curves, Tone};

use super::super::format::measured;
use crate::ratio::{Waf, Written};
use crate::series::{Segment, Series};

const MOST_POINTS: usize = 400;
const GIB: f64 = (1_u64 << 30) as f64;

/// A part of the time axis with one or more merged intervals of a segment.
struct Stretch {
    from_s: f64,
    to_s: f64,
    written: Written,
    /// The writes of intervals with a known length, which add up to the length of the stretch.
    timed: Written,
    /// The writes since the start of the segment.
    cumulative: Written,
}

impl Stretch {
    fn hours(&self) -> f64 {
        (self.to_s - self.from_s) / 3600.0
    }
}

/// Returns the curves of a drive; `None` without an interval of known length.
pub(super) fn curves(series: &Series) -> Option<Curves> {
    let count = series.intervals().count();
    let merged = count.div_ceil(MOST_POINTS).max(1);
    let mut at_s = 0.0;
    let mut segments = Vec::new();
    let mut marks = Vec::new();
    let mut before: Option<&Segment> = None;
    for segment in &series.segments {
        if let Some(before) = before {
            // The time between two segments is a part of the axis, but of neither segment.
            at_s += before
                .last
                .taken
                .seconds_until(&segment.first.taken)
                .unwrap_or(0.0);
            marks.push(CurveMark {
                from_s: at_s,
                to_s: at_s,
                label: format!("new segment: {}", segment.start),
                tone: Tone::Caution,
            });
        }
        let stretches = stretches(segment, at_s, merged);
        at_s = stretches.last().map_or(at_s, |last| last.to_s);
        segments.push(stretches);
        before = Some(segment);
    }
    let windows: Vec<Written> = segments.iter().flatten().map(|one| one.written).collect();
    let top = axis::top(&windows);
    (count > 0 && at_s > 0.0).then(|| Curves {
        caption: caption(series, &windows, top),
        series: ["per interval", "since the segment's start", "host", "flash"]
            .map(str::to_owned)
            .into(),
        end_s: at_s,
        panels: vec![factors(series, &segments, top), rates(&segments)],
        marks,
    })
}

fn caption(series: &Series, windows: &[Written], top: f64) -> String {
    let above = windows.iter().filter_map(|one| one.waf());
    let above = above.filter(|waf| waf.value > top).count();
    let note = match above {
        0 => String::new(),
        _ => format!(
            "; not drawn: {above} of {} factors, of windows with almost no host writes or few steps",
            windows.len()
        ),
    };
    format!("{}: the factor, host and flash writes{note}", series.drive)
}

fn factors(series: &Series, segments: &[Vec<Stretch>], top: f64) -> CurvePanel {
    // A factor without an upper bound is not drawn.
    let drawn = |waf: Waf| Some([waf.value, waf.low, waf.high?.min(top)]);
    let of = |written: Written| written.waf().filter(|waf| waf.value <= top);
    let last = series.segments.last().and_then(Segment::measured);
    CurvePanel {
        title: "Write amplification factor".to_owned(),
        curves: vec![
            curve(0, measured(series.measured()), segments, |one| {
                drawn(of(one.written)?)
            }),
            curve(1, measured(last), segments, |one| {
                of(one.cumulative).map(|waf| [waf.value; 3])
            }),
        ],
    }
}

fn rates(segments: &[Vec<Stretch>]) -> CurvePanel {
    let rate = |count: u128, hours: f64| (hours > 0.0).then(|| count as f64 / GIB / hours);
    let all = || segments.iter().flatten();
    let hours = all().map(Stretch::hours).sum();
    let written = all().fold(Written::default(), |sum, one| sum.and(one.timed));
    let mean = |count| rate(count, hours).map_or_else(|| "–".to_owned(), |it| format!("{it:.1}"));
    CurvePanel {
        title: "Written, GiB per hour".to_owned(),
        curves: vec![
            curve(2, mean(written.host), segments, |one| {
                rate(one.timed.host, one.hours()).map(|it| [it; 3])
            }),
            curve(3, mean(written.media), segments, |one| {
                rate(one.timed.media, one.hours()).map(|it| [it; 3])
            }),
        ],
    }
}

/// Returns the stretches of a segment that begins at `start_s`, each of `merged` intervals.
fn stretches(segment: &Segment, start_s: f64, merged: usize) -> Vec<Stretch> {
    let (mut at_s, mut cumulative) = (start_s, Written::default());
    let mut all = Vec::new();
    for intervals in segment.intervals.chunks(merged) {
        let from_s = at_s;
        let (mut written, mut timed) = (Written::default(), Written::default());
        for interval in intervals {
            if let Some(seconds) = interval.seconds() {
                at_s += seconds;
                timed = timed.then(interval.written);
            }
            written = written.then(interval.written);
            cumulative = cumulative.then(interval.written);
        }
        all.push(Stretch {
            from_s,
            to_s: at_s,
            written,
            timed,
            cumulative,
        });
    }
    all
}

/// Returns a curve through the midpoints of stretches, interrupted between segments.
fn curve(
    index: usize,
    mean: String,
    segments: &[Vec<Stretch>],
    values: impl Fn(&Stretch) -> Option<[f64; 3]>,
) -> Curve {
    let mut points = Vec::new();
    for stretches in segments {
        points.extend(stretches.iter().map(|stretch| CurvePoint {
            at_s: f64::midpoint(stretch.from_s, stretch.to_s),
            values: values(stretch),
        }));
        points.extend(stretches.last().map(|last| CurvePoint {
            at_s: last.to_s,
            values: None,
        }));
    }
    Curve {
        series: index,
        points,
        mean,
    }
}
