//! A page over many experiments: what each was to find out, what came out, what was changed.
//!
//! It stands where people keep a table by hand: one line for each stage of a hunt for speed.
//! What was changed is read from the results themselves: two neighbours are compared in all
//! that decides how fast they are. Deliberately absent: ratios between experiments; the
//! machine has changed in between.

mod changes;

use saiga_experiment::result::{Comparison, ComparisonKind, ExperimentResult};
use serde::Serialize;

use crate::experiment::words;
use crate::model::{
    Align, Block, Cell, Column, Document, Reach, Row, Section, Table, Tone, Verdict,
};
use crate::number;

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
    /// Its main comparison.
    pub comparison: Option<Comparison>,
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
            comparison: main_comparison(result).cloned(),
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
    let main = stage.comparison.as_ref();
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
            text: main.map_or_else(|| "no comparison".to_owned(), outcome),
            note: stage
                .interrupted
                .as_ref()
                .map(|why| format!("cut short: {why}")),
        },
        Cell {
            text: main.map_or_else(|| "–".to_owned(), values),
            note: main.map(|one| words::metric(&one.metric).title),
        },
        Cell::new(changed),
    ])
}

/// Of the subject: best against best before the same placement, in the order of the result.
fn main_comparison(result: &ExperimentResult) -> Option<&Comparison> {
    let subject = result.subject()?;
    let own = || {
        result
            .comparisons
            .iter()
            .filter(|one| one.b == subject.name)
    };
    let best = own().find(|one| one.kind == ComparisonKind::BestAgainstBest);
    best.or_else(|| own().next())
}

fn outcome(one: &Comparison) -> String {
    let (verdict, _) = words::verdict(one);
    let ratio = number::ratio(one.ratio.median);
    let interval = one.ratio.ci95.map(number::interval);
    let interval = interval.map_or_else(String::new, |interval| format!(" ({interval})"));
    format!("{ratio}x{interval}, {verdict}")
}

fn values(one: &Comparison) -> String {
    let [a, b] = [one.a_median, one.b_median].map(number::value);
    format!("{a} → {b} {}", one.unit)
}
