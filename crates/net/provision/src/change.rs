//! A change of the machine, and its way back.
//!
//! A change is recorded before it is made, so it may have been made in part. Values that are
//! neither those from before nor those of the change were changed after `up --prepare`, and stay.

use std::io;

use serde::{Deserialize, Serialize};

use crate::card::{self, Binding, CardError};
use crate::machine::Machine;
use crate::module::{Module, VFIO_PCI};
use crate::pages::{self, Missing, Node, PagesError};
use crate::pci::PciAddress;

/// Most characters of the name of a driver.
const MOST_NAME_BYTES: usize = 64;

/// A change, with the values from before.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) enum Change {
    /// More huge pages.
    Pages { node: Node, was: u64, wanted: u64 },
    /// Modules that were not loaded.
    Modules(Vec<Module>),
    /// A card for vfio-pci.
    Card {
        card: PciAddress,
        driver: Option<String>,
        driver_override: Option<String>,
    },
}

/// What became of a change that is undone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// The values are those from before; what was done for it, in words.
    Restored(Option<String>),
    /// The value stays, because it was changed after `up --prepare`; in words.
    Foreign(String),
}

/// Why a change is not undone.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BackError {
    #[error(transparent)]
    Pages(#[from] PagesError),
    #[error("{node} has {got} huge pages instead of {was}")]
    PagesStay { node: Node, got: u64, was: u64 },
    #[error("module {module}: {source}")]
    Module {
        module: &'static str,
        source: io::Error,
    },
    #[error(transparent)]
    Card(#[from] CardError),
}

impl From<Missing> for Change {
    fn from(missing: Missing) -> Self {
        let Missing { node, was, wanted } = missing;
        Self::Pages { node, was, wanted }
    }
}

impl Change {
    /// The change that gives a card to vfio-pci.
    pub(crate) fn of_card(card: PciAddress, before: Binding) -> Self {
        let Binding {
            driver,
            reserved_for,
        } = before;
        Self::Card {
            card,
            driver,
            driver_override: reserved_for,
        }
    }

    /// Whether the names are those of drivers.
    pub(crate) fn is_valid(&self) -> bool {
        match self {
            Self::Pages { was, wanted, .. } => was < wanted,
            Self::Modules(_) => true,
            Self::Card {
                driver,
                driver_override,
                ..
            } => driver.iter().chain(driver_override).all(is_driver),
        }
    }

    /// Whether the change is that of this card, which has a binding on the way there or back.
    pub(crate) fn covers(&self, card: PciAddress, now: &Binding) -> bool {
        match self {
            Self::Card {
                card: changed,
                driver,
                driver_override,
            } => *changed == card && is_between(now, driver.as_ref(), driver_override.as_ref()),
            Self::Pages { .. } | Self::Modules(_) => false,
        }
    }

    /// Undoes the change. `is_made`: it was made completely.
    pub(crate) fn undo(
        &self,
        machine: &mut dyn Machine,
        is_made: bool,
    ) -> Result<Outcome, BackError> {
        match self {
            Self::Pages { node, was, wanted } => {
                restore_pages(machine, *node, (*was, *wanted), is_made)
            }
            Self::Modules(modules) => unload(machine, modules),
            Self::Card {
                card,
                driver,
                driver_override,
            } => {
                let before = Binding {
                    driver: driver.clone(),
                    reserved_for: driver_override.clone(),
                };
                restore_card(machine, *card, &before)
            }
        }
    }
}

#[expect(clippy::ptr_arg, reason = "for Iterator::all over strings")]
fn is_driver(name: &String) -> bool {
    let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    (1..=MOST_NAME_BYTES).contains(&name.len()) && name.bytes().all(is_letter)
}

fn restore_pages(
    machine: &mut dyn Machine,
    node: Node,
    (was, wanted): (u64, u64),
    is_made: bool,
) -> Result<Outcome, BackError> {
    let system = |source| PagesError::System { node, source };
    let now = pages::count(machine.root(), node).map_err(system)?;
    // The kernel may have had memory for a part of them before the change ended.
    let is_ours = now == wanted || (!is_made && (was..=wanted).contains(&now));
    if now == was {
        return Ok(Outcome::Restored(None));
    }
    if !is_ours {
        return Ok(Outcome::Foreign(format!(
            "huge pages of {node}: {now}, and not {wanted} as `up --prepare` has set them; {was} \
             before"
        )));
    }
    let got = pages::set(machine, node, was).map_err(system)?;
    if got != was {
        return Err(BackError::PagesStay { node, got, was });
    }
    Ok(Outcome::Restored(Some(format!(
        "huge pages of {node}: {was}"
    ))))
}

/// Unloads those of the modules that nothing uses.
fn unload(machine: &mut dyn Machine, modules: &[Module]) -> Result<Outcome, BackError> {
    let (mut unloaded, mut used) = (Vec::new(), Vec::new());
    for module in modules {
        let failed = |source| BackError::Module {
            module: module.name(),
            source,
        };
        if !module.is_loaded(machine.root()) {
            continue;
        }
        if module.is_used(machine.root()).map_err(failed)? {
            used.push(module.name());
            continue;
        }
        machine.unload(module.name()).map_err(failed)?;
        unloaded.push(module.name());
    }
    if !used.is_empty() {
        return Ok(Outcome::Foreign(format!(
            "modules {}: other devices use them",
            used.join(", ")
        )));
    }
    let text = format!("modules unloaded: {}", unloaded.join(", "));
    Ok(Outcome::Restored((!unloaded.is_empty()).then_some(text)))
}

fn restore_card(
    machine: &mut dyn Machine,
    card: PciAddress,
    before: &Binding,
) -> Result<Outcome, BackError> {
    let system = |source| CardError::System { card, source };
    let Some(now) = Binding::read(machine.root(), card).map_err(system)? else {
        return Ok(Outcome::Foreign(format!("{card} was removed")));
    };
    if now == *before {
        return Ok(Outcome::Restored(None));
    }
    if !is_between(&now, before.driver.as_ref(), before.reserved_for.as_ref()) {
        return Ok(Outcome::Foreign(format!(
            "{card}: driver {}, reserved for {}; before `up --prepare` {} and {}",
            shown(&now.driver),
            shown(&now.reserved_for),
            shown(&before.driver),
            shown(&before.reserved_for),
        )));
    }
    card::release(machine, card, before)?;
    Ok(Outcome::Restored(Some(format!(
        "{card}: driver {}",
        shown(&before.driver)
    ))))
}

/// Whether a binding is that from before, that for vfio-pci, or one between them. In between, the
/// card has no driver.
fn is_between(now: &Binding, driver: Option<&String>, driver_override: Option<&String>) -> bool {
    let is_ours = |now: Option<&String>, before: Option<&String>| {
        now == before || now.is_some_and(|now| now == VFIO_PCI)
    };
    let has_our_driver = now.driver.is_none() || is_ours(now.driver.as_ref(), driver);
    has_our_driver && is_ours(now.reserved_for.as_ref(), driver_override)
}

fn shown(name: &Option<String>) -> &str {
    name.as_deref().unwrap_or("none")
}
