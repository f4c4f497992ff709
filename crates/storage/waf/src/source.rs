//! Where counters of host and flash writes come from: five places, the finest first.
//!
//! Each source looks at what the drive says of itself before it believes a page, and names what it missed. All
//! counters become bytes in 128 bits, with the step by which the drive counts. Deliberately absent: differences.

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

/// A thousand million times what any drive will write: more is not a counter. Sums and products of what is below have
/// room in 128 bits.
pub(crate) const MOST_BYTES: u128 = 1 << 90;

/// A place of counters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Source {
    /// Statistics of Flexible Data Placement, log 22h.
    Fdp,
    /// OCP's extended SMART, log C0h, beside SMART, log 02h.
    Ocp,
    /// Huawei ES3000's log C0h, as calculate_wa.sh reads it.
    Huawei,
    /// Intel's additional SMART, log CAh.
    Intel,
    /// Endurance group information, log 09h.
    Endurance,
}

/// Host and flash writes since ever, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Counters {
    /// Written by the host.
    pub host: u128,
    /// Written to flash, host's writes included.
    pub media: u128,
}

impl Counters {
    /// Whether nothing was counted yet.
    #[must_use]
    pub fn is_zero(&self) -> bool {
        self.host == 0 && self.media == 0
    }
}

/// By how many bytes counters grow at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Steps {
    /// Of [`Counters::host`].
    pub host: u128,
    /// Of [`Counters::media`].
    pub media: u128,
}

impl Source {
    /// All, in the order in which they are tried: from bytes to gigabytes.
    pub const ALL: [Self; 5] = [
        Self::Fdp,
        Self::Ocp,
        Self::Huawei,
        Self::Intel,
        Self::Endurance,
    ];

    /// One word, as on the command line and in files.
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

    /// What it is, for people.
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

    /// Its granularity.
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
            // A sample of it would be labelled as the group's, and counted again with that of the next.
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

/// Not the name of a source.
#[derive(Debug, thiserror::Error)]
#[error("no source is called {name:?}; there are fdp, ocp, huawei, intel and endurance")]
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

/// Why a drive's counters cannot be had from a source.
#[derive(Debug, thiserror::Error)]
pub enum Unusable {
    /// The drive says that it does not have it.
    #[error("the drive does not report Flexible Data Placement (CTRATT bit 19)")]
    NoFdp,
    /// It belongs to an endurance group, and there is none.
    #[error("the drive reports no endurance group")]
    NoGroup,
    /// It belongs to an endurance group, and there are several.
    #[error(
        "namespaces are in endurance groups {}: name one of them (/dev/nvme0n1) instead of the drive",
        listed(groups)
    )]
    SeveralGroups {
        /// Their numbers.
        groups: Vec<u16>,
    },
    /// It counts for the whole drive, and one of several endurance groups is measured.
    #[error(
        "it counts for the drive, whose namespaces are in endurance groups {}, and not for group {group}: name the drive \
         (/dev/nvme0) instead of a namespace",
        listed(groups)
    )]
    WholeDrive {
        /// That of the namespace.
        group: u16,
        /// Those of all.
        groups: Vec<u16>,
    },
    /// The layout is known for other drives only.
    #[error("vendor {vendor:04x}h, model {model:?}: {known}")]
    Stranger {
        /// PCI vendor.
        vendor: u16,
        /// Model number.
        model: String,
        /// For which drives it is known.
        known: &'static str,
    },
    /// The page could not be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The page ends before the field.
    #[error("{} has {found} bytes, {needed} are needed", page.title())]
    Short {
        /// Which.
        page: Page,
        /// Bytes there are.
        found: usize,
        /// Bytes there should be.
        needed: usize,
    },
    /// Every byte is FFh: nobody filled it in.
    #[error("{} holds nothing but FFh", page.title())]
    Blank {
        /// Which.
        page: Page,
    },
    /// The page does not say that it is OCP's.
    #[error("{} is not OCP's: its GUID is {}", page.title(), hex(guid))]
    Guid {
        /// Which.
        page: Page,
        /// What it has instead.
        guid: [u8; 16],
    },
    /// OCP's page in a version that is not known.
    #[error("{} is OCP's in version {version}; known are {} to {}", page.title(), ocp::VERSIONS.start(), ocp::VERSIONS.end())]
    Version {
        /// Which.
        page: Page,
        /// Its version.
        version: u16,
    },
    /// An item is not in the list.
    #[error("{} has no item {key:02x}h", page.title())]
    NoItem {
        /// Which.
        page: Page,
        /// The item.
        key: u8,
    },
    /// More than can be.
    #[error("{} counts {value} units of {unit} bytes, which no drive has written", page.title())]
    Absurd {
        /// Which.
        page: Page,
        /// The counter.
        value: u128,
        /// Its unit.
        unit: u128,
    },
    /// Spare blocks are a percentage, and this is none.
    #[error("{} counts more than 100 percent of spare blocks", page.title())]
    Spare {
        /// Which.
        page: Page,
    },
    /// One of the two counters is not kept.
    #[error("{} reports one counter only: host {}, flash {} bytes", page.title(), counters.host, counters.media)]
    OneSided {
        /// Which.
        page: Page,
        /// What it reports; 0 for what it does not.
        counters: Counters,
    },
    /// The drive has been written to, and a counter says that it has not.
    #[error("{} counts nothing although log page 02h counts {written} bytes from the host", page.title())]
    Standstill {
        /// Which.
        page: Page,
        /// Host writes by SMART.
        written: u128,
    },
}

impl Unusable {
    /// Whether the drive does not have it; otherwise it is there and could not be read this time.
    #[must_use]
    pub fn is_absence(&self) -> bool {
        match self {
            Self::NoFdp
            | Self::NoGroup
            | Self::SeveralGroups { .. }
            | Self::WholeDrive { .. }
            | Self::Stranger { .. }
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

/// What each source says of a drive, in the order of preference.
pub fn probe(
    drive: &mut dyn Drive,
    identity: &Identity,
) -> Vec<(Source, Result<Counters, Unusable>)> {
    let all = Source::ALL.into_iter();
    all.map(|source| (source, source.read(drive, identity)))
        .collect()
}

/// No source is usable.
#[derive(Debug, thiserror::Error)]
#[error("no source of counters is usable: {}", reasons(.0))]
pub struct NoSource(pub Vec<(Source, Unusable)>);

fn reasons(all: &[(Source, Unusable)]) -> String {
    let words = all.iter().map(|(source, why)| format!("{source}: {why}"));
    words.collect::<Vec<_>>().join("; ")
}

/// The source that is used of those that were probed: the first that is usable and has counted anything, else the first
/// that is usable.
///
/// Statistics of placement stand at zero until it is enabled, maybe for ever: others of the drive count meanwhile.
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

/// The counters of the best source: the wanted one if one is, else the [`preferred`] one.
///
/// `last` is where the samples so far came from. While that one is there and merely cannot be read, no other takes
/// its place: a moment's fault shall not break a series in two.
///
/// # Errors
/// [`NoSource`] with the reason of each that was tried.
pub fn choose(
    drive: &mut dyn Drive,
    identity: &Identity,
    wanted: Option<Source>,
    last: Option<Source>,
) -> Result<(Source, Counters), NoSource> {
    let mut tried = Vec::new();
    // Usable, but without a count so far.
    let mut idle = None;
    for source in Source::ALL {
        if wanted.is_some_and(|wanted| wanted != source) {
            continue;
        }
        match source.read(drive, identity) {
            Ok(counters) if counters.is_zero() => idle = idle.or(Some((source, counters))),
            Ok(counters) => return Ok((source, counters)),
            Err(why) => {
                let is_passing = last == Some(source) && !why.is_absence();
                tried.push((source, why));
                if is_passing {
                    return Err(NoSource(tried));
                }
            }
        }
    }
    idle.ok_or(NoSource(tried))
}

/// A page that is as long as it should be and was filled in.
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

/// Units of a counter as bytes.
fn in_bytes(page: Page, value: u128, unit: u128) -> Result<u128, Unusable> {
    let bytes = value.checked_mul(unit).filter(|bytes| *bytes <= MOST_BYTES);
    bytes.ok_or(Unusable::Absurd { page, value, unit })
}

/// A counter of sixteen bytes as bytes; the page is long enough.
pub(crate) fn counter(bytes: &[u8], page: Page, at: usize, unit: u128) -> Result<u128, Unusable> {
    in_bytes(page, u128_at(bytes, at).unwrap_or(u128::MAX), unit)
}

/// The one endurance group.
fn group(identity: &Identity) -> Result<u16, Unusable> {
    match &identity.group {
        Group::One(group) => Ok(*group),
        Group::None => Err(Unusable::NoGroup),
        Group::Several(groups) => Err(Unusable::SeveralGroups {
            groups: groups.clone(),
        }),
    }
}

/// Counters that stand at zero are not counters when SMART has seen more than their step.
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
        // Where SMART is not to be had, zeroes may be true.
        Ok(_) | Err(_) => Ok(counters),
    }
}

#[cfg(test)]
mod tests;
