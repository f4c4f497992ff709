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
    /// Values that stay, because someone has changed them since, in words.
    pub kept: Vec<String>,
}

/// Why not everything was undone.
#[derive(Debug, thiserror::Error)]
pub enum UndoError {
    /// The record of changes cannot be used.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// The kernel refuses a value. It stays in the record, with the changes from before it.
    #[error(
        "cannot give back what `up --prepare` has taken: {0}; run `saiga gateway down` again when \
         the cause is gone"
    )]
    Refused(String),
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
    for number in (0..record.entries().len()).rev() {
        let entry = record.entries()[number].clone();
        if entry.is_undone {
            continue;
        }
        match entry.change.undo(machine, entry.is_made) {
            Ok(Outcome::Restored(text)) => undone.restored.extend(text),
            Ok(Outcome::Foreign(text)) => undone.kept.push(text),
            Err(error) => return Err(UndoError::Refused(error.to_string())),
        }
        record.undone(number)?;
    }
    record.remove()?;
    Ok(undone)
}
