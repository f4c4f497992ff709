//! The journal of one application of a plan: what was before each write, and what was undone.
//!
//! One JSON record a line. `write` is on the disk before the value is written, so every change that
//! was made has a record of what to put back. A line that is torn at the end never had its effect.

use std::io;

use serde::{Deserialize, Serialize};

use crate::persist;
use crate::plan::Plan;
use crate::step::Step;
use crate::store::Store;

/// Raw texts of a step's target and of its coupled values; `None` for what did not exist.
pub type Texts = Vec<Option<String>>;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "record")]
pub enum Record {
    Begin {
        plan: Box<Plan>,
        boot: String,
        at_s: u64,
        /// Time for the confirmation, if the plan needs one.
        confirm_within_s: Option<u64>,
    },
    /// The step is about to be made.
    Write {
        step: usize,
        saved: Texts,
    },
    /// The step was made, and this is what the kernel shows.
    Wrote {
        step: usize,
        after: Texts,
    },
    /// The kernel does not let the affinity of this interrupt be changed. Nothing was changed.
    Managed {
        step: usize,
    },
    /// The driver removed this value with a queue. Nothing was changed.
    Absent {
        step: usize,
    },
    /// The plan is undone at this time unless it is confirmed, in milliseconds since the boot.
    Deadline {
        at_ms: u64,
    },
    Failed {
        step: usize,
        error: String,
    },
    /// All steps that need no confirmation were made.
    Applied,
    Confirmed {
        at_s: u64,
    },
    /// The step is about to be undone.
    Undoing {
        step: usize,
        to: Texts,
    },
    Undone {
        step: usize,
        outcome: String,
    },
    /// Another program changed the value: it was left.
    Conflict {
        step: usize,
        found: Option<String>,
    },
    /// Nothing is left to undo.
    Finished,
}

/// What the records say about a step.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Mark {
    pub saved: Option<Texts>,
    pub after: Option<Texts>,
    pub is_managed: bool,
    pub is_absent: bool,
    pub has_failed: bool,
    pub undoing: Option<Texts>,
    pub is_undone: bool,
    pub has_conflict: bool,
}

impl Mark {
    /// Whether something may have to be put back.
    #[must_use]
    pub fn is_open(&self) -> bool {
        let is_made = self.saved.is_some() && !self.is_managed && !self.is_absent;
        is_made && !self.is_undone
    }
}

/// All records of one application.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Journal {
    pub id: String,
    pub plan: Plan,
    pub boot: String,
    pub at_s: u64,
    pub confirm_within_s: Option<u64>,
    /// Milliseconds since the boot; `None` until all changes are made.
    pub deadline_ms: Option<u64>,
    /// One for each step of the plan.
    pub marks: Vec<Mark>,
    pub is_applied: bool,
    pub is_confirmed: bool,
    pub is_finished: bool,
}

/// Why a journal cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    #[error("there is no plan `{0}` in the history")]
    Unknown(String),
    #[error("`{name}` is the beginning of {ids}: write more of it")]
    Ambiguous { name: String, ids: String },
    #[error("cannot read the journal of {id}: {error}")]
    Read { id: String, error: io::Error },
    #[error("the journal of {id} is damaged in line {line}: {error}")]
    Damaged {
        id: String,
        line: usize,
        error: String,
    },
}

/// How far an application got.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// Ended before its first change.
    Nothing,
    /// Ended by a crash or a failure between its changes.
    Interrupted,
    /// Undone unless it is confirmed in time.
    Unconfirmed,
    Applied,
    /// Undo ended before it was finished.
    PartlyUndone,
    /// Undo left values that another program had changed.
    Conflicts,
    Undone,
}

impl Journal {
    /// Reads a journal; `None` if the application ended before its first record.
    ///
    /// # Errors
    /// The file cannot be read, or a line other than the last is not a record.
    pub fn load(store: &dyn Store, id: &str) -> Result<Option<Self>, JournalError> {
        let text = store.read(id).map_err(|error| JournalError::Read {
            id: id.to_owned(),
            error,
        })?;
        Self::parse(id, &text)
    }

    fn parse(id: &str, text: &str) -> Result<Option<Self>, JournalError> {
        let mut journal: Option<Self> = None;
        // Without its line end, the last line may be torn.
        let complete = text
            .rfind('\n')
            .map_or("", |end| text.get(..end).unwrap_or(""));
        for (number, line) in complete.lines().enumerate() {
            let damaged = |error: String| JournalError::Damaged {
                id: id.to_owned(),
                line: number + 1,
                error,
            };
            let record = serde_json::from_str(line).map_err(|error| damaged(error.to_string()))?;
            match (&mut journal, record) {
                (
                    None,
                    Record::Begin {
                        plan,
                        boot,
                        at_s,
                        confirm_within_s,
                    },
                ) => {
                    journal = Some(Self {
                        id: id.to_owned(),
                        marks: vec![Mark::default(); plan.steps.len()],
                        plan: *plan,
                        boot,
                        at_s,
                        confirm_within_s,
                        deadline_ms: None,
                        is_applied: false,
                        is_confirmed: false,
                        is_finished: false,
                    });
                }
                (Some(journal), record) => {
                    journal
                        .take(record)
                        .ok_or_else(|| damaged("no such step".to_owned()))?;
                }
                (None, _) => return Err(damaged("the first record is missing".to_owned())),
            }
        }
        Ok(journal)
    }

    /// Adds a record; `None` if it is for a step that the plan does not have.
    fn take(&mut self, record: Record) -> Option<()> {
        match record {
            Record::Begin { .. } => return None,
            Record::Write { step, saved } => self.marks.get_mut(step)?.saved = Some(saved),
            Record::Wrote { step, after } => self.marks.get_mut(step)?.after = Some(after),
            Record::Managed { step } => self.marks.get_mut(step)?.is_managed = true,
            Record::Absent { step } => self.marks.get_mut(step)?.is_absent = true,
            Record::Deadline { at_ms } => self.deadline_ms = Some(at_ms),
            Record::Failed { step, .. } => self.marks.get_mut(step)?.has_failed = true,
            Record::Undoing { step, to } => self.marks.get_mut(step)?.undoing = Some(to),
            Record::Undone { step, .. } => self.marks.get_mut(step)?.is_undone = true,
            Record::Conflict { step, .. } => self.marks.get_mut(step)?.has_conflict = true,
            Record::Applied => self.is_applied = true,
            Record::Confirmed { .. } => self.is_confirmed = true,
            Record::Finished => self.is_finished = true,
        }
        Some(())
    }

    /// Writes a record and takes it.
    pub(crate) fn append(&mut self, store: &mut dyn Store, record: Record) -> io::Result<()> {
        store.append(&self.id, &line(&record)?)?;
        self.take(record)
            .ok_or_else(|| io::Error::from(io::ErrorKind::InvalidInput))
    }

    /// The steps that may have to be undone, the last first.
    pub(crate) fn open(&self) -> Vec<usize> {
        let marks = self.marks.iter().enumerate();
        let open = marks.filter(|(_, mark)| mark.is_open());
        open.map(|(step, _)| step).rev().collect()
    }

    #[must_use]
    pub fn state(&self) -> State {
        let is_open = self.marks.iter().any(Mark::is_open);
        let open = || self.marks.iter().filter(|mark| mark.is_open());
        if self.is_finished {
            State::Undone
        } else if open().any(|mark| mark.has_conflict) {
            State::Conflicts
        } else if self
            .marks
            .iter()
            .any(|mark| mark.undoing.is_some() || mark.is_undone)
        {
            State::PartlyUndone
        } else if !self.is_applied && !self.is_confirmed {
            if is_open {
                State::Interrupted
            } else {
                State::Nothing
            }
        } else {
            match self.confirm_within_s {
                Some(_) if !self.is_confirmed => State::Unconfirmed,
                Some(_) | None => State::Applied,
            }
        }
    }

    /// Whether a step that is not undone is not a conflict.
    pub(crate) fn has_more_than_conflicts(&self) -> bool {
        let mut marks = self.marks.iter();
        marks.any(|mark| mark.is_open() && !mark.has_conflict)
    }

    /// The steps that wrote files which set values at boot.
    pub(crate) fn boot_files(&self) -> impl Iterator<Item = &Step> {
        let steps = self.plan.steps.iter().zip(&self.marks);
        let files = steps.filter(|(step, mark)| {
            mark.saved.is_some() && persist::targets().any(|target| target == step.target)
        });
        files.map(|(step, _)| step)
    }

    pub(crate) fn step(&self, at: usize) -> Option<(&Step, &Mark)> {
        Some((self.plan.steps.get(at)?, self.marks.get(at)?))
    }
}

pub(crate) fn line(record: &Record) -> io::Result<String> {
    serde_json::to_string(record).map_err(io::Error::from)
}

/// The id of a journal by the beginning of its own name, or of that of its plan. If a plan was
/// applied more than once, the newest counts.
///
/// # Errors
/// There is none, several plans begin with `name`, or the directory cannot be read.
pub fn find(store: &dyn Store, name: &str) -> Result<String, JournalError> {
    let ids = store.ids().map_err(|error| JournalError::Read {
        id: name.to_owned(),
        error,
    })?;
    fn plan(id: &str) -> &str {
        id.split_once('-').map_or(id, |(_, plan)| plan)
    }
    let begins = |id: &&String| id.starts_with(name) || plan(id).starts_with(name);
    let mut newest_first = ids.iter().rev().filter(|_| !name.is_empty()).filter(begins);
    let Some(newest) = newest_first.next() else {
        return Err(JournalError::Unknown(name.to_owned()));
    };
    match newest_first.find(|id| plan(id) != plan(newest)) {
        Some(other) if newest != name => Err(JournalError::Ambiguous {
            name: name.to_owned(),
            ids: format!("{newest} and {other}"),
        }),
        Some(_) | None => Ok(newest.clone()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_torn_line_is_not_a_record_and_a_damaged_one_is_an_error() {
        for (text, expected) in [
            ("", Ok(None)),
            ("{\"record\":\"beg", Ok(None)),
            ("{\"record\":\"applied\"}\n", Err(1)),
            ("rubbish\n", Err(1)),
        ] {
            let parsed = Journal::parse("0001-ab", text);
            match (parsed, expected) {
                (Ok(journal), Ok(expected)) => assert_eq!(journal, expected, "{text}"),
                (Err(JournalError::Damaged { line, .. }), Err(expected)) => {
                    assert_eq!(line, expected, "{text}");
                }
                (parsed, _) => panic!("{text}: {parsed:?}"),
            }
        }
    }
}
