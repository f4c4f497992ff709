//! Gives back what was taken from the kernel, in reverse order.

use std::path::Path;

use crate::change::Outcome;
use crate::machine::Machine;
use crate::record::{Missing, Record, RecordError};

/// What became of the recorded changes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Undone {
    /// Values that were restored, in words.
    pub restored: Vec<String>,
    /// Values that stay, because they were changed after `up --prepare`, in words.
    pub kept: Vec<String>,
}

/// Why not everything was undone.
#[derive(Debug, thiserror::Error)]
pub enum UndoError {
    /// The record of changes cannot be used.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// The kernel refuses a value, or the record cannot be written. The change stays in the record,
    /// with the changes from before it.
    #[error(
        "cannot give back what `up --prepare` has taken: {reason}; run `saiga gateway down` again \
         when the cause is gone"
    )]
    Incomplete {
        /// The error, in words.
        reason: String,
        /// What became of the later changes, which are undone first.
        undone: Undone,
    },
}

impl UndoError {
    /// What was undone before the error.
    #[must_use]
    pub fn undone(&self) -> Option<&Undone> {
        match self {
            Self::Record(_) => None,
            Self::Incomplete { undone, .. } => Some(undone),
        }
    }
}

/// Undoes the changes in the file `record`, and removes it. Without the file, nothing is to do.
///
/// # Errors
/// [`RecordError::InUse`] while a gateway uses the changes, and each [`UndoError`].
pub fn undo(machine: &mut dyn Machine, record: &Path) -> Result<Undone, UndoError> {
    match Record::open(record, Missing::Leave)? {
        Some(record) => all(machine, record),
        None => Ok(Undone::default()),
    }
}

/// Undoes the changes of a record. The first that fails is the last one that is tried: those from
/// before it can depend on it, as a module on the cards of its driver.
pub(crate) fn all(machine: &mut dyn Machine, mut record: Record) -> Result<Undone, UndoError> {
    let mut undone = Undone::default();
    let all = each(machine, &mut record, &mut undone);
    match all.and_then(|()| record.remove().map_err(|error| error.to_string())) {
        Ok(()) => Ok(undone),
        Err(reason) => Err(UndoError::Incomplete { reason, undone }),
    }
}

/// Undoes the changes, the last one first. The error is in words.
fn each(machine: &mut dyn Machine, record: &mut Record, undone: &mut Undone) -> Result<(), String> {
    for number in (0..record.entries().len()).rev() {
        let entry = record.entries()[number].clone();
        if entry.is_undone {
            continue;
        }
        let outcome = entry.change.undo(machine, entry.is_made);
        match outcome.map_err(|error| error.to_string())? {
            Outcome::Restored(text) => undone.restored.extend(text),
            Outcome::Foreign(text) => undone.kept.push(text),
        }
        record.undone(number).map_err(|error| error.to_string())?;
    }
    Ok(())
}
