//! The charts of an experiment: ratios by placement, and values of every arm with raw runs.

use saiga_experiment::result::{Cell, Comparison};
use saiga_experiment::stats;
use saiga_experiment::stats::Method;

use super::{
    CLIENT_CPU, SERVER_CPU, SERVER_HOST_CPU, View, first_seen, format, is_best, new_section,
    workloads,
};
use saiga_document::model::{
    Bar, BarGroup, BarPanel, Bars, Block, Forest, ForestGroup, ForestRow, RUN_LABELS, Section,
    Visibility,
};
use saiga_document::number;

/// The ratios of the main metric, subject against reference.
pub(super) fn main_ratios(view: &View) -> Section {
    let name = format::metric(view.main_metric);
    let mut section = new_section("ratios", &name.title, Visibility::Answer);
    let Some(forest) = forest(view, view.reference, view.subject, view.main_metric) else {
        return section;
    };
    section.blocks.push(Block::Text(format!(
        "Each row shows {} divided by {}: the median over pairs of runs, with its 95 % interval{}. \
         An interval that contains 1 shows no difference.{}{}",
        view.subject,
        view.reference,
        match view.method() {
            Method::Fixed => "",
            Method::Sequential => ", which stays valid if the results are checked after every pair",
        },
        uncorrected(view),
        common_parameters(view)
    )));
    section.blocks.push(Block::Forest(forest));
    section
}

/// Explains the word "uncorrected", if a verdict of this result uses it.
fn uncorrected(view: &View) -> &'static str {
    if view.result.comparisons.iter().any(format::is_uncorrected) {
        " \u{201c}Uncorrected\u{201d} marks a difference that one comparison shows by itself, but \
         not after correction for the number of comparisons."
    } else {
        ""
    }
}

fn common_parameters(view: &View) -> String {
    let common = view.workloads.common();
    common.map_or_else(String::new, |common| {
        format!(" Unless a row says otherwise: {common}.")
    })
}

/// The ratios of the server's CPU time per operation.
pub(super) fn server_cpu(view: &View) -> Section {
    let text = "CPU time of the server per operation: the saving that a production host would see.";
    ratios(
        view,
        new_section("server-cpu", "Server CPU", Visibility::Summary),
        &[SERVER_CPU, SERVER_HOST_CPU],
        text,
    )
}

/// The ratios of the client's CPU time, and of client and server together.
pub(super) fn client_cpu(view: &View) -> Section {
    let text = "Shown separately, because a load generator is not an application: its saving says \
                little about what your clients would save.";
    ratios(
        view,
        new_section("client-cpu", "Client CPU", Visibility::Detail),
        &CLIENT_CPU,
        text,
    )
}

/// The ratios of all metrics but the main metric and CPU time; most of them are latencies.
pub(super) fn other_metrics(view: &View) -> Section {
    let shown = |metric: &&str| {
        let cpu = [SERVER_CPU, SERVER_HOST_CPU];
        *metric == view.main_metric || cpu.contains(metric) || CLIENT_CPU.contains(metric)
    };
    let metrics: Vec<_> = view
        .metrics()
        .into_iter()
        .filter(|metric| !shown(metric))
        .collect();
    ratios(
        view,
        new_section("latency", "Latency and other metrics", Visibility::Evidence),
        &metrics,
        latency_source(view),
    )
}

/// Explains how latencies were measured, which follows from the parameters of the load.
fn latency_source(view: &View) -> &'static str {
    let has = |key: &str| {
        let mut cells = view.result.cells.iter();
        cells.any(|cell| cell.params.workload.contains_key(key))
    };
    if has("command") {
        "Measured by the program that made the load; see its command for the method."
    } else if has("rate") {
        "Measured by the client in an open loop: operations have scheduled starts, and a latency \
         counts from the scheduled start, even if the operation began later."
    } else {
        "Measured by the client in a closed loop: each connection waits for the answer before it \
         sends its next request."
    }
}

fn ratios(view: &View, mut section: Section, metrics: &[&str], text: &str) -> Section {
    let forests = metrics
        .iter()
        .filter_map(|one| forest(view, view.reference, view.subject, one));
    section.blocks.extend(forests.map(Block::Forest));
    if !section.blocks.is_empty() {
        section.blocks.insert(0, Block::Text(text.to_owned()));
    }
    section
}

/// The values of the main metric in every arm.
pub(super) fn values(view: &View) -> Section {
    let text = "A bar ends at the median; each dot is one accepted run. Every panel has its own \
                scale, which starts at zero.";
    let section = new_section("values", "The values behind the ratios", Visibility::Detail);
    all_bars(view, section, &[view.main_metric], text)
}

/// The CPU time per operation in every arm.
pub(super) fn cpu_values(view: &View) -> Section {
    let text = "Server and client separately. A bar ends at the median; each dot is one accepted \
                run.";
    let section = new_section("cpu-values", "CPU time of every arm", Visibility::Evidence);
    all_bars(view, section, &[SERVER_CPU, CLIENT_CPU[0]], text)
}

fn all_bars(view: &View, mut section: Section, metrics: &[&str], text: &str) -> Section {
    section.blocks.extend(
        metrics
            .iter()
            .filter_map(|name| bars(view, name))
            .map(Block::Bars),
    );
    if !section.blocks.is_empty() {
        section.blocks.insert(0, Block::Text(text.to_owned()));
    }
    section
}

/// The ratios of the main metric between all pairs of arms but reference and subject.
pub(super) fn other_arms(view: &View) -> Section {
    let mut section = new_section("others", "The other pairs of arms", Visibility::Evidence);
    let mut pairs: Vec<(&str, &str)> = Vec::new();
    for one in &view.result.comparisons {
        let pair = (one.a.as_str(), one.b.as_str());
        if pair != (view.reference, view.subject) && !pairs.contains(&pair) {
            pairs.push(pair);
        }
    }
    let forests = pairs
        .into_iter()
        .filter_map(|(a, b)| forest(view, a, b, view.main_metric));
    section.blocks.extend(forests.map(Block::Forest));
    section
}

fn forest(view: &View, a: &str, b: &str, metric: &str) -> Option<Forest> {
    let found = view.between(a, b, metric);
    let (_, first) = found.first()?;
    let mut placements = first_seen(found.iter().map(|(cell, _)| cell.params.placement.as_str()));
    let is_fair = |placement: &str| {
        found
            .iter()
            .any(|(cell, one)| is_best(one) && cell.params.placement == placement)
    };
    placements.sort_by_key(|placement| !is_fair(placement));
    let groups = placements.into_iter().map(|placement| {
        let (title, note) = workloads::placement(placement);
        let own = found
            .iter()
            .filter(|(cell, _)| cell.params.placement == placement);
        let rows = own.map(|(cell, one)| forest_row(view, cell, one)).collect();
        let is_answer = is_fair(placement) || !found.iter().any(|(_, one)| is_best(one));
        ForestGroup {
            title,
            note,
            visibility: if is_answer {
                Visibility::Answer
            } else {
                Visibility::Summary
            },
            rows,
        }
    });
    Some(Forest {
        caption: format!("{}: {b} divided by {a}", format::metric(metric).title),
        sides: [a.to_owned(), b.to_owned()],
        unit: first.unit.clone(),
        ends: format::axis_ends(metric, first.better, b),
        groups: groups.collect(),
    })
}

fn forest_row(view: &View, cell: &Cell, one: &Comparison) -> ForestRow {
    let (verdict, tone) = format::verdict(one);
    let places = view
        .placement_of(one.a_cell.as_ref())
        .zip(view.placement_of(one.b_cell.as_ref()));
    ForestRow {
        label: view.workloads.label(cell),
        note: places.map(|(a, b)| format!("{}: {a}; {}: {b}", one.a, one.b)),
        values: [number::value(one.a_median), number::value(one.b_median)],
        ratio: one.ratio.median,
        interval: one.ratio.ci95,
        pairs: one.ratio.n_pairs,
        verdict,
        tone,
    }
}

fn bars(view: &View, metric: &str) -> Option<Bars> {
    let has_runs = |cell: &&Cell| {
        view.result
            .runs
            .iter()
            .any(|run| run.cell == cell.id && run.metrics.contains_key(metric))
    };
    let cells: Vec<_> = view.result.cells.iter().filter(has_runs).collect();
    let titles: Vec<_> = cells
        .iter()
        .map(|cell| view.workloads.label(cell))
        .collect();
    let panels: Vec<_> = first_seen(titles.iter().map(String::as_str))
        .into_iter()
        .map(|title| {
            let own = cells
                .iter()
                .zip(&titles)
                .filter(|(_, other)| *other == title);
            let groups = own.map(|(cell, _)| bar_group(view, cell, metric)).collect();
            BarPanel {
                title: title.to_owned(),
                groups,
            }
        })
        .collect();
    (!panels.is_empty()).then(|| Bars {
        caption: format::metric(metric).title,
        unit: format::unit(metric).to_owned(),
        labels: RUN_LABELS,
        series: view
            .result
            .arms
            .iter()
            .map(|arm| arm.name.clone())
            .collect(),
        panels,
    })
}

fn bar_group(view: &View, cell: &Cell, metric: &str) -> BarGroup {
    let bar = |(series, arm): (usize, &saiga_experiment::result::Arm)| {
        let accepted = view
            .result
            .runs
            .iter()
            .filter(|run| run.cell == cell.id && run.arm == arm.name && run.rejected.is_none());
        let dots: Vec<f64> = accepted
            .filter_map(|run| run.metrics.get(metric).copied())
            .collect();
        let value = stats::median(&dots)?;
        Some(Bar {
            series,
            value,
            text: number::value(value),
            dots,
        })
    };
    let bars = view
        .result
        .arms
        .iter()
        .enumerate()
        .filter_map(bar)
        .collect();
    BarGroup {
        label: cell.params.placement.clone(),
        bars,
    }
}
