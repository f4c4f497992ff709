//! The plans that were applied on this host.

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use crate::journal::{Journal, State};
use crate::store::Store;
use crate::target::Target;

/// One application of a plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    pub id: String,
    /// Seconds since 1970; `None` if it ended before its first record.
    pub at_s: Option<u64>,
    /// The kernel's ID of the boot in which it was applied; empty if it ended before that.
    pub boot: String,
    pub steps: usize,
    /// Steps that may still have to be undone.
    pub open: usize,
    /// The text of the error if the journal cannot be read.
    pub state: Result<State, String>,
}

/// All applications, the oldest first.
///
/// # Errors
/// The directory cannot be read. A journal that is damaged is an entry.
pub fn history(store: &dyn Store) -> io::Result<Vec<Entry>> {
    let entry = |id: String| match Journal::load(store, &id) {
        Ok(Some(journal)) => Entry {
            at_s: Some(journal.at_s),
            steps: journal.plan.steps.len(),
            open: journal.open().len(),
            boot: journal.boot.clone(),
            state: Ok(journal.state()),
            id,
        },
        Ok(None) => Entry {
            id,
            at_s: None,
            boot: String::new(),
            steps: 0,
            open: 0,
            state: Ok(State::Nothing),
        },
        Err(error) => Entry {
            id,
            at_s: None,
            boot: String::new(),
            steps: 0,
            open: 0,
            state: Err(error.to_string()),
        },
    };
    Ok(store.ids()?.into_iter().map(entry).collect())
}

/// The values before the plans that were applied since the last boot and are not undone, so that
/// the files for the next boot have what these plans set.
///
/// # Errors
/// The directory cannot be read.
pub fn before(store: &dyn Store, boot: &str) -> io::Result<BTreeMap<Target, String>> {
    let mut before = BTreeMap::new();
    for id in store.ids()? {
        let Ok(Some(journal)) = Journal::load(store, &id) else {
            continue;
        };
        let steps = journal.plan.steps.iter().zip(&journal.marks);
        let open = steps.filter(|(step, mark)| {
            mark.is_open() && (journal.boot == boot || step.target.outlives_the_boot())
        });
        for (step, mark) in open {
            let old = mark.saved.as_ref().and_then(|saved| saved.first());
            if let Some(old) = old.cloned().flatten() {
                before.entry(step.target.clone()).or_insert(old);
            }
        }
    }
    Ok(before)
}

/// Interrupts that refused a new affinity since the last boot, so that the next plan leaves them.
///
/// # Errors
/// The directory cannot be read.
pub fn managed(store: &dyn Store, boot: &str) -> io::Result<BTreeSet<u32>> {
    let mut managed = BTreeSet::new();
    for id in store.ids()? {
        let Ok(Some(journal)) = Journal::load(store, &id) else {
            continue;
        };
        if journal.boot == boot {
            let steps = journal.plan.steps.iter().zip(&journal.marks);
            let refused = steps.filter(|(_, mark)| mark.is_managed);
            managed.extend(refused.filter_map(|(step, _)| step.target.irq()));
        }
    }
    Ok(managed)
}
