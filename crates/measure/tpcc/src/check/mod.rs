//! Checks a database against the population of TPC-C §4.3.3.1 and the conditions of §3.3.2.
//!
//! A statement reads whole tables. If all its tables have keys that begin with the warehouse, it
//! can be restricted to a sample or to a range of warehouses. Several sessions share the list of
//! statements. Rules that hold only after a load are skipped if a run has changed the rows.
//! Deliberately absent: any repair.

mod profile;
mod rules;
mod shown;

use std::collections::VecDeque;
use std::fmt;
use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};

use serde::Deserialize;

use crate::build::{Open, Stop};
use crate::db::rows::Rows;
use crate::db::{ConnectError, Session, SqlError};
use crate::state::{self, LoadInfo, State};
use profile::Profile;
use rules::Rule;

/// The parameters of a check.
#[derive(Clone, Copy)]
pub struct Check<'a> {
    pub open: Open<'a>,
    /// Number of sessions that check at the same time.
    pub sessions: u32,
    /// Whether no transaction has run since the load. If `None`, the tables are searched for signs
    /// of a run.
    pub after_load: Option<bool>,
    pub scope: Scope,
    /// Polled; the check ends once it returns true.
    pub stop: Stop<'a>,
    /// Called with the total number of statements and the number of completed statements.
    pub on_progress: &'a (dyn Fn(usize, usize) + Sync),
}

/// The extent of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Scope {
    /// The conditions and the population.
    #[default]
    All,
    /// The twelve conditions of §3.3.2, without the population.
    Conditions,
    /// Conditions 1 to 7 and 12 on [`SAMPLE`] warehouses. Keys find the rows of these warehouses.
    Sample,
}

/// Number of warehouses in a sample.
pub const SAMPLE: u32 = 10;

/// Seconds per warehouse. About an hour was reported for 4,050 warehouses; the share of the
/// conditions in it is an assumption.
const ALL_S: f64 = 1.0;
const CONDITIONS_S: f64 = 0.6;
const SAMPLE_S: f64 = 0.6;

impl Scope {
    /// Order of magnitude of the time that a check takes. The real time depends on the server and
    /// its disks.
    #[must_use]
    pub fn estimate(self, warehouses: u32) -> Duration {
        let seconds = match self {
            Self::All => ALL_S * f64::from(warehouses),
            Self::Conditions => CONDITIONS_S * f64::from(warehouses),
            Self::Sample => SAMPLE_S * f64::from(warehouses.min(SAMPLE)),
        };
        Duration::from_secs_f64(seconds)
    }

    /// The warehouses of a sample, evenly spaced from the first to the last. Empty if all
    /// warehouses are checked.
    fn sampled(self, warehouses: u32) -> Vec<u32> {
        match self {
            Self::All | Self::Conditions => Vec::new(),
            Self::Sample if warehouses <= SAMPLE => (1..=warehouses).collect(),
            Self::Sample => {
                let steps = u64::from(SAMPLE - 1);
                let at = |step: u64| 1 + step * u64::from(warehouses - 1) / steps;
                let numbers = (0..=steps).map(|step| u32::try_from(at(step)));
                numbers.map(|number| number.unwrap_or(warehouses)).collect()
            }
        }
    }
}

impl fmt::Debug for Check<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Check")
            .field("after_load", &self.after_load)
            .field("scope", &self.scope)
            .finish_non_exhaustive()
    }
}

/// The result of a check.
#[derive(Debug, Clone, PartialEq)]
pub struct Report {
    /// The parameters of the load.
    pub loaded: LoadInfo,
    /// Whether the rules that hold only after a load were checked.
    pub after_load: bool,
    /// The warehouses that were checked; empty if all were checked.
    pub sampled: Vec<u32>,
    /// The rules that were checked, in the order of the clauses.
    pub checked: Vec<CheckedRule>,
    /// The rules that are violated, in the same order.
    pub findings: Vec<Finding>,
}

impl Report {
    /// Adds the result of a statement. Results for the ranges of one rule are combined; they must
    /// be added one after the other.
    fn add(&mut self, checked: CheckedRule, findings: Vec<Finding>) {
        match self.checked.last_mut() {
            Some(last) if (&last.clause, &last.rule) == (&checked.clause, &checked.rule) => {
                last.took += checked.took;
            }
            Some(_) | None => self.checked.push(checked),
        }
        for found in findings {
            match self.findings.last_mut() {
                Some(last) if (&last.clause, &last.rule) == (&found.clause, &found.rule) => {
                    last.count += found.count;
                    last.examples.extend(found.examples);
                    last.examples.truncate(rules::EXAMPLES);
                }
                Some(_) | None => self.findings.push(found),
            }
        }
    }

    /// The sample in words, `10 of 4050 warehouses`; `None` if all warehouses were checked.
    #[must_use]
    pub fn sample(&self) -> Option<String> {
        let (some, all) = (self.sampled.len(), self.loaded.warehouses);
        (some > 0).then(|| format!("{some} of {all} warehouses"))
    }
}

/// A rule that was checked.
#[derive(Debug, Clone, PartialEq)]
pub struct CheckedRule {
    /// Clause of the specification, such as `3.3.2.4`.
    pub clause: String,
    pub rule: String,
    pub took: Duration,
}

/// A violated rule with examples.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Finding {
    /// Clause of the specification, such as `3.3.2.4`.
    pub clause: String,
    pub rule: String,
    /// Number of rows, or groups of rows, that violate the rule.
    pub count: u64,
    /// One or two of these rows or groups.
    pub examples: Vec<String>,
}

/// Writes one line, with the first example.
impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            clause,
            rule,
            count,
            examples,
        } = self;
        let example = examples.first().map(String::as_str).unwrap_or_default();
        write!(f, "§{clause} {rule}: {count} times, {example}")
    }
}

/// A check that could not be completed.
#[derive(Debug, thiserror::Error)]
pub enum CheckError {
    #[error(transparent)]
    Connect(#[from] ConnectError),
    #[error("{what}: {error}")]
    Sql {
        /// The rule, or the statement.
        what: String,
        error: SqlError,
    },
    /// The database has no complete load. The text describes its state.
    #[error("{0}")]
    NotThere(String),
    #[error("stopped before all rules were checked")]
    Stopped,
}

/// A unit of work: one or more statements of one rule.
enum Task {
    Rule(Rule),
    Profile(Profile),
}

impl Check<'_> {
    /// Executes all statements and collects their results.
    pub fn run(&self) -> Result<Report, CheckError> {
        let mut session = (self.open)()?;
        let loaded = complete(&mut *session)?;
        let after_load = match (self.after_load, self.scope) {
            (Some(known), _) => known,
            // A search for signs of a run would read whole tables.
            (None, Scope::Sample) => false,
            (None, Scope::All | Scope::Conditions) => !has_run(&mut *session)?,
        };
        let sampled = self.scope.sampled(loaded.warehouses);
        let tasks = tasks(&loaded, after_load, self.scope, &sampled);
        let sessions = self.sessions(session, tasks.len())?;
        let total = tasks.len();
        let queue = TaskQueue {
            check: self,
            total,
            queue: Mutex::new(tasks.into_iter().enumerate().collect()),
            done: Mutex::new(Vec::new()),
        };
        thread::scope(|scope| {
            for session in sessions {
                let queue = &queue;
                scope.spawn(move || queue.work(session));
            }
        });
        let mut done = queue
            .done
            .into_inner()
            .unwrap_or_else(|poisoned| poisoned.into_inner());
        done.sort_by_key(|(at, _)| *at);
        let mut report = Report {
            loaded,
            after_load,
            sampled,
            checked: Vec::new(),
            findings: Vec::new(),
        };
        let is_over = done.len() == total;
        for (_, outcome) in done {
            let (checked, findings) = outcome?;
            report.add(checked, findings);
        }
        if !is_over {
            return Err(CheckError::Stopped);
        }
        Ok(report)
    }

    fn sessions(
        &self,
        first: Box<dyn Session>,
        tasks: usize,
    ) -> Result<Vec<Box<dyn Session>>, CheckError> {
        let mut sessions = vec![first];
        while sessions.len() < (self.sessions as usize).min(tasks) {
            sessions.push((self.open)()?);
        }
        Ok(sessions)
    }
}

type Outcome = Result<(CheckedRule, Vec<Finding>), CheckError>;

/// State that the checking threads share.
struct TaskQueue<'a> {
    check: &'a Check<'a>,
    total: usize,
    queue: Mutex<VecDeque<(usize, Task)>>,
    done: Mutex<Vec<(usize, Outcome)>>,
}

impl TaskQueue<'_> {
    fn work(&self, mut session: Box<dyn Session>) {
        while !(self.check.stop)() {
            let next = self
                .queue
                .lock()
                .unwrap_or_else(|poisoned| poisoned.into_inner())
                .pop_front();
            let Some((at, task)) = next else { return };
            let before = Instant::now();
            let found = task.find(&mut *session);
            let outcome = found.map(|findings| (task.checked(before.elapsed()), findings));
            let over = outcome.is_err();
            let mut done = self
                .done
                .lock()
                .unwrap_or_else(|poisoned| poisoned.into_inner());
            done.push((at, outcome));
            (self.check.on_progress)(self.total, done.len());
            if over {
                return;
            }
        }
    }
}

impl Task {
    fn find(&self, session: &mut dyn Session) -> Result<Vec<Finding>, CheckError> {
        let what = match self {
            Self::Rule(rule) => format!("{} ({})", rule.clause, rule.rule),
            Self::Profile(profile) => profile.name(),
        };
        let found = match self {
            Self::Rule(rule) => rule.find(session),
            Self::Profile(profile) => profile.find(session),
        };
        found.map_err(|error| CheckError::Sql { what, error })
    }

    fn checked(&self, took: Duration) -> CheckedRule {
        match self {
            Self::Rule(rule) => CheckedRule {
                clause: rule.clause.clone(),
                rule: rule.rule.to_owned(),
                took,
            },
            Self::Profile(profile) => CheckedRule {
                clause: profile::CLAUSE.to_owned(),
                rule: profile.name(),
                took,
            },
        }
    }
}

/// All tasks. The conditions come first, because they include the slowest statements.
fn tasks(loaded: &LoadInfo, after_load: bool, scope: Scope, sampled: &[u32]) -> Vec<Task> {
    let (rules, profiles) = match scope {
        Scope::All => (rules::all(), profile::all(loaded.warehouses, after_load)),
        Scope::Conditions => (rules::conditions(), Vec::new()),
        Scope::Sample => (rules::of_sample(sampled), Vec::new()),
    };
    rules
        .into_iter()
        .filter(|rule| after_load || !rule.after_load_only)
        .flat_map(|rule| match scope {
            Scope::All | Scope::Conditions => rule.in_ranges(loaded.warehouses),
            Scope::Sample => vec![rule],
        })
        .map(Task::Rule)
        .chain(profiles.into_iter().map(Task::Profile))
        .collect()
}

/// Returns the parameters of the load. Fails if the load is not complete.
fn complete(session: &mut dyn Session) -> Result<LoadInfo, CheckError> {
    let what = || "bmsql_config".to_owned();
    let state = state::look(session).map_err(|error| CheckError::Sql {
        what: what(),
        error,
    })?;
    if let State::Complete(loaded) = state {
        return Ok(loaded);
    }
    Err(CheckError::NotThere(state.to_string()))
}

/// Whether transactions have changed the rows. Missing rows are not a sign of transactions: the
/// load may be at fault.
fn has_run(session: &mut dyn Session) -> Result<bool, CheckError> {
    const SIGNS: &str = "select \
        (select count(*) from bmsql_district where d_next_o_id > 3001 or d_ytd > 30000.005) + \
        (select count(*) from bmsql_new_order where no_o_id > 3000) + \
        (select count(*) from bmsql_customer where c_payment_cnt > 1 or c_delivery_cnt > 0)";
    let mut rows = Rows::new();
    let signs = session.run(SIGNS, &mut rows).and_then(|_| rows.int(0, 0));
    let what = "signs of a run".to_owned();
    Ok(signs.map_err(|error| CheckError::Sql { what, error })? > 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::nurand::Constants;

    #[test]
    fn a_sample_reaches_from_the_first_warehouse_to_the_last() {
        assert_eq!(Scope::Sample.sampled(3), [1, 2, 3]);
        let of_many = Scope::Sample.sampled(4050);
        assert_eq!((of_many.len(), of_many[0], of_many[9]), (10, 1, 4050));
        assert!(of_many.is_sorted_by(|a, b| a < b), "{of_many:?}");
        assert_eq!(Scope::Conditions.sampled(4050), [0; 0]);
        assert_eq!(Scope::Sample.sampled(u32::MAX).last(), Some(&u32::MAX));
    }

    #[test]
    fn ranges_of_a_rule_are_reported_together() {
        let checked = |clause: &str| CheckedRule {
            clause: clause.to_owned(),
            rule: "r".to_owned(),
            took: Duration::from_secs(1),
        };
        let found = |clause: &str, examples: &[&str]| Finding {
            clause: clause.to_owned(),
            rule: "r".to_owned(),
            count: 5,
            examples: examples.iter().map(|&one| one.to_owned()).collect(),
        };
        let mut report = Report {
            loaded: LoadInfo {
                warehouses: 101,
                constants: Constants {
                    last_name: 0,
                    customer: 0,
                    item: 0,
                },
                origin: None,
            },
            after_load: false,
            sampled: vec![],
            checked: vec![],
            findings: vec![],
        };
        report.add(checked("1"), vec![found("1", &["a"])]);
        report.add(checked("1"), vec![]);
        report.add(checked("1"), vec![found("1", &["b", "c"])]);
        report.add(checked("2"), vec![found("2", &["d"])]);
        let took: Vec<u64> = report
            .checked
            .iter()
            .map(|one| one.took.as_secs())
            .collect();
        assert_eq!(took, [3, 1]);
        let counts: Vec<u64> = report.findings.iter().map(|one| one.count).collect();
        assert_eq!(counts, [10, 5]);
        assert_eq!(report.findings[0].examples, ["a", "b"]);
    }

    #[test]
    fn only_the_time_of_a_sample_does_not_depend_on_the_number_of_warehouses() {
        let takes = |scope: Scope| (scope.estimate(50), scope.estimate(5000));
        for scope in [Scope::All, Scope::Conditions] {
            let (few, many) = takes(scope);
            assert_eq!(many, few * 100, "{scope:?}");
        }
        let (few, many) = takes(Scope::Sample);
        assert_eq!(few, many);
    }
}
