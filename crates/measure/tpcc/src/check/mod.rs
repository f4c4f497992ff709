//! Says whether a database holds what TPC-C wants: the population of §4.3.3.1 and the conditions
//! of §3.3.2.
//!
//! Every statement reads whole tables at once; several sessions share the statements. What holds
//! after a load only is left out when a run has changed the rows. Deliberately absent: any repair.

mod profile;
mod rules;

use std::collections::VecDeque;
use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};

use crate::build::{Open, Stop};
use crate::db::rows::Rows;
use crate::db::{ConnectError, Session, SqlError};
use crate::state::{self, Loaded, State};
use profile::Profile;
use rules::Rule;

/// How a database is checked.
#[derive(Clone, Copy)]
pub struct Check<'a> {
    /// Opens a session with it.
    pub open: Open<'a>,
    /// Sessions that check at the same time.
    pub sessions: u32,
    /// It has been loaded and nothing else: `None` to look.
    pub after_load: Option<bool>,
    /// How much of it.
    pub scope: Scope,
    /// Ends it when it becomes true.
    pub stop: Stop<'a>,
    /// Is told the number of checks, and of those that are done.
    pub on: &'a (dyn Fn(usize, usize) + Sync),
}

/// How much is checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Scope {
    /// Everything.
    #[default]
    All,
    /// The twelve conditions of §3.3.2 and not the population.
    Conditions,
}

impl std::fmt::Debug for Check<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Check")
            .field("after_load", &self.after_load)
            .field("scope", &self.scope)
            .finish_non_exhaustive()
    }
}

/// What was found.
#[derive(Debug, Clone, PartialEq)]
pub struct Report {
    /// What the load says about itself.
    pub loaded: Loaded,
    /// Whether what holds after a load only was checked, too.
    pub after_load: bool,
    /// What was checked, in the order of the clauses.
    pub checked: Vec<Checked>,
    /// What is wrong, in the same order.
    pub findings: Vec<Finding>,
}

/// Something that was checked.
#[derive(Debug, Clone, PartialEq)]
pub struct Checked {
    /// Of the specification: `3.3.2.4`.
    pub clause: String,
    /// What must hold.
    pub rule: String,
    /// How long it took.
    pub took: Duration,
}

/// Something that is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// Of the specification: `3.3.2.4`.
    pub clause: String,
    /// What must hold.
    pub rule: String,
    /// How many rows, or groups of rows, break it.
    pub count: u64,
    /// One or two of them.
    pub examples: Vec<String>,
}

/// Why nothing can be said.
#[derive(Debug, thiserror::Error)]
pub enum CheckError {
    /// There is no session.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// The database could not be asked.
    #[error("{what}: {error}")]
    Sql {
        /// What was asked.
        what: String,
        /// The server's words.
        error: SqlError,
    },
    /// There is nothing to check.
    #[error("{0}")]
    NotThere(String),
    /// The user ended it.
    #[error("stopped before everything was checked")]
    Stopped,
}

/// What can be checked by itself.
enum Task {
    Rule(Rule),
    Profile(Profile),
}

impl Check<'_> {
    /// Checks.
    ///
    /// # Errors
    /// [`CheckError`].
    pub fn run(&self) -> Result<Report, CheckError> {
        let mut session = (self.open)()?;
        let loaded = complete(&mut *session)?;
        let after_load = match self.after_load {
            Some(known) => known,
            None => !has_run(&mut *session)?,
        };
        let tasks = tasks(&loaded, after_load, self.scope);
        let sessions = self.sessions(session, tasks.len())?;
        let total = tasks.len();
        let crew = Crew {
            check: self,
            total,
            queue: Mutex::new(tasks.into_iter().enumerate().collect()),
            done: Mutex::new(Vec::new()),
        };
        thread::scope(|scope| {
            for session in sessions {
                let crew = &crew;
                scope.spawn(move || crew.work(session));
            }
        });
        let mut done = crew
            .done
            .into_inner()
            .unwrap_or_else(|poisoned| poisoned.into_inner());
        done.sort_by_key(|(at, _)| *at);
        let mut report = Report {
            loaded,
            after_load,
            checked: Vec::new(),
            findings: Vec::new(),
        };
        for (_, outcome) in done {
            let (checked, findings) = outcome?;
            report.checked.push(checked);
            report.findings.extend(findings);
        }
        if report.checked.len() < total {
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

type Outcome = Result<(Checked, Vec<Finding>), CheckError>;

/// What the sessions share.
struct Crew<'a> {
    check: &'a Check<'a>,
    total: usize,
    queue: Mutex<VecDeque<(usize, Task)>>,
    done: Mutex<Vec<(usize, Outcome)>>,
}

impl Crew<'_> {
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
            (self.check.on)(self.total, done.len());
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

    fn checked(&self, took: Duration) -> Checked {
        match self {
            Self::Rule(rule) => Checked {
                clause: rule.clause.clone(),
                rule: rule.rule.to_owned(),
                took,
            },
            Self::Profile(profile) => Checked {
                clause: profile::CLAUSE.to_owned(),
                rule: profile.name(),
                took,
            },
        }
    }
}

/// Conditions first; the statements that take long are among them.
fn tasks(loaded: &Loaded, after_load: bool, scope: Scope) -> Vec<Task> {
    let (rules, profiles) = match scope {
        Scope::All => (rules::all(), profile::all(loaded.warehouses, after_load)),
        Scope::Conditions => (rules::conditions(), Vec::new()),
    };
    rules
        .into_iter()
        .filter(|rule| after_load || !rule.after_load_only)
        .map(Task::Rule)
        .chain(profiles.into_iter().map(Task::Profile))
        .collect()
}

/// What the load says about itself, if it is complete.
fn complete(session: &mut dyn Session) -> Result<Loaded, CheckError> {
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

/// Whether transactions have changed the rows. What a broken load leaves is no sign of it.
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
