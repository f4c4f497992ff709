//! A page over many experiments: what each was to find out, what came out, what was changed.
//!
//! It stands where people keep a table by hand: one line for each stage of a hunt for speed.
//! What was changed is read from the results themselves: two neighbours are compared in all
//! that decides how fast they are. Deliberately absent: ratios between experiments; the
//! machine has changed in between.

mod changes;

use saiga_experiment::result::{
    Comparison, ComparisonKind, ExperimentResult, HeadlineComparison, Ratio, Verdict as Shown,
};
use serde::Serialize;

use crate::experiment::words;
use saiga_document::model::{
    Align, Block, Cell, Column, Document, Reach, Row, Section, Table, Tone, Verdict,
};
use saiga_document::number;

/// One experiment in the row of all.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Stage {
    /// Its folder.
    pub name: String,
    /// When it started, as RFC 3339 in UTC.
    pub started: Option<String>,
    /// What it was to find out.
    pub goal: Option<String>,
    /// Its arms, the reference first.
    pub arms: Vec<String>,
    /// What it was to find out, over all its loads; `None` in results from before it was kept.
    pub headline: Option<HeadlineComparison>,
    /// The comparison of its first load.
    pub comparison: Option<Comparison>,
    /// Loads that have such a one.
    pub loads: usize,
    /// Why it ended before its plan was done.
    pub interrupted: Option<String>,
    /// What differs from the stage before, in words; `None` for the first.
    pub changed: Option<Vec<String>>,
}

/// Stages in the order of their start, whatever order they come in; each with its name.
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
            interrupted: result.interrupted.clone(),
            changed: before.map(|before| changes::between(before, result)),
        })
        .collect()
}

/// The page.
#[must_use]
pub fn page(stages: &[Stage]) -> Document {
    let count = words::count(stages.len(), "experiment", "experiments");
    let titles = [
        "Experiment",
        "Goal",
        "Arms",
        "Result",
        "Reference and subject",
        "Changed",
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
            lead: format!("{count}, each compared with itself on one machine in one run."),
            more: vec![
                "A ratio belongs to its experiment alone: arms that ran days apart are not compared."
                    .to_owned(),
            ],
        },
        figures: Vec::new(),
        pointers: Vec::new(),
        sections: vec![Section {
            id: "stages",
            title: "Stages".to_owned(),
            reach: Reach::Summary,
            blocks: vec![Block::Table(table)],
        }],
        origin: "Made by saiga history from the result.json of each experiment.".to_owned(),
    }
}

fn span(stages: &[Stage]) -> String {
    let started = |stage: &Stage| stage.started.as_deref().map(words::moment);
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
        Some([]) => "nothing that results tell".to_owned(),
        Some(changed) => changed.join("; "),
    };
    Row::Cells(vec![
        Cell {
            text: stage.name.clone(),
            note: stage.started.as_deref().map(words::moment),
        },
        Cell::new(stage.goal.as_deref().unwrap_or("–")),
        Cell::new(stage.arms.join(", ")),
        Cell {
            text: outcome(stage),
            note: stage
                .interrupted
                .as_ref()
                .map(|why| format!("cut short: {why}")),
        },
        Cell {
            text: values(stage),
            note: metric.map(|name| words::metric(name).title),
        },
        Cell::new(changed),
    ])
}

/// The subject against the arm that it is judged against, load by load in the order of the result:
/// best against best before the same placement.
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
        let words = words::metric(metric);
        let verdict = match verdict {
            Shown::Faster => words.better,
            Shown::Slower => words.worse,
            Shown::NoDifferenceShown if ratio.has_too_few_pairs() => "too few pairs to tell",
            Shown::NoDifferenceShown => "no difference shown",
        };
        return in_numbers(ratio, verdict);
    }
    let Some(one) = &stage.comparison else {
        return "no comparison".to_owned();
    };
    let (verdict, _) = words::verdict(one);
    let text = in_numbers(&one.ratio, &verdict);
    match stage.loads {
        0 | 1 => text,
        loads => format!("{text}; 1 of {loads} loads"),
    }
}

fn in_numbers(ratio: &Ratio, verdict: &str) -> String {
    let interval = ratio.ci95.map(number::interval);
    let interval = interval.map_or_else(String::new, |interval| format!(" ({interval})"));
    format!("{}x{interval}, {verdict}", number::ratio(ratio.median))
}

/// Of a single load the medians; of several there is no such number.
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
