//! Parses hooks: shell commands of the user between the steps of a run.

use std::time::Duration;

use super::reader::{Problems, Table};
use super::tree::Value;

/// Default timeout of a hook.
const DEFAULT_LIMIT: Duration = Duration::from_secs(60);

/// The keys of hooks that belong to a single run.
const OF_A_RUN: [&str; 6] = [
    "before_arm",
    "before_start",
    "before_run",
    "after_run",
    "after_start",
    "after_arm",
];

/// A command for `sh -c`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hook {
    pub command: String,
    /// Timeout; a longer hook has failed.
    pub limit: Duration,
    pub failure: OnFailure,
    /// Whether the hook prints figures of its run, as lines `name value unit`.
    pub measures: bool,
}

/// The consequence of a failed hook.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnFailure {
    Stop,
    /// The run is rejected.
    Reject,
    /// The failure is only reported.
    Ignore,
}

/// The part of an experiment that hooks enclose. Within a run they are nested: arm, start, run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Point {
    Experiment,
    /// A run with its restore; no server is running at the time of these hooks.
    Arm,
    /// The life of the servers; the data are already restored.
    Start,
    /// The load; the servers are ready.
    Run,
}

/// Hooks before and after a [`Point`], in order of execution.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Around {
    pub before: Vec<Hook>,
    /// These run if the hooks before the point were reached, even if the run failed.
    pub after: Vec<Hook>,
}

/// The hooks of all arms, or of one arm.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Hooks {
    /// Empty for the hooks of an arm.
    pub experiment: Around,
    pub arm: Around,
    pub start: Around,
    pub run: Around,
}

impl OnFailure {
    /// The name in the file.
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
    /// The name in messages: `the run` in `before the run`.
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
    /// The hooks of a point.
    #[must_use]
    pub fn at(&self, point: Point) -> &Around {
        match point {
            Point::Experiment => &self.experiment,
            Point::Arm => &self.arm,
            Point::Start => &self.start,
            Point::Run => &self.run,
        }
    }

    /// Parses `[hooks]`; an arm has no hooks around the experiment.
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
            limit: DEFAULT_LIMIT,
            failure: OnFailure::Stop,
            measures: false,
        });
    }
    let Some(entries) = value.table() else {
        let what = format!("{key} must contain commands: \"...\" or {{ command = \"...\" }}");
        table.note(value.line, &what);
        return None;
    };
    let one = Table::new(key.to_owned(), value.line, entries, problems);
    let command = one.required_text("command");
    let choices = [OnFailure::Stop, OnFailure::Reject, OnFailure::Ignore];
    let choices = choices.map(|choice| (choice.name(), choice));
    let hook = Hook {
        limit: one.duration("timeout").unwrap_or(DEFAULT_LIMIT),
        failure: one
            .choice("on_failure", &choices)
            .unwrap_or(OnFailure::Stop),
        command: command.unwrap_or_default(),
        measures: one.flag("metrics").unwrap_or(false),
    };
    if hook.measures && !OF_A_RUN.contains(&key) {
        let what = "is not allowed here: figures belong to a run, so use before_arm, \
                    before_start, before_run, after_run, after_start or after_arm";
        one.problem("metrics", what);
    }
    one.finish();
    Some(hook)
}
