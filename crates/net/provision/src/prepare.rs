//! Takes huge pages and cards from the kernel.

use std::io;
use std::path::Path;

use crate::card::{self, Binding, CardError, Place};
use crate::change::Change;
use crate::machine::Machine;
use crate::module;
use crate::pages::{self, Missing, Node, PagesError};
use crate::pci::PciAddress;
use crate::record::{self, Hold, Record, RecordError};
use crate::undo::{self, Undone};

/// Without the lock, another process may undo the changes at the same time.
const STAYS: &str = "what was prepared may stay recorded: run `saiga gateway down`";

/// What a gateway needs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Wanted {
    /// Bytes that are to be free in huge pages of each node.
    pub pages: Vec<(Node, u64)>,
    /// Cards that DPDK is to have.
    pub cards: Vec<PciAddress>,
}

/// A machine that has what a gateway needs.
#[derive(Debug)]
pub struct Prepared {
    /// Prevents `undo` while the gateway uses the changes; `None` if nothing was changed, now and
    /// earlier.
    pub hold: Option<Hold>,
    /// What was changed now, in words.
    pub changes: Vec<String>,
}

/// Why a machine cannot be prepared.
#[derive(Debug, thiserror::Error)]
pub enum Reason {
    /// The record of changes cannot be used.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// Huge pages cannot be had.
    #[error(transparent)]
    Pages(#[from] PagesError),
    /// A card cannot be had.
    #[error(transparent)]
    Card(#[from] CardError),
    /// The driver for user space is missing.
    #[error(
        "the kernel's module vfio-pci cannot be loaded: {0}; install the modules of this kernel"
    )]
    Module(io::Error),
}

/// Why a machine was not prepared. What was changed is undone, unless `left` says otherwise.
#[derive(Debug, thiserror::Error)]
#[error("{reason}{}", left.as_ref().map(|left| format!("; {left}")).unwrap_or_default())]
pub struct PrepareError {
    /// Why the machine cannot be prepared.
    pub reason: Reason,
    /// What was not undone.
    pub left: Option<String>,
}

impl From<RecordError> for PrepareError {
    fn from(error: RecordError) -> Self {
        Self {
            reason: error.into(),
            left: None,
        }
    }
}

/// Gives the machine what is wanted, and records each change in the file `record` before it is
/// made. What an earlier call has recorded is kept, with the values from before it.
///
/// # Errors
/// A [`PrepareError`]. The machine is then as it was before the first recorded change, unless
/// [`left`](PrepareError::left) says otherwise.
pub fn prepare(
    machine: &mut dyn Machine,
    wanted: &Wanted,
    record: &Path,
) -> Result<Prepared, PrepareError> {
    let opened = Record::open(record, record::Missing::Make)?;
    let Some(mut opened) = opened else {
        return Err(RecordError::System {
            path: record.to_owned(),
            source: io::ErrorKind::NotFound.into(),
        }
        .into());
    };
    match make(machine, wanted, &mut opened) {
        Ok(changes) if opened.entries().is_empty() => {
            opened.remove()?;
            Ok(Prepared {
                hold: None,
                changes,
            })
        }
        Ok(changes) => match opened.share() {
            Ok(hold) => Ok(Prepared {
                hold: Some(hold),
                changes,
            }),
            Err(error) => Err(PrepareError {
                reason: error.into(),
                left: Some(STAYS.to_owned()),
            }),
        },
        Err(reason) => {
            let left = match undo::all(machine, opened) {
                Ok(undone) => stays(&undone),
                Err(error) => {
                    let stays = error.undone().and_then(stays);
                    let parts = [Some(error.to_string()), stays];
                    Some(parts.into_iter().flatten().collect::<Vec<_>>().join("; "))
                }
            };
            Err(PrepareError { reason, left })
        }
    }
}

/// The values that were changed after `up --prepare`; `None` if there are none.
fn stays(undone: &Undone) -> Option<String> {
    let kept = &undone.kept;
    (!kept.is_empty()).then(|| format!("this stays: {}", kept.join("; ")))
}

/// Looks at everything before the first change.
fn make(
    machine: &mut dyn Machine,
    wanted: &Wanted,
    record: &mut Record,
) -> Result<Vec<String>, Reason> {
    let Wanted { pages, cards } = wanted;
    let mut to_bind = Vec::new();
    for &card in cards {
        if card::look(machine, card, cards)? == Place::WithKernel {
            to_bind.push(card);
        }
    }
    let mut changes = Vec::new();
    for &(node, bytes) in pages {
        if let Some(missing) = pages::missing(machine.root(), node, bytes)? {
            reserve(machine, missing, record)?;
            let Missing { was, wanted, .. } = missing;
            changes.push(format!("huge pages of {node}: {wanted}, before {was}"));
        }
    }
    if !to_bind.is_empty() {
        changes.extend(load(machine, record)?);
    }
    for card in to_bind {
        changes.push(bind(machine, card, record)?);
    }
    Ok(changes)
}

fn reserve(machine: &mut dyn Machine, missing: Missing, record: &mut Record) -> Result<(), Reason> {
    let Missing { node, wanted, .. } = missing;
    let number = record.begin(missing.into())?;
    let got = pages::set(machine, node, wanted);
    let got = got.map_err(|source| PagesError::System { node, source })?;
    if got < wanted {
        return Err(PagesError::Short { node, got, wanted }.into());
    }
    Ok(record.made(number)?)
}

/// Loads vfio-pci if it is missing.
fn load(machine: &mut dyn Machine, record: &mut Record) -> Result<Option<String>, Reason> {
    let modules = module::missing(machine.root());
    if modules.is_empty() {
        return Ok(None);
    }
    let number = record.begin(Change::Modules(modules))?;
    module::load(machine).map_err(Reason::Module)?;
    record.made(number)?;
    Ok(Some("module vfio-pci loaded".to_owned()))
}

fn bind(
    machine: &mut dyn Machine,
    card: PciAddress,
    record: &mut Record,
) -> Result<String, Reason> {
    let before = Binding::read(machine.root(), card);
    let before = before.map_err(|source| CardError::System { card, source })?;
    let before = before.ok_or(CardError::Absent { card })?;
    let driver = before.driver.clone();
    // A start that was killed may have begun. Its values from before are those that count.
    let mut begun = record.entries().iter().filter(|entry| !entry.is_undone);
    if !begun.any(|entry| entry.change.covers(card, &before)) {
        record.begin(Change::of_card(card, before))?;
    }
    card::bind(machine, card)?;
    let driver = driver.unwrap_or_else(|| "none".to_owned());
    Ok(format!("{card}: driver vfio-pci, before {driver}"))
}
