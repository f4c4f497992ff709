//! The commands of an operator between our own steps.

use std::time::Duration;

use super::reader::{Problems, Table};
use super::tree::Value;

/// What a hook may take that says nothing else.
const USUAL_LIMIT: Duration = Duration::from_secs(60);

/// The keys whose hooks belong to one run.
const OF_A_RUN: [&str; 6] = [
    "before_arm",
    "before_start",
    "before_run",
    "after_run",
    "after_start",
    "after_arm",
];

/// A line for `sh -c`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hook {
    /// The line.
    pub command: String,
    /// One that takes longer has failed.
    pub limit: Duration,
    /// What its failure means.
    pub failure: OnFailure,
    /// Whether it prints figures of its run: lines `name value unit`.
    pub measures: bool,
}

/// What the failure of a hook means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnFailure {
    /// The experiment ends.
    Stop,
    /// This run does not count.
    Reject,
    /// It is told, and nothing else.
    Ignore,
}

/// When hooks run. Within a run they lie inside each other: arm, start, run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Point {
    /// Around all runs.
    Experiment,
    /// Around one run with everything that belongs to it; no server runs.
    Arm,
    /// Around the life of the servers; the data are in place.
    Start,
    /// Around the load; the servers are ready.
    Run,
}

/// Hooks before and after one point.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Around {
    /// In order.
    pub before: Vec<Hook>,
    /// In order; they run whenever those before have begun, however it went.
    pub after: Vec<Hook>,
}

/// All hooks of one place of the file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Hooks {
    /// [`Point::Experiment`]; empty in an arm.
    pub experiment: Around,
    /// [`Point::Arm`].
    pub arm: Around,
    /// [`Point::Start`].
    pub start: Around,
    /// [`Point::Run`].
    pub run: Around,
}

impl OnFailure {
    /// As in the file.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Stop => "stop",
            Self::Reject => "reject",
            Self::Ignore => "ignore",
        }
    }
}

impl Point {
    /// For people: `before the run`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Experiment => "the experiment",
            Self::Arm => "the arm",
            Self::Start => "the start",
            Self::Run => "the run",
        }
    }
}

impl Hooks {
    /// Those of one point.
    #[must_use]
    pub fn at(&self, point: Point) -> &Around {
        match point {
            Point::Experiment => &self.experiment,
            Point::Arm => &self.arm,
            Point::Start => &self.start,
            Point::Run => &self.run,
        }
    }

    /// Reads `[hooks]`; an arm has none around the experiment.
    pub(super) fn read(table: Option<&Table<'_>>, of_arm: bool, problems: &Problems) -> Self {
        let Some(table) = table else {
            return Self::default();
        };
        let around = |before, after| Around {
            before: hooks(table, before, problems),
            after: hooks(table, after, problems),
        };
        let experiment = if of_arm {
            Around::default()
        } else {
            around("before_experiment", "after_experiment")
        };
        let hooks = Self {
            experiment,
            arm: around("before_arm", "after_arm"),
            start: around("before_start", "after_start"),
            run: around("before_run", "after_run"),
        };
        table.finish();
        hooks
    }
}

fn hooks(table: &Table<'_>, key: &'static str, problems: &Problems) -> Vec<Hook> {
    let values = table.values(key).into_iter();
    values
        .filter_map(|value| hook(table, key, value, problems))
        .collect()
}

pub(super) fn hook(
    table: &Table<'_>,
    key: &'static str,
    value: &Value,
    problems: &Problems,
) -> Option<Hook> {
    if let Some(command) = value.text().filter(|command| !command.trim().is_empty()) {
        return Some(Hook {
            command: command.to_owned(),
            limit: USUAL_LIMIT,
            failure: OnFailure::Stop,
            measures: false,
        });
    }
    let Some(entries) = value.table() else {
        let what = format!("{key} must hold commands: \"...\" or {{ command = \"...\" }}");
        table.note(value.line, &what);
        return None;
    };
    let one = Table::new(key.to_owned(), value.line, entries, problems);
    let command = one.needed_text("command");
    let choices = [OnFailure::Stop, OnFailure::Reject, OnFailure::Ignore];
    let choices = choices.map(|choice| (choice.name(), choice));
    let hook = Hook {
        limit: one.duration("timeout").unwrap_or(USUAL_LIMIT),
        failure: one
            .choice("on_failure", &choices)
            .unwrap_or(OnFailure::Stop),
        command: command.unwrap_or_default(),
        measures: one.flag("metrics").unwrap_or(false),
    };
    if hook.measures && !OF_A_RUN.contains(&key) {
        let what = "has no meaning here: figures belong to a run, so they come from before_arm, \
                    before_start, before_run, after_run, after_start or after_arm";
        one.problem("metrics", what);
    }
    one.finish();
    Some(hook)
}
