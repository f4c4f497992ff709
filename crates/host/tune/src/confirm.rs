//! The time within which a plan that may cut the connection has to be confirmed.
//!
//! The deadline is in the journal, as a time since the boot: setting the clock does not move it,
//! and a suspended host counts. A process that the terminal's end does not stop calls
//! [`undo_if_unconfirmed`] when it has passed. After a restart, values of the kernel are gone, and
//! files for the next boot were not written yet: the plan can only be undone, which closes it.

use std::io;
use std::time::Duration;

use crate::apply::{self, ApplyError, OnFailure};
use crate::host::Host;
use crate::journal::{self, Journal, JournalError, Record, State};
use crate::store::Store;
use crate::undo::{self, Conflicts, UndoReport};

#[derive(Debug, thiserror::Error)]
pub enum ConfirmError {
    #[error(transparent)]
    Journal(#[from] JournalError),
    #[error("plan {0} does not wait for a confirmation")]
    NotWaiting(String),
    #[error("the time to confirm plan {0} has passed: it is being undone")]
    TooLate(String),
    #[error("the host was restarted since plan {0} was applied: undo it and apply it again")]
    Restarted(String),
    #[error("the confirmation cannot be recorded: {0}; the plan will be undone")]
    Record(io::Error),
    /// A file for the next boot could not be written. All steps were undone.
    #[error(transparent)]
    Persist(ApplyError),
}

/// What [`undo_if_unconfirmed`] found or did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Deadline {
    /// There is nothing to wait for.
    Settled,
    Waiting(Duration),
    Undone(UndoReport),
}

/// Keeps a plan, and writes its files for the next boot if all of its steps were made. `now_s` is
/// in seconds since 1970, for the history.
///
/// # Errors
/// The plan is not kept.
pub fn confirm(
    id: &str,
    host: &mut dyn Host,
    store: &mut dyn Store,
    now_s: u64,
) -> Result<(), ConfirmError> {
    let id = journal::find(store, id)?;
    let Some(mut journal) = Journal::load(store, &id)? else {
        return Err(ConfirmError::NotWaiting(id));
    };
    // A step failed, and the user keeps those before it.
    let is_kept = journal.state() == State::Interrupted && journal.deadline_ms.is_some();
    if journal.is_confirmed || (journal.state() != State::Unconfirmed && !is_kept) {
        return Err(ConfirmError::NotWaiting(id));
    }
    if !host.boot_id().is_ok_and(|boot| boot == journal.boot) {
        return Err(ConfirmError::Restarted(id));
    }
    if left(&journal, host).is_none() {
        return Err(ConfirmError::TooLate(id));
    }
    // Half a plan is not made again at boot.
    let is_whole = journal.is_applied;
    let is_file = |step: &crate::step::Step| is_whole && step.target.outlives_the_boot();
    let made = apply::make(&mut journal, host, store, is_file);
    apply::finish(made, &mut journal, host, store, OnFailure::Undo)
        .map_err(ConfirmError::Persist)?;
    let record = Record::Confirmed { at_s: now_s };
    journal.append(store, record).map_err(ConfirmError::Record)
}

/// The time that is left to confirm. None is left if the application ended half-way: the process
/// that would have set a deadline is gone.
fn left(journal: &Journal, host: &dyn Host) -> Option<Duration> {
    let deadline = Duration::from_millis(journal.deadline_ms?);
    let left = deadline.checked_sub(host.uptime())?;
    (!left.is_zero()).then_some(left)
}

/// Undoes a plan whose time to confirm it has passed, also one that ended half-way.
///
/// # Errors
/// The journal does not exist or is damaged.
pub fn undo_if_unconfirmed(
    id: &str,
    host: &mut dyn Host,
    store: &mut dyn Store,
) -> Result<Deadline, JournalError> {
    let id = journal::find(store, id)?;
    let Some(mut journal) = Journal::load(store, &id)? else {
        return Ok(Deadline::Settled);
    };
    if journal.is_confirmed || journal.confirm_within_s.is_none() {
        return Ok(Deadline::Settled);
    }
    match journal.state() {
        State::Unconfirmed | State::Interrupted => {
            let is_same_boot = host.boot_id().is_ok_and(|boot| boot == journal.boot);
            if let Some(left) = left(&journal, host).filter(|_| is_same_boot) {
                return Ok(Deadline::Waiting(left));
            }
        }
        State::PartlyUndone => {}
        // Values that another program changed are left to the user; others may have failed.
        State::Conflicts if journal.has_more_than_conflicts() => {}
        State::Conflicts | State::Nothing | State::Applied | State::Undone => {
            return Ok(Deadline::Settled);
        }
    }
    let report = undo::run(&mut journal, host, store, Conflicts::Report);
    Ok(Deadline::Undone(report))
}
