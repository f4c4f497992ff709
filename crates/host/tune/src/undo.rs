//! Puts back what a journal holds, the last step first.
//!
//! Undo may be repeated, after a crash or a restart at any point. A value that is neither what the
//! plan wrote nor what was before was set by another program and is left.

use std::collections::BTreeSet;
use std::fmt;

use crate::form::Form;
use crate::host::Host;
use crate::journal::{self, Journal, JournalError, Mark, Record, Texts};
use crate::persist::{self, grub};
use crate::restore::{restore, same};
use crate::step::Step;
use crate::store::Store;
use crate::target::Target;

/// What to do with values that another program changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Conflicts {
    /// Keep the step open, so that undo can be repeated once the conflict is resolved.
    Report,
    /// Accept the other program's value, and a value that cannot be restored.
    Accept,
}

/// What happened to one step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    Restored,
    /// The old value was there already.
    AlreadyBack,
    /// The device or its interrupt is gone.
    Gone,
    /// The value ended with the boot.
    EndedWithBoot,
    /// The number may be that of another interrupt since the restart.
    Renumbered,
    /// Left, because another program or plan changed it.
    Conflict {
        found: String,
    },
    /// As [`Conflict`](Self::Conflict), and the user accepts it.
    Accepted {
        found: String,
    },
    /// As [`Failed`](Self::Failed), and the user accepts it.
    LeftAsIs(String),
    Failed(String),
    /// Not tried: the value of a later step that is not undone would change with it.
    Waits {
        on: Target,
    },
}

impl Outcome {
    /// Whether nothing is left to do.
    #[must_use]
    pub fn is_done(&self) -> bool {
        !matches!(
            self,
            Self::Conflict { .. } | Self::Failed(_) | Self::Waits { .. }
        )
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Restored => f.write_str("restored"),
            Self::AlreadyBack => f.write_str("already has its old value"),
            Self::Gone => f.write_str("no longer exists"),
            Self::EndedWithBoot => f.write_str("ended with the restart"),
            Self::Renumbered => f.write_str(
                "left: the number may be another interrupt's since the restart; what was set at boot \
                 ends with the next restart",
            ),
            Self::Conflict { found } => write!(f, "left: another program set it to {found}"),
            Self::Accepted { found } => write!(f, "left at {found}"),
            Self::LeftAsIs(error) => write!(f, "left: {error}"),
            Self::Failed(error) => f.write_str(error),
            Self::Waits { on } => write!(f, "waits until {on} is undone"),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UndoneStep {
    pub name: String,
    pub target: Target,
    pub outcome: Outcome,
    /// Sides that were not restored, and why.
    pub notes: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UndoReport {
    pub id: String,
    /// In the order in which they were undone.
    pub steps: Vec<UndoneStep>,
    /// Values were restored although the journal could not be written.
    pub journal_error: Option<String>,
    pub is_complete: bool,
}

/// Undoes a plan. An application that never changed anything gives an empty report.
///
/// # Errors
/// The journal does not exist or is damaged. What happens to single steps is in the report.
pub fn undo(
    id: &str,
    host: &mut dyn Host,
    store: &mut dyn Store,
    conflicts: Conflicts,
) -> Result<UndoReport, JournalError> {
    let id = journal::find(store, id)?;
    match Journal::load(store, &id)? {
        Some(mut journal) => Ok(run(&mut journal, host, store, conflicts)),
        None => Ok(UndoReport {
            id,
            steps: Vec::new(),
            journal_error: None,
            is_complete: true,
        }),
    }
}

pub(crate) fn run(
    journal: &mut Journal,
    host: &mut dyn Host,
    store: &mut dyn Store,
    conflicts: Conflicts,
) -> UndoReport {
    let mut report = UndoReport {
        id: journal.id.clone(),
        steps: Vec::new(),
        journal_error: None,
        is_complete: true,
    };
    let boot = host
        .boot_id()
        .map_err(|error| format!("the boot cannot be identified: {error}"));
    // Targets of later steps that are not undone.
    let mut blocked: BTreeSet<Target> = BTreeSet::new();
    for at in journal.open() {
        let mut pass = Pass {
            journal,
            store,
            error: &mut report.journal_error,
        };
        let Some(undone) = pass.step(host, at, &boot, &blocked, conflicts) else {
            continue;
        };
        if !undone.outcome.is_done() {
            report.is_complete = false;
            blocked.insert(undone.target.clone());
        }
        report.steps.push(undone);
    }
    if report.is_complete && !journal.is_finished {
        let finished = journal.append(store, Record::Finished);
        report.journal_error = report
            .journal_error
            .or(finished.err().map(|e| e.to_string()));
    }
    report
}

/// A later plan that changed the same value.
fn later(store: &dyn Store, id: &str, target: &Target) -> Option<String> {
    let ids = store.ids().ok()?;
    let later = ids.into_iter().rev().find(|other| {
        let journal = Journal::load(store, other).ok().flatten();
        let changed = journal.is_some_and(|journal| {
            let mut steps = journal.plan.steps.iter().zip(&journal.marks);
            steps.any(|(step, mark)| mark.is_open() && step.target == *target)
        });
        other.as_str() > id && changed
    })?;
    Some(format!(
        "plan {later} changed it later: undo that plan first"
    ))
}

struct Pass<'a> {
    journal: &'a mut Journal,
    store: &'a mut dyn Store,
    error: &'a mut Option<String>,
}

impl Pass<'_> {
    /// Values are restored even if the journal cannot be written: undo can be repeated.
    fn record(&mut self, record: Record) {
        if let Err(error) = self.journal.append(self.store, record) {
            self.error.get_or_insert(error.to_string());
        }
    }

    /// The steps of all plans that wrote files which set values at boot.
    fn boot_files(&self) -> Vec<Step> {
        let ids = self.store.ids().unwrap_or_default();
        let others = ids.into_iter().filter(|id| *id != self.journal.id);
        let others = others.filter_map(|id| Journal::load(self.store, &id).ok().flatten());
        let mut files: Vec<Step> = self.journal.boot_files().cloned().collect();
        for other in others {
            files.extend(other.boot_files().cloned());
        }
        files
    }

    /// Whether an earlier step recorded this value of the target.
    fn was_before(&self, at: usize, target: &Target, found: &str) -> bool {
        let steps = self.journal.plan.steps.iter().zip(&self.journal.marks);
        let saved = steps.take(at).flat_map(|(step, mark)| {
            let texts = mark.saved.iter().flatten();
            step.targets().zip(texts)
        });
        let mut texts = saved.filter(|(other, _)| *other == target);
        texts.any(|(_, text)| same(target, Some(found), text.as_deref()))
    }

    /// Undoes a step and records the result.
    fn step(
        &mut self,
        host: &mut dyn Host,
        at: usize,
        boot: &Result<String, String>,
        blocked: &BTreeSet<Target>,
        conflicts: Conflicts,
    ) -> Option<UndoneStep> {
        let (step, mark) = self.journal.step(at)?;
        let (step, mark) = (step.clone(), mark.clone());
        let (mut outcome, mut notes) = match boot {
            Err(error) => (Outcome::Failed(error.clone()), Vec::new()),
            Ok(boot) => match step
                .coupled
                .iter()
                .find(|coupled| blocked.contains(*coupled))
            {
                Some(coupled) => (
                    Outcome::Waits {
                        on: coupled.clone(),
                    },
                    Vec::new(),
                ),
                None => {
                    let is_same_boot = *boot == self.journal.boot;
                    self.undo(host, at, &step, &mark, is_same_boot)
                }
            },
        };
        if let Outcome::Failed(error) = &outcome
            && conflicts == Conflicts::Accept
            && boot.is_ok()
        {
            outcome = Outcome::LeftAsIs(error.clone());
        }
        if let Outcome::Conflict { found } = &outcome {
            let found = found.clone();
            if conflicts == Conflicts::Accept {
                outcome = Outcome::Accepted { found };
            } else {
                notes.extend(later(self.store, &self.journal.id, &step.target));
                // Undo may be repeated until it is complete: the journal must not grow.
                if !mark.has_conflict {
                    let found = Some(found);
                    self.record(Record::Conflict { step: at, found });
                }
            }
        }
        if outcome.is_done() {
            let outcome = outcome.to_string();
            self.record(Record::Undone { step: at, outcome });
        }
        Some(UndoneStep {
            name: step.name(),
            target: step.target,
            outcome,
            notes,
        })
    }

    fn undo(
        &mut self,
        host: &mut dyn Host,
        at: usize,
        step: &Step,
        mark: &Mark,
        is_same_boot: bool,
    ) -> (Outcome, Vec<String>) {
        let done = |outcome| (outcome, Vec::new());
        let Some(saved) = &mark.saved else {
            return done(Outcome::AlreadyBack);
        };
        let is_kept = is_same_boot || step.target.outlives_the_boot();
        // The same number may be another interrupt in this boot, and only a file of Saiga's can
        // have set a value again: that of this plan, or of one for values that it found.
        let files = if is_kept {
            Vec::new()
        } else {
            self.boot_files()
        };
        let is_other = |irq| !is_kept && !persist::sets_at_boot(&files, host, irq);
        if files.is_empty() && !is_kept {
            return done(Outcome::EndedWithBoot);
        }
        if step.target.irq().is_some_and(is_other) {
            let was_set = persist::places_interrupts(&files);
            return done(if was_set {
                Outcome::Renumbered
            } else {
                Outcome::EndedWithBoot
            });
        }
        let found = match host.read(&step.target) {
            Ok(found) => found,
            Err(error) => return done(Outcome::Failed(format!("cannot be read: {error}"))),
        };
        let old = saved.first().and_then(Option::as_deref);
        let is_old = same(&step.target, found.as_deref(), old);
        let is_ours = is_ours(step, mark, found.as_deref());
        if found.is_none() && old.is_some() && !matches!(step.target, Target::OwnFile { .. }) {
            return done(Outcome::Gone);
        }
        if !is_old && !is_ours {
            // Undone before, with the steps below it, when the journal could not be written.
            if found
                .as_deref()
                .is_some_and(|found| self.was_before(at, &step.target, found))
            {
                return done(Outcome::AlreadyBack);
            }
            if !is_kept {
                return done(Outcome::EndedWithBoot);
            }
            let found = found.unwrap_or_else(|| "nothing".to_owned());
            return done(Outcome::Conflict {
                found: found.trim_end().to_owned(),
            });
        }
        // The write may have failed after the kernel had changed the coupled values.
        let is_begun = is_kept && (mark.undoing.is_some() || mark.has_failed);
        let is_touched = is_ours || is_begun;
        if is_old && !is_touched {
            return done(Outcome::AlreadyBack);
        }
        let to = match &mark.undoing {
            _ if !is_kept => after_restart(step, saved),
            Some(to) => to.clone(),
            None => wanted(host, step, mark, saved),
        };
        // The watching process repeats an undo until it is complete: the journal must not grow.
        if mark.undoing.as_ref() != Some(&to) {
            let to = to.clone();
            self.record(Record::Undoing { step: at, to });
        }
        match restore(host, step, &to) {
            Ok(mut notes) => {
                if step.target == grub::target() {
                    notes.push(grub::UNDONE.to_owned());
                }
                (Outcome::Restored, notes)
            }
            Err(error) => done(Outcome::Failed(error)),
        }
    }
}

/// Whether `found` is what the step left. If it ended between the write and its record, or undo
/// ended half-way, this is what the write may have left.
fn is_ours(step: &Step, mark: &Mark, found: Option<&str>) -> bool {
    if let Some(after) = &mark.after {
        let after = after.first().and_then(Option::as_deref);
        if mark.undoing.is_none() || same(&step.target, found, after) {
            return same(&step.target, found, after);
        }
    }
    let was = mark.saved.as_ref().and_then(|saved| saved.first());
    let was = was.and_then(Option::as_deref).unwrap_or_default();
    let form = step.target.form();
    found.is_some_and(|found| form.may_come_from(&step.now, was, found))
}

/// What the target and its coupled values are to show. A coupled value that another program changed
/// since keeps its value.
fn wanted(host: &dyn Host, step: &Step, mark: &Mark, saved: &Texts) -> Texts {
    let after = mark.after.as_ref().filter(|_| !mark.has_failed);
    let mut to: Texts = saved.iter().take(1).cloned().collect();
    for (at, (coupled, old)) in step.coupled.iter().zip(saved.iter().skip(1)).enumerate() {
        let found = host.read(coupled).ok().flatten();
        let left = after
            .and_then(|after| after.get(at + 1))
            .map(Option::as_deref);
        let is_foreign = left.is_some_and(|left| !same(coupled, found.as_deref(), left));
        to.push(if is_foreign && found.is_some() {
            found
        } else {
            old.clone()
        });
    }
    to
}

/// As [`wanted`], for a value that a file set again at boot. The kernel chose the coupled values
/// anew, but a coupled value follows from the other.
fn after_restart(step: &Step, saved: &Texts) -> Texts {
    let is_coupled = |target: &Target| target.form() == Form::NonZero;
    let targets = step.targets().enumerate();
    let kept = targets.map(|(at, target)| at == 0 || is_coupled(target));
    let texts = kept
        .zip(saved)
        .map(|(is_kept, text)| text.clone().filter(|_| is_kept));
    texts.collect()
}
