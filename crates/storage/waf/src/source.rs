//! The five sources of host and flash write counters, the finest first.
//!
//! Each source checks the identity of the drive before it accepts a page, and returns the reason if
//! the page is not usable. All counters are converted to bytes in 128 bits, and have the step by
//! which the drive counts. Deliberately absent: differences.

pub(crate) mod endurance;
mod fdp;
mod huawei;
mod intel;
mod ocp;
pub(crate) mod smart;

use std::fmt;
use std::str::FromStr;

use crate::bytes::u128_at;
use crate::drive::{Drive, ReadError};
use crate::identity::{Group, Identity};
use crate::page::Page;

/// Counters above this are invalid: no drive writes a 10^9th of it. Sums and products of smaller
/// values fit into 128 bits.
pub(crate) const MOST_BYTES: u128 = 1 << 90;

/// A source of counters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Source {
    /// Statistics of Flexible Data Placement, log 22h.
    Fdp,
    /// OCP's extended SMART, log C0h, with SMART, log 02h.
    Ocp,
    /// Huawei ES3000's log C0h.
    Huawei,
    /// Intel's additional SMART, log CAh.
    Intel,
    /// Endurance group information, log 09h.
    Endurance,
}

/// Host and flash writes since the start of the counters, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Counters {
    pub host: u128,
    /// Flash writes, including those of host data.
    pub media: u128,
}

impl Counters {
    /// Whether both counters are zero.
    #[must_use]
    pub fn is_zero(&self) -> bool {
        self.host == 0 && self.media == 0
    }
}

/// The steps by which counters grow, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Steps {
    pub host: u128,
    pub media: u128,
}

impl Source {
    /// All sources in the order of preference: from steps of a byte to steps of a gigabyte.
    pub const ALL: [Self; 5] = [
        Self::Fdp,
        Self::Ocp,
        Self::Huawei,
        Self::Intel,
        Self::Endurance,
    ];

    /// Returns its name on the command line and in files.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Fdp => "fdp",
            Self::Ocp => "ocp",
            Self::Huawei => "huawei",
            Self::Intel => "intel",
            Self::Endurance => "endurance",
        }
    }

    /// Returns its description for messages.
    #[must_use]
    pub fn title(self) -> &'static str {
        match self {
            Self::Fdp => "FDP statistics (log 22h)",
            Self::Ocp => "OCP SMART (log C0h) with SMART (log 02h)",
            Self::Huawei => "Huawei ES3000 (log C0h)",
            Self::Intel => "Intel additional SMART (log CAh)",
            Self::Endurance => "endurance group (log 09h)",
        }
    }

    /// Returns the granularity of its counters.
    #[must_use]
    pub fn steps(self) -> Steps {
        match self {
            Self::Fdp => fdp::STEPS,
            Self::Ocp => ocp::STEPS,
            Self::Huawei => huawei::STEPS,
            Self::Intel => intel::STEPS,
            Self::Endurance => endurance::STEPS,
        }
    }

    fn read(self, drive: &mut dyn Drive, identity: &Identity) -> Result<Counters, Unusable> {
        let of_controller = match self {
            Self::Fdp => return fdp::read(drive, identity),
            Self::Endurance => return endurance::read(drive, identity),
            Self::Ocp => ocp::read(drive, identity),
            Self::Huawei => huawei::read(drive, identity),
            Self::Intel => intel::read(drive, identity),
        };
        match &identity.group {
            // The sample would be labelled as the group's, and the sum over groups would count it
            // twice.
            Group::One(group) if identity.groups.len() > 1 => {
                of_controller.and(Err(Unusable::WholeDrive {
                    group: *group,
                    groups: identity.groups.clone(),
                }))
            }
            Group::One(_) | Group::None | Group::Several(_) => of_controller,
        }
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A word that is not the name of a source.
#[derive(Debug, thiserror::Error)]
#[error("unknown source {name:?}; use fdp, ocp, huawei, intel or endurance")]
pub struct UnknownSource {
    name: String,
}

impl FromStr for Source {
    type Err = UnknownSource;

    fn from_str(name: &str) -> Result<Self, UnknownSource> {
        let found = Self::ALL.into_iter().find(|source| source.name() == name);
        found.ok_or_else(|| UnknownSource {
            name: name.to_owned(),
        })
    }
}

/// The reason why a source is not usable.
#[derive(Debug, thiserror::Error)]
pub enum Unusable {
    #[error("the drive does not report Flexible Data Placement (CTRATT bit 19)")]
    NoFdp,
    #[error("the drive reports no endurance group")]
    NoGroup,
    /// The counters are those of one endurance group, but the namespaces are in several.
    #[error(
        "namespaces are in endurance groups {}: name one of them (/dev/nvme0n1) instead of the \
         drive",
        listed(groups)
    )]
    SeveralGroups { groups: Vec<u16> },
    /// The counters are those of the drive, but one of several endurance groups is measured.
    #[error(
        "the counters are those of the drive, whose namespaces are in endurance groups {}, not of \
         group {group}: name the drive (/dev/nvme0) instead of a namespace",
        listed(groups)
    )]
    WholeDrive { group: u16, groups: Vec<u16> },
    /// The layout of the page is only known for the drives in `known`.
    #[error("vendor {vendor:04x}h, model {model:?}: {known}")]
    OtherDrive {
        vendor: u16,
        model: String,
        known: &'static str,
    },
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The page ends before a field.
    #[error("{} has {found} bytes, {needed} are needed", page.title())]
    Short {
        page: Page,
        found: usize,
        needed: usize,
    },
    /// Every byte of the page is FFh, because the drive did not fill it in.
    #[error("{} contains only FFh", page.title())]
    Blank { page: Page },
    #[error("{} is not OCP's: its GUID is {}", page.title(), hex(guid))]
    Guid { page: Page, guid: [u8; 16] },
    #[error(
        "{} is OCP's in version {version}; supported are {} to {}",
        page.title(), ocp::VERSIONS.start(), ocp::VERSIONS.end()
    )]
    Version { page: Page, version: u16 },
    #[error("{} has no item {key:02x}h", page.title())]
    NoItem { page: Page, key: u8 },
    /// A counter exceeds `MOST_BYTES`.
    #[error(
        "{} counts {value} units of {unit} bytes, more than any drive can write",
        page.title()
    )]
    Absurd { page: Page, value: u128, unit: u128 },
    #[error("{} reports more than 100 percent of spare blocks", page.title())]
    Spare { page: Page },
    /// One of the two counters is 0, because the drive does not keep it.
    #[error(
        "{} reports only one counter: host {}, flash {} bytes",
        page.title(), counters.host, counters.media
    )]
    OneSided { page: Page, counters: Counters },
    /// The counters are 0, but SMART counts `written` bytes from the host.
    #[error(
        "{} counts nothing although log page 02h counts {written} bytes from the host",
        page.title()
    )]
    Standstill { page: Page, written: u128 },
}

impl Unusable {
    /// Whether the drive certainly lacks the source. Otherwise the failure may be temporary.
    #[must_use]
    pub fn is_absence(&self) -> bool {
        match self {
            Self::NoFdp
            | Self::NoGroup
            | Self::SeveralGroups { .. }
            | Self::WholeDrive { .. }
            | Self::OtherDrive { .. }
            | Self::Guid { .. }
            | Self::Version { .. }
            | Self::NoItem { .. }
            | Self::OneSided { .. }
            | Self::Standstill { .. } => true,
            Self::Read(error) => error.is_absence(),
            Self::Short { .. } | Self::Blank { .. } | Self::Absurd { .. } | Self::Spare { .. } => {
                false
            }
        }
    }
}

fn listed(groups: &[u16]) -> String {
    let words: Vec<String> = groups.iter().map(ToString::to_string).collect();
    words.join(", ")
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Reads every source of a drive, in the order of preference.
pub fn probe(
    drive: &mut dyn Drive,
    identity: &Identity,
) -> Vec<(Source, Result<Counters, Unusable>)> {
    let all = Source::ALL.into_iter();
    all.map(|source| (source, source.read(drive, identity)))
        .collect()
}

/// No source is usable; with the reason for each.
#[derive(Debug, thiserror::Error)]
#[error("no source of counters is usable: {}", reasons(.0))]
pub struct NoSource(pub Vec<(Source, Unusable)>);

fn reasons(all: &[(Source, Unusable)]) -> String {
    let words = all.iter().map(|(source, why)| format!("{source}: {why}"));
    words.collect::<Vec<_>>().join("; ")
}

/// Returns the source to use: the first usable one with a counter above zero, otherwise the first
/// usable one.
///
/// Statistics of placement stay at zero until placement is enabled; other sources count before.
#[must_use]
pub fn preferred<E>(probed: &[(Source, Result<Counters, E>)]) -> Option<Source> {
    let usable = || {
        let read = probed.iter();
        read.filter_map(|(source, read)| Some((*source, read.as_ref().ok()?)))
    };
    let counting = usable().find(|(_, counters)| !counters.is_zero());
    let (source, _) = counting.or_else(|| usable().next())?;
    Some(source)
}

/// Reads the counters of the wanted source or, without one, of the [`preferred`] source.
///
/// `last` is the source of the previous sample. If it exists but cannot be read at the moment, no
/// other source replaces it, because a change of source ends a segment.
///
/// # Errors
/// No source is usable.
pub fn choose(
    drive: &mut dyn Drive,
    identity: &Identity,
    wanted: Option<Source>,
    last: Option<Source>,
) -> Result<(Source, Counters), NoSource> {
    let mut tried = Vec::new();
    // The first usable source whose counters are zero.
    let mut idle = None;
    for source in Source::ALL {
        if wanted.is_some_and(|wanted| wanted != source) {
            continue;
        }
        match source.read(drive, identity) {
            Ok(counters) if counters.is_zero() => idle = idle.or(Some((source, counters))),
            Ok(counters) => return Ok((source, counters)),
            Err(why) => {
                let is_temporary = last == Some(source) && !why.is_absence();
                tried.push((source, why));
                if is_temporary {
                    return Err(NoSource(tried));
                }
            }
        }
    }
    idle.ok_or(NoSource(tried))
}

/// Reads a page and checks that it has the needed length and was filled in.
pub(crate) fn whole_page(
    drive: &mut dyn Drive,
    page: Page,
    needed: usize,
) -> Result<Vec<u8>, Unusable> {
    let bytes = drive.read(page)?;
    if bytes.len() < needed {
        let found = bytes.len();
        return Err(Unusable::Short {
            page,
            found,
            needed,
        });
    }
    if bytes.iter().all(|byte| *byte == 0xff) {
        return Err(Unusable::Blank { page });
    }
    Ok(bytes)
}

/// Converts units of a counter to bytes.
fn in_bytes(page: Page, value: u128, unit: u128) -> Result<u128, Unusable> {
    let bytes = value.checked_mul(unit).filter(|bytes| *bytes <= MOST_BYTES);
    bytes.ok_or(Unusable::Absurd { page, value, unit })
}

/// Reads a counter of 16 bytes and converts it to bytes. The page must be long enough.
pub(crate) fn counter(bytes: &[u8], page: Page, at: usize, unit: u128) -> Result<u128, Unusable> {
    in_bytes(page, u128_at(bytes, at).unwrap_or(u128::MAX), unit)
}

/// Returns the endurance group if there is exactly one.
fn group(identity: &Identity) -> Result<u16, Unusable> {
    match &identity.group {
        Group::One(group) => Ok(*group),
        Group::None => Err(Unusable::NoGroup),
        Group::Several(groups) => Err(Unusable::SeveralGroups {
            groups: groups.clone(),
        }),
    }
}

/// Refuses counters at zero if SMART has counted more than their step.
fn counting(
    drive: &mut dyn Drive,
    page: Page,
    counters: Counters,
    step: u128,
) -> Result<Counters, Unusable> {
    if counters.host > 0 && counters.media > 0 {
        return Ok(counters);
    }
    match smart::host_bytes(drive) {
        Ok(written) if written > 2 * step => Err(Unusable::Standstill { page, written }),
        // Without SMART, zeros may be true.
        Ok(_) | Err(_) => Ok(counters),
    }
}

#[cfg(test)]
mod tests;
