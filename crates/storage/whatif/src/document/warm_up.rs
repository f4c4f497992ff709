//! The section with the approach of the simulation to its steady state.

use saiga_document::model::{Line, LineAxis, LinePanel, Lines};
use saiga_ftl::replay::Placement;

use super::{Block, Content, Run, Section, Visibility, condition_words, placement_name};

/// Most points of a line.
const POINTS: usize = 300;

pub(super) fn section(content: &Content<'_>) -> Option<Section> {
    let condition = content.runs.first()?.condition;
    let runs: Vec<&Run> = content
        .runs
        .iter()
        .filter(|run| run.condition == condition && run.without.is_none())
        .collect();
    let placements = [
        Placement::InitiallyIsolated,
        Placement::PersistentlyIsolated,
    ];
    let panels: Vec<(String, Vec<&Run>)> = placements
        .into_iter()
        .map(|placement| {
            let is_in =
                |run: &&&Run| run.placement == placement || run.placement == Placement::OneStream;
            let own = runs.iter().filter(is_in).copied().collect();
            (placement_name(placement).to_owned(), own)
        })
        .collect();
    let mut series: Vec<String> = Vec::new();
    for run in &runs {
        if !series.contains(&run.label()) {
            series.push(run.label());
        }
    }
    let end = runs
        .iter()
        .map(|run| sizes(run, run.case.outcome.intervals.len()))
        .fold(1.0, f64::max);
    let panels = panels.into_iter().map(|(title, runs)| LinePanel {
        title: format!("WAF, {title}"),
        lines: runs.iter().map(|run| line(run, &series)).collect(),
    });
    let panels = panels.collect();
    Some(Section {
        id: "warm-up",
        title: "Approach to the steady state".to_owned(),
        visibility: Visibility::Evidence,
        blocks: vec![
            Block::Text(format!(
                "Write amplification in intervals ({}). Warm-up does not count; if a line still rises \
                 or falls at its right end, use a longer --warm-up.",
                condition_words(condition)
            )),
            Block::Lines(Lines {
                caption: "Write amplification from the empty device to the steady state".to_owned(),
                series,
                axis: LineAxis {
                    title: "host writes, in sizes of the device".to_owned(),
                    ends: [0.0, end],
                    is_logarithmic: false,
                    ticks: ticks(end),
                },
                panels,
            }),
        ],
    })
}

/// Returns the host writes of the first intervals, in sizes of the device.
fn sizes(run: &Run, intervals: usize) -> f64 {
    let outcome = &run.case.outcome;
    let pages: u64 = outcome.intervals[..intervals]
        .iter()
        .map(|one| one.host_pages)
        .sum();
    pages as f64 / f64::from(run.case.logical_pages.max(1))
}

fn line(run: &Run, series: &[String]) -> Line {
    let intervals = &run.case.outcome.intervals;
    let every = intervals.len().div_ceil(POINTS).max(1);
    let mut done = 0;
    let mut points = Vec::new();
    for chunk in intervals.chunks(every) {
        let pages: u64 = chunk.iter().map(|one| one.host_pages).sum();
        let written: f64 = chunk
            .iter()
            .map(|one| one.waf * one.host_pages as f64)
            .sum();
        done += pages;
        let at = done as f64 / f64::from(run.case.logical_pages.max(1));
        points.push([at, written / pages.max(1) as f64]);
    }
    Line {
        series: series
            .iter()
            .position(|name| *name == run.label())
            .unwrap_or(0),
        points,
        text: format!(
            "{:.3} in the first interval, {:.3} measured",
            intervals.first().map_or(1.0, |one| one.waf),
            run.case.outcome.waf()
        ),
    }
}

/// Returns ticks at round numbers, with at most eight steps.
fn ticks(end: f64) -> Vec<(f64, String)> {
    let step = [1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0]
        .into_iter()
        .find(|step| end / step <= 8.0)
        .unwrap_or(end / 8.0);
    let mut at = 0.0;
    let mut ticks = Vec::new();
    while at <= end {
        ticks.push((at, format!("{at:.0}")));
        at += step;
    }
    ticks
}
