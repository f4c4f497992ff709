//! The charts of an experiment: ratios by placement, and values of every arm with raw runs.

use saiga_experiment::result::{Cell, Comparison};
use saiga_experiment::stats;
use saiga_experiment::stats::Method;

use super::{CLIENT_CPU, SERVER_CPU, View, first_seen, is_best, section, words, workloads};
use saiga_document::model::{
    Bar, BarGroup, BarPanel, Bars, Block, Forest, ForestGroup, ForestRow, RUNS, Reach, Section,
};
use saiga_document::number;

/// Ratios of the main metric.
pub(super) fn main_ratios(view: &View) -> Section {
    let name = words::metric(view.main_metric);
    let mut made = section("ratios", &name.title, Reach::Summary);
    let Some(forest) = forest(view, view.reference, view.subject, view.main_metric) else {
        return made;
    };
    made.blocks.push(Block::Text(format!(
        "Each line is {} divided by {}: the median over pairs of runs, with its 95 % interval{}. \
         An interval that touches 1 shows no difference.{}{}",
        view.subject,
        view.reference,
        match view.method() {
            Method::Fixed => "",
            Method::Sequential => ", valid at every look",
        },
        uncorrected(view),
        unless_said(view)
    )));
    made.blocks.push(Block::Forest(forest));
    made
}

/// Explains the word where it is used.
fn uncorrected(view: &View) -> &'static str {
    if view.result.comparisons.iter().any(words::is_uncorrected) {
        " \u{201c}Uncorrected\u{201d} marks what one comparison by itself shows, but not when \
         corrected for the number of comparisons."
    } else {
        ""
    }
}

fn unless_said(view: &View) -> String {
    let common = view.workloads.common();
    common.map_or_else(String::new, |common| {
        format!(" Unless a line says otherwise: {common}.")
    })
}

/// CPU time of the server: what an operation costs the machine that serves.
pub(super) fn server_cpu(view: &View) -> Section {
    let text = "What an operation costs the server is what a production host saves.";
    ratios(
        view,
        section("server-cpu", "Server CPU", Reach::Summary),
        &[SERVER_CPU],
        text,
    )
}

/// CPU time of the client, apart from the server's, and of both.
pub(super) fn client_cpu(view: &View) -> Section {
    let text = "Shown apart, because a load generator is not an application: what it saves says \
                little about what your clients would save.";
    ratios(
        view,
        section("client-cpu", "Client CPU", Reach::Detail),
        &CLIENT_CPU,
        text,
    )
}

/// Ratios of what is neither the main metric nor CPU time: latencies.
pub(super) fn other_metrics(view: &View) -> Section {
    let shown = |metric: &&str| {
        *metric == view.main_metric || *metric == SERVER_CPU || CLIENT_CPU.contains(metric)
    };
    let metrics: Vec<_> = view
        .metrics()
        .into_iter()
        .filter(|metric| !shown(metric))
        .collect();
    ratios(
        view,
        section("latency", "Latency and other metrics", Reach::Evidence),
        &metrics,
        whose_latency(view),
    )
}

/// From where latencies count, by what the cells say of their loads.
fn whose_latency(view: &View) -> &'static str {
    let says = |key: &str| {
        let mut cells = view.result.cells.iter();
        cells.any(|cell| cell.params.workload.contains_key(key))
    };
    if says("command") {
        "As the program that made the load has measured it; its command says how."
    } else if says("rate") {
        "As the client measured it, in an open loop: operations begin by a schedule, and latencies \
         count from there, however late they really began."
    } else {
        "As the client measured it, in a closed loop: each connection waits for its answer."
    }
}

fn ratios(view: &View, mut made: Section, metrics: &[&str], text: &str) -> Section {
    let forests = metrics
        .iter()
        .filter_map(|one| forest(view, view.reference, view.subject, one));
    made.blocks.extend(forests.map(Block::Forest));
    if !made.blocks.is_empty() {
        made.blocks.insert(0, Block::Text(text.to_owned()));
    }
    made
}

/// Values of every arm: the main metric.
pub(super) fn values(view: &View) -> Section {
    let text = "A bar ends at the median; each dot is one run that counts. Every panel has a \
                scale of its own, which starts at zero.";
    let made = section("values", "The values behind the ratios", Reach::Detail);
    all_bars(view, made, &[view.main_metric], text)
}

/// Values of every arm: CPU time.
pub(super) fn cpu_values(view: &View) -> Section {
    let text = "Server and client by themselves; bars and dots as above.";
    let made = section("cpu-values", "CPU time of every arm", Reach::Evidence);
    all_bars(view, made, &[SERVER_CPU, CLIENT_CPU[0]], text)
}

fn all_bars(view: &View, mut made: Section, metrics: &[&str], text: &str) -> Section {
    made.blocks.extend(
        metrics
            .iter()
            .filter_map(|name| bars(view, name))
            .map(Block::Bars),
    );
    if !made.blocks.is_empty() {
        made.blocks.insert(0, Block::Text(text.to_owned()));
    }
    made
}

/// Ratios of the main metric between the other pairs of arms.
pub(super) fn other_arms(view: &View) -> Section {
    let mut made = section("others", "Against the other arms", Reach::Evidence);
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
    made.blocks.extend(forests.map(Block::Forest));
    made
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
        ForestGroup { title, note, rows }
    });
    Some(Forest {
        caption: format!("{}: {b} divided by {a}", words::metric(metric).title),
        sides: [a.to_owned(), b.to_owned()],
        unit: first.unit.clone(),
        ends: words::ends(metric, first.better, b),
        groups: groups.collect(),
    })
}

fn forest_row(view: &View, cell: &Cell, one: &Comparison) -> ForestRow {
    let (verdict, tone) = words::verdict(one);
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
        caption: words::metric(metric).title,
        unit: words::unit(metric).to_owned(),
        words: RUNS,
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
        let counted = view
            .result
            .runs
            .iter()
            .filter(|run| run.cell == cell.id && run.arm == arm.name && run.rejected.is_none());
        let dots: Vec<f64> = counted
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
