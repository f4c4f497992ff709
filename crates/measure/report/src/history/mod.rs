//! A page about many experiments: the goal, the result and the changes of each.
//!
//! Replaces the table that people keep by hand, with one row for each stage of a tuning project.
//! The changes come from the results themselves: `changes` compares each experiment with the
//! previous one. The caller adds what the diagnosis says. Deliberately absent: ratios between
//! experiments, because the machine may have changed in between.

mod changes;

use saiga_experiment::result::{
    Comparison, ComparisonKind, ExperimentResult, HeadlineComparison, Load, Ratio, Verdict as Shown,
};
use serde::Serialize;

use crate::experiment::format;
use saiga_document::model::{
    Align, Block, Cell, Column, Document, Row, Section, Table, Tone, Verdict, Visibility,
};
use saiga_document::number;

/// One experiment in the history.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Stage {
    /// The folder of the experiment.
    pub name: String,
    /// Start time, as RFC 3339 in UTC.
    pub started: Option<String>,
    pub goal: Option<String>,
    /// Names of the arms, the reference first.
    pub arms: Vec<String>,
    /// The main comparison over all loads; `None` in results of older versions, which lack it.
    pub headline: Option<HeadlineComparison>,
    /// The main comparison of the first load.
    pub comparison: Option<Comparison>,
    /// Number of loads that have a main comparison.
    pub loads: usize,
    /// Clients, throughput and response time of the reference and of the subject under the first
    /// load.
    pub before_after: Option<[Load; 2]>,
    /// What `saiga diagnose` says of the reference and of the subject; `None` if it
    /// was not asked.
    pub diagnosis: Option<[String; 2]>,
    /// The reason, if the experiment ended before its plan was complete.
    pub interrupted: Option<String>,
    /// Differences from the previous stage, in words; `None` for the first stage.
    pub changed: Option<Vec<String>>,
}

/// The stages of the named experiments, sorted by start time.
#[must_use]
pub fn stages(experiments: &[(String, ExperimentResult)]) -> Vec<Stage> {
    let mut all: Vec<&(String, ExperimentResult)> = experiments.iter().collect();
    all.sort_by(|(_, a), (_, b)| a.started.cmp(&b.started));
    let before = std::iter::once(None).chain(all.iter().map(|(_, result)| Some(result)));
    let pairs = all.iter().zip(before);
    pairs
        .map(|((name, result), before)| Stage {
            name: name.clone(),
            started: result.started.clone(),
            goal: result.goal.clone(),
            arms: result.arms.iter().map(|arm| arm.name.clone()).collect(),
            headline: result.headline_comparison.clone(),
            comparison: main_comparisons(result).first().copied().cloned(),
            loads: main_comparisons(result).len(),
            before_after: before_after(result),
            diagnosis: None,
            interrupted: result.interrupted.clone(),
            changed: before.map(|before| changes::between(before, result)),
        })
        .collect()
}

/// The history as a document with one table.
#[must_use]
pub fn page(stages: &[Stage]) -> Document {
    let count = format::count(stages.len(), "experiment", "experiments");
    let titles = [
        "Experiment",
        "Goal",
        "Arms",
        "Result",
        "Reference → subject",
        "N",
        "X, per second",
        "R",
        "X R / N",
        "Changed",
        "Diagnosis",
    ];
    let left = |title: &str| Column {
        title: title.to_owned(),
        align: Align::Left,
    };
    let table = Table {
        caption: "Stages, the oldest first".to_owned(),
        columns: titles.map(left).into(),
        rows: stages.iter().map(row).collect(),
    };
    Document {
        title: "History of experiments".to_owned(),
        subtitle: span(stages),
        verdict: Verdict {
            tone: Tone::Neutral,
            lead: format!("{count}; each compares its arms on one machine, pair by pair."),
            more: vec![
                "A ratio is valid within its experiment only: arms of different experiments are \
                 not compared."
                    .to_owned(),
            ],
        },
        figures: Vec::new(),
        pointers: Vec::new(),
        sections: vec![Section {
            id: "stages",
            title: "Stages".to_owned(),
            visibility: Visibility::Summary,
            blocks: vec![Block::Table(table)],
        }],
        origin: "Made by saiga history from the result.json of each experiment.".to_owned(),
    }
}

fn span(stages: &[Stage]) -> String {
    let started = |stage: &Stage| stage.started.as_deref().map(format::timestamp);
    match (
        stages.first().and_then(started),
        stages.last().and_then(started),
    ) {
        (Some(first), Some(last)) if first != last => format!("{first} to {last}"),
        (first, _) => first.unwrap_or_default(),
    }
}

fn row(stage: &Stage) -> Row {
    let headline = stage.headline.as_ref().map(|one| one.metric.as_str());
    let of_load = stage.comparison.as_ref().map(|one| one.metric.as_str());
    let metric = headline.or(of_load);
    let changed = match stage.changed.as_deref() {
        None => "–".to_owned(),
        Some([]) => "nothing that the results record".to_owned(),
        Some(changed) => changed.join("; "),
    };
    Row::Cells(vec![
        Cell::new(&stage.name).with_note(stage.started.as_deref().map(format::timestamp)),
        Cell::new(stage.goal.as_deref().unwrap_or("–")),
        Cell::new(stage.arms.join(", ")),
        Cell::new(outcome(stage)).with_note(
            stage
                .interrupted
                .as_ref()
                .map(|reason| format!("ended early: {reason}")),
        ),
        Cell::new(values(stage)).with_note(metric.map(|name| format::metric(name).title)),
        figure(stage, |load| number::value(load.clients)),
        figure(stage, |load| number::value(load.throughput_s)),
        figure(stage, |load| number::seconds(load.response_ms / 1000.0)),
        figure(stage, |load| number::ratio(load.area_ratio())),
        Cell::new(changed),
        Cell::new(pair(stage.diagnosis.clone())),
    ])
}

/// A figure of the reference and of the subject under the first load.
fn figure(stage: &Stage, of: fn(&Load) -> String) -> Cell {
    Cell::new(pair(
        stage
            .before_after
            .as_ref()
            .map(|both| both.each_ref().map(of)),
    ))
}

/// Two texts, or one of them if they are equal.
fn pair(both: Option<[String; 2]>) -> String {
    match both {
        None => "–".to_owned(),
        Some([before, after]) if before == after => after,
        Some([before, after]) => format!("{before} → {after}"),
    }
}

/// The loads of the two arms of the first main comparison.
fn before_after(result: &ExperimentResult) -> Option<[Load; 2]> {
    let one = *main_comparisons(result).first()?;
    let load = |arm: &str, cell: Option<&String>| {
        let cell = result.cell(cell.unwrap_or(&one.cell))?;
        result.load(arm, cell)
    };
    Some([
        load(&one.a, one.a_cell.as_ref())?,
        load(&one.b, one.b_cell.as_ref())?,
    ])
}

/// The comparisons of the subject with its reference, one per load, in the order of the result:
/// best against best if there are any, else the same placement.
fn main_comparisons(result: &ExperimentResult) -> Vec<&Comparison> {
    let Some(subject) = result.subject() else {
        return Vec::new();
    };
    let first = result.arms.first().filter(|arm| arm.name != subject.name);
    let reference = subject.varied(&result.arms).or(first);
    let own: Vec<&Comparison> = result
        .comparisons
        .iter()
        .filter(|one| one.b == subject.name)
        .filter(|one| reference.is_none_or(|arm| one.a == arm.name))
        .collect();
    let is_best = |one: &&&Comparison| one.kind == ComparisonKind::BestAgainstBest;
    let first = own.iter().find(is_best).or_else(|| own.first()).copied();
    let alike = |one: &&Comparison| {
        first.is_some_and(|first| one.metric == first.metric && one.kind == first.kind)
    };
    own.into_iter().filter(alike).collect()
}

fn outcome(stage: &Stage) -> String {
    if let Some(HeadlineComparison {
        metric,
        ratio,
        verdict,
        ..
    }) = &stage.headline
    {
        let names = format::metric(metric);
        let verdict = match verdict {
            Shown::Faster => names.better,
            Shown::Slower => names.worse,
            Shown::NoDifferenceShown if ratio.has_too_few_pairs() => "too few pairs to tell",
            Shown::NoDifferenceShown => "no difference shown",
        };
        return in_numbers(ratio, verdict);
    }
    let Some(one) = &stage.comparison else {
        return "no comparison".to_owned();
    };
    let (verdict, _) = format::verdict(one);
    let text = in_numbers(&one.ratio, &verdict);
    match stage.loads {
        0 | 1 => text,
        loads => format!("{text}; first of {loads} loads"),
    }
}

fn in_numbers(ratio: &Ratio, verdict: &str) -> String {
    let interval = ratio.ci95.map(number::interval);
    let interval = interval.map_or_else(String::new, |interval| format!(" ({interval})"));
    format!("{}x{interval}, {verdict}", number::ratio(ratio.median))
}

/// The medians of both arms, if the result is that of a single load.
fn values(stage: &Stage) -> String {
    let workloads = stage.headline.as_ref().map(|one| one.workloads);
    match (workloads, &stage.comparison) {
        (Some(loads @ 2..), _) => format!("geometric mean of {loads} loads"),
        (_, None) => "–".to_owned(),
        (_, Some(one)) => {
            let [a, b] = [one.a_median, one.b_median].map(number::value);
            format!("{a} → {b} {}", one.unit)
        }
    }
}
