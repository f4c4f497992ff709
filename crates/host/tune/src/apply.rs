//! Makes the steps of a plan, each after its record is on the disk.

use std::collections::BTreeSet;
use std::fmt;
use std::io;
use std::time::Duration;

use crate::about::Stage;
use crate::host::Host;
use crate::identity::{Changed, Identity};
use crate::journal::{self, Journal, JournalError, Mark, Record, State};
use crate::knobs::IRQBALANCE;
use crate::plan::{LoadError, Plan};
use crate::restore::{self, read_all, same};
use crate::step::Step;
use crate::store::Store;
use crate::target::Target;
use crate::undo::{self, UndoReport};

/// What happens to the steps already made when one fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnFailure {
    #[default]
    Undo,
    Keep,
}

/// Called with the journal's id before the first change: here the CLI starts the process that will
/// call [`undo_if_unconfirmed`](crate::confirm::undo_if_unconfirmed).
pub type Started<'a> = &'a mut dyn FnMut(&str) -> io::Result<()>;

/// How a plan is applied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    pub on_failure: OnFailure,
    /// Seconds within which a plan that may cut the connection has to be confirmed, from its last
    /// change on. Other plans need no confirmation.
    pub confirm_within_s: Option<u64>,
    /// Seconds since 1970, for the history.
    pub now_s: u64,
}

/// A plan whose steps were made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Applied {
    /// The name for `undo` and `verify`.
    pub id: String,
    /// If set, the plan is undone after so many seconds unless
    /// [`confirm`](crate::confirm::confirm) is called, which also writes the files for the next
    /// boot.
    pub confirm_within_s: Option<u64>,
    /// Interrupts that only the kernel places.
    pub managed: Vec<String>,
    /// Steps that were skipped, because their interrupt or queue went with the queues that the plan
    /// removed.
    pub absent: Vec<String>,
}

#[derive(Debug, thiserror::Error)]
pub enum ApplyError {
    #[error(transparent)]
    Plan(#[from] LoadError),
    #[error("the host has changed since the plan was made; make a new plan:{}", lines(.0))]
    Changed(Vec<Changed>),
    #[error("plan {0} was interrupted or not confirmed: undo it first")]
    Unfinished(String),
    #[error("the plan may cut the connection to this host: it needs a time to confirm it")]
    NeedsConfirmation,
    #[error("{0} cannot be read: {1}; nothing was changed")]
    Read(Target, io::Error),
    #[error("the journal cannot be written: {0}; nothing was changed")]
    Journal(io::Error),
    #[error(transparent)]
    History(#[from] JournalError),
    #[error("the process that undoes the plan cannot be started: {0}; nothing was changed")]
    Watch(io::Error),
    #[error(transparent)]
    Failed(Box<Failure>),
}

/// A step that was not made, and the result of undoing the steps before it.
#[derive(Debug, thiserror::Error)]
#[error("{step}: {error}{}", undone(undo.as_ref()))]
pub struct Failure {
    pub id: String,
    pub step: String,
    pub error: StepError,
    /// `None` if the steps were kept.
    pub undo: Option<UndoReport>,
}

/// Why a step was not made.
#[derive(Debug, thiserror::Error)]
pub enum StepError {
    #[error("{0} cannot be read: {1}")]
    Read(Target, io::Error),
    #[error("{}", restore::refused(.0, .1))]
    Write(Target, io::Error),
    #[error("the journal cannot be written: {0}")]
    Journal(io::Error),
    #[error("{target} changed from {was} to {found} while the plan was applied")]
    Moved {
        target: Target,
        was: String,
        found: String,
    },
    #[error("{target} shows {got} after {asked} was written")]
    NotTaken {
        target: Target,
        asked: String,
        got: String,
    },
}

fn lines(changed: &[Changed]) -> String {
    changed
        .iter()
        .map(|changed| format!("\n  {changed}"))
        .collect()
}

fn undone(report: Option<&UndoReport>) -> &'static str {
    match report {
        None => "; the steps before it were kept",
        Some(report) if report.is_complete => "; all steps were undone",
        Some(_) => "; not all steps could be undone: run undo again",
    }
}

/// Applies a plan. Files for the next boot are written only once the plan is confirmed, if it needs
/// that: a restart then ends every change.
///
/// # Errors
/// Before [`Failed`](ApplyError::Failed), nothing was changed.
pub fn apply(
    plan: &Plan,
    found: &Identity,
    host: &mut dyn Host,
    store: &mut dyn Store,
    options: Options,
    started: Started,
) -> Result<Applied, ApplyError> {
    plan.check()?;
    check_history(store)?;
    check_facts(plan, found, host)?;
    let confirm_within_s = match (plan.needs_confirmation(), options.confirm_within_s) {
        (false, _) => None,
        (true, None) => return Err(ApplyError::NeedsConfirmation),
        (true, Some(seconds)) => Some(seconds),
    };
    let mut journal = begin(plan, host, store, options.now_s, confirm_within_s)?;
    if let Err(error) = started(&journal.id) {
        // The journal has no step, and so is nothing to undo.
        return Err(ApplyError::Watch(error));
    }
    let is_now = |step: &Step| confirm_within_s.is_none() || !step.target.outlives_the_boot();
    let made = make(&mut journal, host, store, is_now).and_then(|()| {
        let last = plan.steps.len().saturating_sub(1);
        let begun = begin_deadline(&mut journal, host, store);
        let applied = begun.and_then(|()| journal.append(store, Record::Applied));
        applied.map_err(|error| (last, StepError::Journal(error)))
    });
    finish(made, &mut journal, host, store, options.on_failure)?;
    Ok(Applied {
        managed: marked(&journal, |mark| mark.is_managed),
        absent: marked(&journal, |mark| mark.is_absent),
        id: journal.id,
        confirm_within_s,
    })
}

/// Starts the time for the confirmation, once the changes are made: an operator has all of it, even
/// if the changes took long.
fn begin_deadline(journal: &mut Journal, host: &dyn Host, store: &mut dyn Store) -> io::Result<()> {
    let Some(seconds) = journal.confirm_within_s else {
        return Ok(());
    };
    let at = host.uptime().saturating_add(Duration::from_secs(seconds));
    let at_ms = u64::try_from(at.as_millis()).unwrap_or(u64::MAX);
    journal.append(store, Record::Deadline { at_ms })
}

/// Undoes what was made if a step failed.
pub(crate) fn finish(
    made: Result<(), (usize, StepError)>,
    journal: &mut Journal,
    host: &mut dyn Host,
    store: &mut dyn Store,
    on_failure: OnFailure,
) -> Result<(), ApplyError> {
    let Err((at, error)) = made else {
        return Ok(());
    };
    let text = error.to_string();
    let step = journal
        .plan
        .steps
        .get(at)
        .map_or_else(String::new, Step::name);
    // Undo does not need this record.
    let _ = journal.append(
        store,
        Record::Failed {
            step: at,
            error: text,
        },
    );
    let undo = match on_failure {
        OnFailure::Undo => Some(undo::run(journal, host, store, undo::Conflicts::Report)),
        OnFailure::Keep => {
            // Kept steps count as a plan that was applied, or that waits. Without these records,
            // they have to be undone before another plan.
            let _ = if journal.confirm_within_s.is_none() {
                let at_s = journal.at_s;
                journal.append(store, Record::Confirmed { at_s })
            } else {
                begin_deadline(journal, host, store)
            };
            None
        }
    };
    Err(ApplyError::Failed(Box::new(Failure {
        id: journal.id.clone(),
        step,
        error,
        undo,
    })))
}

/// Names of the steps whose marks fulfil a condition.
fn marked(journal: &Journal, is_wanted: impl Fn(&Mark) -> bool) -> Vec<String> {
    let steps = journal.plan.steps.iter().zip(&journal.marks);
    let wanted = steps.filter(|(_, mark)| is_wanted(mark));
    wanted.map(|(step, _)| step.name()).collect()
}

/// Plans that ended half-way have to be undone before another one is applied.
fn check_history(store: &dyn Store) -> Result<(), ApplyError> {
    for id in store.ids().map_err(ApplyError::Journal)? {
        let state = Journal::load(store, &id)?.map(|journal| journal.state());
        match state {
            Some(State::Interrupted | State::Unconfirmed | State::PartlyUndone) => {
                return Err(ApplyError::Unfinished(id));
            }
            Some(State::Nothing | State::Applied | State::Conflicts | State::Undone) | None => {}
        }
    }
    Ok(())
}

fn check_facts(plan: &Plan, found: &Identity, host: &dyn Host) -> Result<(), ApplyError> {
    let mut changed = plan.facts.differences(found);
    for step in &plan.steps {
        let read = host.read(&step.target);
        let raw = read.map_err(|error| ApplyError::Read(step.target.clone(), error))?;
        if !drifts(plan, step) && !same(&step.target, raw.as_deref(), step.was.as_deref()) {
            changed.push(Changed {
                what: step.target.to_string(),
                planned: shown(step.was.as_deref()),
                found: shown(raw.as_deref()),
            });
        }
    }
    if changed.is_empty() {
        return Ok(());
    }
    Err(ApplyError::Changed(changed))
}

/// Whether irqbalance, which the plan stops first, may change the value at any time. Undo restores
/// what is found when the plan is applied.
fn drifts(plan: &Plan, step: &Step) -> bool {
    let stops =
        |step: &Step| matches!(&step.target, Target::Service { unit, .. } if unit == IRQBALANCE);
    step.target.irq().is_some() && plan.steps.iter().any(stops)
}

fn shown(raw: Option<&str>) -> String {
    raw.map_or_else(
        || "nothing".to_owned(),
        |raw| format!("`{}`", raw.trim_end()),
    )
}

fn begin(
    plan: &Plan,
    host: &dyn Host,
    store: &mut dyn Store,
    at_s: u64,
    confirm_within_s: Option<u64>,
) -> Result<Journal, ApplyError> {
    let boot = host.boot_id().map_err(ApplyError::Journal)?;
    let ids = store.ids().map_err(ApplyError::Journal)?;
    let number = |id: &String| id.split_once('-')?.0.parse::<u32>().ok();
    let next = ids.iter().filter_map(number).max().unwrap_or(0) + 1;
    let id = format!("{next:04}-{}", plan.id);
    let record = Record::Begin {
        plan: Box::new(plan.clone()),
        boot,
        at_s,
        confirm_within_s,
    };
    let line = journal::line(&record).map_err(ApplyError::Journal)?;
    // Every step has up to six records; each holds less than the plan says about it.
    let room = 7 * (line.len() as u64 + 4096);
    store.create(&id, room).map_err(ApplyError::Journal)?;
    store.append(&id, &line).map_err(ApplyError::Journal)?;
    let journal = Journal::load(store, &id)?;
    journal.ok_or_else(|| ApplyError::Journal(io::ErrorKind::InvalidData.into()))
}

/// Makes the steps for which `is_now` holds and that were not made before.
pub(crate) fn make(
    journal: &mut Journal,
    host: &mut dyn Host,
    store: &mut dyn Store,
    is_now: impl Fn(&Step) -> bool,
) -> Result<(), (usize, StepError)> {
    let steps = journal.plan.steps.clone();
    // Values that changed with those of earlier steps, and those that went with their queue.
    let mut moved: BTreeSet<&Target> = BTreeSet::new();
    let mut freed: BTreeSet<&Target> = BTreeSet::new();
    for (at, step) in steps.iter().enumerate() {
        let is_made = journal
            .marks
            .get(at)
            .is_some_and(|mark| mark.after.is_some());
        if is_now(step) && !is_made {
            let may_have_moved = moved.contains(&step.target) || drifts(&journal.plan, step);
            let made = if freed.contains(&step.target) && is_gone(host, &step.target) {
                let record = Record::Absent { step: at };
                journal.append(store, record).map_err(StepError::Journal)
            } else {
                make_step(journal, host, store, at, step, may_have_moved)
            };
            made.map_err(|error| (at, error))?;
        }
        moved.extend(&step.coupled);
        if step.stage == Stage::Queues {
            freed.extend(&step.coupled);
        }
    }
    Ok(())
}

/// Whether the host does not have a value any more.
fn is_gone(host: &dyn Host, target: &Target) -> bool {
    host.read(target).is_ok_and(|found| found.is_none())
}

fn make_step(
    journal: &mut Journal,
    host: &mut dyn Host,
    store: &mut dyn Store,
    at: usize,
    step: &Step,
    may_have_moved: bool,
) -> Result<(), StepError> {
    let read = |host: &dyn Host| {
        read_all(host, step).map_err(|(target, error)| StepError::Read(target, error))
    };
    let begun = journal.marks.get(at).and_then(|mark| mark.saved.clone());
    if begun.is_none() {
        let saved = read(host)?;
        let found = saved.first().and_then(Option::as_deref);
        if !may_have_moved && !same(&step.target, found, step.was.as_deref()) {
            return Err(StepError::Moved {
                target: step.target.clone(),
                was: shown(step.was.as_deref()),
                found: shown(found),
            });
        }
        let record = Record::Write { step: at, saved };
        journal.append(store, record).map_err(StepError::Journal)?;
    }
    if let Err(error) = host.write(&step.target, Some(&step.now)) {
        if restore::is_managed(&step.target, &error) {
            let record = Record::Managed { step: at };
            return journal.append(store, record).map_err(StepError::Journal);
        }
        return Err(StepError::Write(step.target.clone(), error));
    }
    let after = read(host)?;
    let got = after.first().and_then(Clone::clone);
    let record = Record::Wrote { step: at, after };
    journal.append(store, record).map_err(StepError::Journal)?;
    let form = step.target.form();
    if got
        .as_deref()
        .is_some_and(|got| form.accepts(&step.now, got))
    {
        return Ok(());
    }
    Err(StepError::NotTaken {
        target: step.target.clone(),
        asked: shown(Some(&step.now)),
        got: shown(got.as_deref()),
    })
}

impl fmt::Display for Applied {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "applied as {}", self.id)?;
        for irq in &self.managed {
            write!(f, "\n  {irq}: only the kernel places this interrupt")?;
        }
        for name in &self.absent {
            write!(f, "\n  {name}: gone with the queues that the plan removed")?;
        }
        Ok(())
    }
}
