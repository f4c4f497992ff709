//! The plot: the factor and the writes behind it, over the time that was watched.
//!
//! However long that was, there are at most [`MOST_POINTS`] points: neighbours in a segment are taken together.

use saiga_report::model::{Curve, CurveMark, CurvePanel, CurvePoint, Curves, Tone};

use super::super::words::factor;
use crate::ratio::Written;
use crate::series::{Interval, Segment, Series};

const MOST_POINTS: usize = 400;
const GIB: f64 = (1_u64 << 30) as f64;

/// A stretch of the time axis in which everything was counted.
struct Stretch {
    from_s: f64,
    to_s: f64,
    written: Written,
    /// Since the segment's start.
    cumulative: Written,
}

/// Curves of a drive; `None` without an interval.
pub(super) fn curves(series: &Series) -> Option<Curves> {
    let count = series.intervals().count();
    let together = count.div_ceil(MOST_POINTS).max(1);
    let mut at_s = 0.0;
    let mut segments = Vec::new();
    let mut marks = Vec::new();
    let mut before: Option<&Segment> = None;
    for segment in &series.segments {
        if let Some(before) = before {
            // The time between two segments belongs to the axis, but to neither of them.
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
        let stretches = stretches(segment, at_s, together);
        at_s = stretches.last().map_or(at_s, |last| last.to_s);
        segments.push(stretches);
        before = Some(segment);
    }
    (count > 0 && at_s > 0.0).then(|| Curves {
        caption: format!("{}: the factor and the writes behind it", series.drive),
        series: ["per interval", "since the segment's start", "host", "flash"]
            .map(str::to_owned)
            .into(),
        end_s: at_s,
        panels: panels(series, &segments),
        marks,
    })
}

fn panels(series: &Series, segments: &[Vec<Stretch>]) -> Vec<CurvePanel> {
    let total = series.written();
    let last = series
        .segments
        .last()
        .map(Segment::written)
        .unwrap_or_default();
    let of_factor = |written: Written| {
        let waf = written.waf()?;
        // Where the counters allow anything, there is nothing to draw.
        Some([waf.value, waf.low, waf.high?])
    };
    let rate = |count: u128, stretch: &Stretch| {
        let hours = (stretch.to_s - stretch.from_s) / 3600.0;
        (hours > 0.0).then(|| [count as f64 / GIB / hours; 3])
    };
    let hours = series
        .intervals()
        .filter_map(Interval::seconds)
        .sum::<f64>()
        / 3600.0;
    let mean = |count: u128| format!("{:.1}", count as f64 / GIB / hours.max(f64::EPSILON));
    vec![
        CurvePanel {
            title: "Write amplification factor".to_owned(),
            curves: vec![
                curve(0, factor(total.waf()), segments, |one| {
                    of_factor(one.written)
                }),
                curve(1, factor(last.waf()), segments, |one| {
                    one.cumulative.waf().map(|waf| [waf.value; 3])
                }),
            ],
        },
        CurvePanel {
            title: "Written, GiB per hour".to_owned(),
            curves: vec![
                curve(2, mean(total.host), segments, |one| {
                    rate(one.written.host, one)
                }),
                curve(3, mean(total.media), segments, |one| {
                    rate(one.written.media, one)
                }),
            ],
        },
    ]
}

/// The stretches of a segment that begins at a place of the axis.
fn stretches(segment: &Segment, start_s: f64, together: usize) -> Vec<Stretch> {
    let (mut at_s, mut cumulative) = (start_s, Written::default());
    let mut all = Vec::new();
    for intervals in segment.intervals.chunks(together) {
        let from_s = at_s;
        let mut written = Written::default();
        for interval in intervals {
            at_s += interval.seconds().unwrap_or(0.0);
            written = written.then(interval.written);
            cumulative = cumulative.then(interval.written);
        }
        all.push(Stretch {
            from_s,
            to_s: at_s,
            written,
            cumulative,
        });
    }
    all
}

/// A line through the middles of stretches, broken between segments.
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
