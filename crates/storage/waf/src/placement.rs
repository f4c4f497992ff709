//! Flexible Data Placement: the reclaim unit handles of a namespace, and writes through them.
//!
//! Spec: TP4146. Feature 1Dh has the enabled configuration of an endurance group, log 20h the size
//! of reclaim units, log 21h how each handle was specified. I/O Management Receive lists the
//! handles of a namespace and the space left in their reclaim units. A write without a placement
//! directive goes through placement handle 0, which has placement identifier 0.
//!
//! Deliberately absent: commands that give handles to a namespace or change the unit of a handle.

use std::collections::BTreeSet;

use crate::bytes::{u16_at, u32_at, u64_at};
use crate::drive::Drive;
use crate::identity::ENDGID;
use crate::page::Page;
use crate::source::{Unusable, whole_page};

/// The data placement of a namespace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Placement {
    /// The endurance group, within which handles are numbered.
    pub group: u16,
    /// Nominal size of a reclaim unit (RUNS).
    pub unit_bytes: u64,
    /// The handle for writes without a placement identifier.
    pub handle: u16,
    /// Whether the namespace was created with a list of handles. Namespaces without one share a
    /// handle that the controller has chosen.
    pub is_specified: bool,
    /// The reclaim units to which the namespace can write now.
    pub units: Vec<Unit>,
}

/// A reclaim unit that a handle writes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unit {
    /// Placement identifier (PID): reclaim group and placement handle.
    pub placement: u16,
    /// Reclaim unit handle (RUHID).
    pub handle: u16,
    /// Space left in the unit, in logical blocks (RUAMW).
    pub left: u64,
}

/// The reason why a namespace does not place data, or why its placement is unknown.
#[derive(Debug, thiserror::Error)]
pub enum NoPlacement {
    /// A page does not exist, cannot be read, or ends early.
    #[error(transparent)]
    Page(#[from] Unusable),
    #[error("data placement (FDP) is not enabled in endurance group {group}")]
    Disabled { group: u16 },
    #[error("{} has no configuration {index}, which is the enabled one", page.title())]
    NoConfiguration { page: Page, index: u16 },
    #[error("{} has a reclaim unit size of 0 bytes", page.title())]
    NoUnitSize { page: Page },
    #[error("{} has no placement identifier 0", page.title())]
    NoDefault { page: Page },
    #[error("{} has placement identifier {placement} twice", page.title())]
    Twice { page: Page, placement: u16 },
    #[error(
        "{} has reclaim unit handle {handle}, which {} does not list as used",
        page.title(), usage.title()
    )]
    Unused {
        page: Page,
        usage: Page,
        handle: u16,
    },
}

impl NoPlacement {
    /// Whether the namespace certainly does not place data.
    #[must_use]
    pub fn is_absence(&self) -> bool {
        match self {
            Self::Page(why) => why.is_absence(),
            Self::Disabled { .. } => true,
            Self::NoConfiguration { .. }
            | Self::NoUnitSize { .. }
            | Self::NoDefault { .. }
            | Self::Twice { .. }
            | Self::Unused { .. } => false,
        }
    }
}

/// Reads the data placement of namespace `nsid` from a drive.
///
/// # Errors
/// The namespace does not place data, or a page cannot be read or is not valid.
pub fn placement(drive: &mut dyn Drive, nsid: u32) -> Result<Placement, NoPlacement> {
    let controller = whole_page(drive, Page::Controller, 100)?;
    if u32_at(&controller, 96).is_none_or(|attributes| attributes & 1 << 19 == 0) {
        return Err(Unusable::NoFdp.into());
    }
    let namespace = whole_page(drive, Page::Namespace(nsid), ENDGID + 2)?;
    let group = u16_at(&namespace, ENDGID).filter(|group| *group > 0);
    let group = group.ok_or(Unusable::NoGroup)?;
    let mode = drive.read(Page::FdpMode(group)).map_err(Unusable::Read)?;
    let mode = u16_at(&mode, 0).unwrap_or(0);
    if mode & 1 == 0 {
        return Err(NoPlacement::Disabled { group });
    }
    let unit_bytes = unit_bytes(drive, group, mode >> 8)?;
    let units = units(drive, nsid)?;
    let page = Page::Handles(nsid);
    let default = units.iter().find(|unit| unit.placement == 0);
    let handle = default.ok_or(NoPlacement::NoDefault { page })?.handle;
    let usage = Page::FdpUsage(group);
    let owners = owners(drive, usage)?;
    let owner = owners.get(usize::from(handle)).copied().unwrap_or(0);
    if owner == 0 {
        return Err(NoPlacement::Unused {
            page,
            usage,
            handle,
        });
    }
    Ok(Placement {
        group,
        unit_bytes,
        handle,
        is_specified: owner == HOST_SPECIFIED,
        units,
    })
}

/// Attribute of a handle in log 21h. 0 means unused, 2 specified by the controller.
const HOST_SPECIFIED: u8 = 1;

/// Returns the size of a reclaim unit in configuration `index` of log 20h, whose descriptors have
/// variable lengths.
fn unit_bytes(drive: &mut dyn Drive, group: u16, index: u16) -> Result<u64, NoPlacement> {
    let page = Page::FdpConfigurations(group);
    let bytes = whole_page(drive, page, 16)?;
    // The page has the index of the last configuration.
    let missing = || NoPlacement::NoConfiguration { page, index };
    if u16_at(&bytes, 0).is_none_or(|last| index > last) {
        return Err(missing());
    }
    let mut at = 16;
    for _ in 0..index {
        let size = u16_at(&bytes, at).filter(|size| *size > 0);
        at += usize::from(size.ok_or_else(missing)?);
    }
    let unit = u64_at(&bytes, at + 16).ok_or_else(missing)?;
    if unit == 0 {
        return Err(NoPlacement::NoUnitSize { page });
    }
    Ok(unit)
}

/// Returns the attribute of each handle of an endurance group.
fn owners(drive: &mut dyn Drive, page: Page) -> Result<Vec<u8>, Unusable> {
    let bytes = whole_page(drive, page, 8)?;
    let count = usize::from(u16_at(&bytes, 0).unwrap_or(0));
    Ok(descriptors(&bytes, page, 8, 8, count)?
        .map(|descriptor| descriptor[0])
        .collect())
}

/// Reads the reclaim units to which namespace `nsid` can write now.
///
/// # Errors
/// The page of the handles cannot be read or is not valid.
pub fn units(drive: &mut dyn Drive, nsid: u32) -> Result<Vec<Unit>, NoPlacement> {
    let page = Page::Handles(nsid);
    let bytes = whole_page(drive, page, 16)?;
    let count = usize::from(u16_at(&bytes, 14).unwrap_or(0));
    let mut seen = BTreeSet::new();
    let mut units = Vec::new();
    for descriptor in descriptors(&bytes, page, 16, 32, count)? {
        let unit = Unit {
            placement: u16_at(descriptor, 0).unwrap_or(0),
            handle: u16_at(descriptor, 2).unwrap_or(0),
            left: u64_at(descriptor, 8).unwrap_or(0),
        };
        if !seen.insert(unit.placement) {
            return Err(NoPlacement::Twice {
                page,
                placement: unit.placement,
            });
        }
        units.push(unit);
    }
    Ok(units)
}

/// Returns `count` descriptors of `length` bytes after the header of a page.
fn descriptors(
    bytes: &[u8],
    page: Page,
    head: usize,
    length: usize,
    count: usize,
) -> Result<impl Iterator<Item = &[u8]>, Unusable> {
    let needed = head + count * length;
    let Some(list) = bytes.get(head..needed) else {
        return Err(Unusable::Short {
            page,
            found: bytes.len(),
            needed,
        });
    };
    Ok(list.chunks_exact(length))
}

/// Counts the blocks written through the handle for writes without a placement identifier.
///
/// The count is exact if less than a reclaim unit is written between two steps.
#[derive(Debug, Clone)]
pub struct Meter {
    handle: u16,
    unit: u64,
    units: Vec<Unit>,
    written: u64,
}

impl Meter {
    /// Starts at the units of `placement`, in a namespace with logical blocks of `block` bytes.
    #[must_use]
    pub fn new(placement: &Placement, block: u64) -> Self {
        Self {
            handle: placement.handle,
            unit: placement.unit_bytes / block.max(1),
            units: placement.units.clone(),
            written: 0,
        }
    }

    /// Continues the count with a later state of the units.
    pub fn step(&mut self, units: Vec<Unit>) {
        for after in units.iter().filter(|unit| unit.handle == self.handle) {
            let is_same = |before: &&Unit| before.placement == after.placement;
            let Some(before) = self.units.iter().find(is_same) else {
                continue;
            };
            let blocks = match before.left.checked_sub(after.left) {
                Some(blocks) => blocks,
                // The rest of the old unit, and the used part of a new one.
                None => (before.left).saturating_add(self.unit.saturating_sub(after.left)),
            };
            self.written = self.written.saturating_add(blocks);
        }
        self.units = units;
    }

    /// Returns the space left in the units of the handle, in blocks.
    #[must_use]
    pub fn left(&self) -> u64 {
        let own = self.units.iter().filter(|unit| unit.handle == self.handle);
        own.fold(0, |sum, unit| sum.saturating_add(unit.left))
    }

    /// Returns the blocks written since the start.
    #[must_use]
    pub fn written(&self) -> u64 {
        self.written
    }
}

#[cfg(test)]
mod tests;
