//! How runs went: throughput, response times and the host, second by second, arms over each other.

use saiga_experiment::result::detail::{Mark, Series};
use saiga_experiment::result::{Cell, Detail};

use super::super::{View, course_words, first_seen, section, words};
use super::{cells, middle, runs_of};
use saiga_document::model::{
    Block, Curve, CurveMark, CurvePanel, CurvePoint, Curves, Reach, Section, Tone,
};
use saiga_document::number;

/// Panels in a chart; a run may know more, and a reader does not want them.
const PANELS_MAX: usize = 24;

/// One chart for each cell.
pub(in super::super) fn course(view: &View) -> Section {
    let mut made = section("course", "The course of the runs", Reach::Detail);
    let mut left_out = 0;
    for cell in cells(view) {
        let chart = chart(view, cell);
        made.blocks.extend(chart.map(|(curves, more)| {
            left_out = left_out.max(more);
            Block::Curves(curves)
        }));
    }
    made.blocks.extend(told(left_out));
    if !made.blocks.is_empty() {
        let text = "The middle run of each arm by its main metric. A line goes through means; the shade around \
                    it reaches from the lowest to the highest value. All panels share the time axis and begin \
                    at zero.";
        made.blocks.insert(0, Block::Text(text.to_owned()));
    }
    made
}

/// How many series are in `result.json` only, if any are.
pub(crate) fn told(left_out: usize) -> Option<Block> {
    let more = words::count(left_out, "more series is", "more series are");
    (left_out > 0).then(|| Block::Text(format!("{more} in result.json.")))
}

/// The chart, and how many series it leaves out.
fn chart(view: &View, cell: &Cell) -> Option<(Curves, usize)> {
    let arms = view.result.arms.iter();
    let shown: Vec<(&str, &Detail)> = arms
        .filter_map(|arm| {
            let (_, detail) = middle(view, &runs_of(view, cell, &arm.name))?;
            (!detail.series.is_empty()).then_some((arm.name.as_str(), detail))
        })
        .collect();
    drawn(view.workloads.full_label(cell), &shown)
}

/// The courses of some runs over each other, each with its name, and how many series are left out.
pub(crate) fn drawn(caption: String, shown: &[(&str, &Detail)]) -> Option<(Curves, usize)> {
    let series = || shown.iter().flat_map(|(_, detail)| &detail.series);
    let end_s = series()
        .flat_map(|one| one.at_s.iter().copied())
        .fold(0.0, f64::max);
    let mut names = first_seen(series().map(|one| one.name.as_str()));
    names.sort_by_key(|name| course_words::rank(name));
    let left_out = names.len().saturating_sub(PANELS_MAX);
    names.truncate(PANELS_MAX);
    let panels: Vec<CurvePanel> = names.iter().map(|name| panel(name, shown)).collect();
    let marks = shown
        .iter()
        .flat_map(|(arm, detail)| detail.marks.iter().map(move |one| mark(arm, one)));
    let curves = (!panels.is_empty()).then(|| Curves {
        caption,
        series: shown.iter().map(|(arm, _)| (*arm).to_owned()).collect(),
        end_s,
        marks: marks.collect(),
        panels,
    });
    curves.map(|curves| (curves, left_out))
}

fn panel(name: &str, shown: &[(&str, &Detail)]) -> CurvePanel {
    let curves = shown.iter().enumerate().filter_map(|(index, (_, detail))| {
        let series = detail.series.iter().find(|one| one.name == name)?;
        Some(curve(index, series))
    });
    CurvePanel {
        title: course_words::title(name),
        curves: curves.collect(),
    }
}

fn curve(series: usize, of: &Series) -> Curve {
    let at = |list: &[Option<f64>], index: usize| list.get(index).copied().flatten();
    let points = of.at_s.iter().enumerate().map(|(index, at_s)| {
        let mean = at(&of.mean, index);
        let values = mean.map(|mean| {
            let low = at(&of.low, index).unwrap_or(mean);
            [mean, low, at(&of.high, index).unwrap_or(mean)]
        });
        CurvePoint {
            at_s: *at_s,
            values,
        }
    });
    let known: Vec<f64> = of.mean.iter().flatten().copied().collect();
    let sum: f64 = known.iter().sum();
    Curve {
        series,
        points: points.collect(),
        mean: number::value(sum / known.len() as f64),
    }
}

/// A gap in the service is to be seen; the rest is only said.
fn mark(arm: &str, mark: &Mark) -> CurveMark {
    let is_trouble = mark.what != "measured";
    CurveMark {
        from_s: mark.from_s,
        to_s: mark.to_s.unwrap_or(mark.from_s),
        label: format!("{arm}: {}", mark.what),
        tone: if is_trouble {
            Tone::Caution
        } else {
            Tone::Neutral
        },
    }
}
