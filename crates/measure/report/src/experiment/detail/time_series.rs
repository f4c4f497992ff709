//! Runs over time: throughput, response times and the host, all arms in the same panels.

use saiga_experiment::result::detail::{Mark, Series};
use saiga_experiment::result::{Cell, Detail};

use super::super::{View, first_seen, format, new_section, series_names};
use super::{accepted_runs, cells_with_details, median_run};
use saiga_document::model::{
    Block, Curve, CurveMark, CurvePanel, CurvePoint, Curves, Section, Tone, Visibility,
};
use saiga_document::number;

/// Maximum number of panels in a chart. A run may have more series than a reader can take in.
const PANELS_MAX: usize = 24;
/// Explanation of the charts for the reader.
pub(crate) const HOW_TO_READ: &str = "A line connects means; the shaded area around it reaches \
    from the lowest to the highest value. All panels share one time axis, and their scales begin \
    at zero.";

/// One chart for each cell.
pub(in super::super) fn time_series(view: &View) -> Section {
    let mut section = new_section("time-series", "The runs over time", Visibility::Detail);
    let mut left_out = 0;
    for cell in cells_with_details(view) {
        let chart = chart(view, cell);
        section.blocks.extend(chart.map(|(curves, more)| {
            left_out = left_out.max(more);
            Block::Curves(curves)
        }));
    }
    section.blocks.extend(left_out_note(left_out));
    if !section.blocks.is_empty() {
        let text = format!("The median run of each arm by its main metric. {HOW_TO_READ}");
        section.blocks.insert(0, Block::Text(text));
    }
    section
}

/// The number of series that are in `result.json` only; `None` for zero.
pub(crate) fn left_out_note(left_out: usize) -> Option<Block> {
    let more = format::count(left_out, "more series is", "more series are");
    (left_out > 0).then(|| Block::Text(format!("{more} in result.json.")))
}

/// The chart, and how many series it leaves out.
fn chart(view: &View, cell: &Cell) -> Option<(Curves, usize)> {
    let arms = view.result.arms.iter();
    let shown: Vec<(&str, &Detail)> = arms
        .filter_map(|arm| {
            let (_, detail) = median_run(view, &accepted_runs(view, cell, &arm.name))?;
            (!detail.series.is_empty()).then_some((arm.name.as_str(), detail))
        })
        .collect();
    curves(view.workloads.full_label(cell), &shown)
}

/// A chart of several runs, each with its name, and the number of series that the chart leaves out.
pub(crate) fn curves(caption: String, shown: &[(&str, &Detail)]) -> Option<(Curves, usize)> {
    let series = || shown.iter().flat_map(|(_, detail)| &detail.series);
    let end_s = series()
        .flat_map(|one| one.at_s.iter().copied())
        .fold(0.0, f64::max);
    let mut names = first_seen(series().map(|one| one.name.as_str()));
    names.sort_by_key(|name| series_names::rank(name));
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
        title: series_names::title(name),
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

/// Marks that report trouble, such as a server that was down, get a coloured strip in the panels;
/// the measured interval is only listed below them.
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
