//! Compares a host with a plan.

use std::fmt;

use crate::host::Host;
use crate::journal::{self, Journal, JournalError};
use crate::plan::Plan;
use crate::step::Step;
use crate::store::Store;
use crate::target::Target;

/// What the host shows for a value or file that it does not have.
const ABSENT: &str = "absent";

/// A value that is not what the plan says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    pub name: String,
    pub target: Target,
    pub wanted: String,
    /// What the host shows, or why it cannot be read.
    pub found: String,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            name,
            target,
            wanted,
            found,
        } = self;
        match target {
            Target::OwnFile { .. } if found != ABSENT => {
                write!(f, "{name}: {target} has another text")
            }
            Target::OwnFile { .. } => write!(f, "{name}: {target} is {ABSENT}"),
            Target::File { .. } | Target::Nic { .. } | Target::Service { .. } => {
                write!(f, "{name}: {target} is {found}, not {wanted}")
            }
        }
    }
}

/// The steps of a plan that do not hold on a host.
#[must_use]
pub fn verify_plan(plan: &Plan, host: &dyn Host) -> Vec<Difference> {
    plan.steps
        .iter()
        .filter_map(|step| difference(step, host))
        .collect()
}

/// The steps of an applied plan that do not hold any more. Steps that were undone, or that were not
/// made, are left out.
///
/// # Errors
/// The journal does not exist or is damaged.
pub fn verify(
    id: &str,
    host: &dyn Host,
    store: &dyn Store,
) -> Result<Vec<Difference>, JournalError> {
    let id = journal::find(store, id)?;
    let Some(journal) = Journal::load(store, &id)? else {
        return Ok(Vec::new());
    };
    let steps = journal.plan.steps.iter().zip(&journal.marks);
    let made = steps.filter(|(_, mark)| mark.is_open());
    Ok(made
        .filter_map(|(step, _)| difference(step, host))
        .collect())
}

fn difference(step: &Step, host: &dyn Host) -> Option<Difference> {
    let form = step.target.form();
    let found = match host.read(&step.target) {
        Ok(Some(found)) if form.accepts(&step.now, &found) => return None,
        Ok(Some(found)) => form.value(&found),
        Ok(None) => ABSENT.to_owned(),
        Err(error) => format!("unreadable ({error})"),
    };
    Some(Difference {
        name: step.name(),
        target: step.target.clone(),
        wanted: form.value(&step.now),
        found,
    })
}
