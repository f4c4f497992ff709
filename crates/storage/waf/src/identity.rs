//! Identifies a drive: model, serial number, capabilities and endurance groups.
//!
//! Spec: NVM Express Base 2.0, figures 275 (Identify Controller) and 280 (Identify Namespace),
//! 5.17.2.22 (UUID list); TP4146 for CTRATT bit 19. Deliberately absent: counters.

use crate::bytes::{text_at, u16_at, u32_at};
use crate::drive::{Drive, ReadError};
use crate::page::Page;

/// Most namespaces whose endurance group is read; no real drive has more groups than this.
const MOST_NAMESPACES: usize = 128;
/// The offset of the endurance group in the page of a namespace.
pub(crate) const ENDGID: usize = 102;
/// OCP's UUID, which selects OCP's log pages (OCP Datacenter NVMe SSD 2.0, LUID).
const OCP_UUID: [u8; 16] = [
    0xc1, 0x94, 0xd5, 0x5b, 0xe0, 0x94, 0x47, 0x94, 0xa2, 0x1d, 0x29, 0x99, 0x8f, 0x56, 0xbe, 0x6f,
];

/// The identity and the capabilities of a drive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// PCI vendor ID (VID).
    pub vendor: u16,
    /// Model number (MN).
    pub model: String,
    /// Serial number (SN).
    pub serial: String,
    /// Firmware revision (FR).
    pub firmware: String,
    /// Whether it has Flexible Data Placement (CTRATT bit 19).
    pub fdp: bool,
    /// Number of available streams (NSSA), on drives with directives (OACS bit 5).
    pub streams: Option<u16>,
    /// The namespace of the path, or all namespaces.
    pub namespaces: Vec<u32>,
    pub group: Group,
    /// The endurance groups of all namespaces of the drive, sorted. With several, the counters of a
    /// group are not those of the drive.
    pub groups: Vec<u16>,
    /// The index of OCP's UUID in the drive's list.
    pub ocp_uuid: Option<u8>,
}

/// The measured endurance group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Group {
    /// All measured namespaces are in this group.
    One(u16),
    /// The drive reports no groups.
    None,
    /// The namespaces are in several groups, so that no group's counters are those of the drive.
    Several(Vec<u16>),
}

impl Group {
    /// Returns the number of the group if there is exactly one.
    #[must_use]
    pub fn one(&self) -> Option<u16> {
        match self {
            Self::One(group) => Some(*group),
            Self::None | Self::Several(_) => None,
        }
    }

    /// Returns the numbers of all groups.
    #[must_use]
    pub fn all(&self) -> Vec<u16> {
        match self {
            Self::One(group) => vec![*group],
            Self::None => Vec::new(),
            Self::Several(groups) => groups.clone(),
        }
    }
}

/// An error of identifying a drive.
#[derive(Debug, thiserror::Error)]
pub enum IdentityError {
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
    #[error(
        "{} has no model or no serial number, so that the drive cannot be identified",
        Page::Controller.title()
    )]
    Nameless,
}

/// Identifies a drive.
///
/// # Errors
/// A page cannot be read or is not valid. A page that the drive lacks counts as an empty list, but
/// a page that could not be read is an error: without it, the drive would look like another one or
/// have other sources.
pub fn identify(drive: &mut dyn Drive) -> Result<Identity, IdentityError> {
    let page = drive.read(Page::Controller)?;
    let mut identity = parse(&page)?;
    if has_uuids(&page) {
        let list = whole_page(drive, Page::Uuids, Page::Uuids.length())?;
        identity.ocp_uuid = ocp_uuid(&list.unwrap_or_default());
    }
    let list = whole_page(drive, Page::Namespaces, Page::Namespaces.length())?;
    let all = namespaces(&list.unwrap_or_default());
    let named = drive.namespace();
    identity.namespaces = named.map_or_else(|| all.clone(), |nsid| vec![nsid]);
    if has_directives(&page) {
        let nsid = identity.namespaces.first().copied();
        // Neither series nor sources depend on the streams, so an error is ignored.
        let page = nsid.and_then(|nsid| drive.read(Page::Streams(nsid)).ok());
        identity.streams = page.and_then(|page| u16_at(&page, 2));
    }
    identity.groups = groups(drive, &all)?;
    let own = match named {
        Some(nsid) => groups(drive, &[nsid])?,
        None => identity.groups.clone(),
    };
    identity.group = match own.as_slice() {
        [] => Group::None,
        [one] => Group::One(*one),
        _ => Group::Several(own),
    };
    Ok(identity)
}

/// Returns the endurance groups of namespaces, sorted, each once.
fn groups(drive: &mut dyn Drive, namespaces: &[u32]) -> Result<Vec<u16>, IdentityError> {
    let mut groups = Vec::new();
    for nsid in namespaces {
        if let Some(page) = whole_page(drive, Page::Namespace(*nsid), ENDGID + 2)? {
            groups.extend(u16_at(&page, ENDGID).filter(|group| *group > 0));
        }
    }
    groups.sort_unstable();
    groups.dedup();
    Ok(groups)
}

/// Reads a page and checks that it has the needed length and was filled in. `None` if the drive
/// lacks the page.
fn whole_page(
    drive: &mut dyn Drive,
    page: Page,
    needed: usize,
) -> Result<Option<Vec<u8>>, IdentityError> {
    let bytes = match drive.read(page) {
        Ok(bytes) => bytes,
        Err(error) if error.is_absence() => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let found = bytes.len();
    if found < needed {
        return Err(IdentityError::Short {
            page,
            found,
            needed,
        });
    }
    if bytes.iter().all(|byte| *byte == 0xff) {
        return Err(IdentityError::Blank { page });
    }
    Ok(Some(bytes))
}

/// Parses the page of the controller.
fn parse(page: &[u8]) -> Result<Identity, IdentityError> {
    let needed = 342; // To ENDGIDMAX; all fields of interest lie before.
    if page.len() < needed {
        return Err(IdentityError::Short {
            page: Page::Controller,
            found: page.len(),
            needed,
        });
    }
    let text = |at, length| text_at(page, at, length).unwrap_or_default();
    let (serial, model) = (text(4, 20), text(24, 40));
    let is_name = |name: &str| name.chars().any(|letter| letter.is_ascii_alphanumeric());
    if !is_name(&serial) || !is_name(&model) {
        return Err(IdentityError::Nameless);
    }
    let attributes = u32_at(page, 96).unwrap_or(0);
    Ok(Identity {
        vendor: u16_at(page, 0).unwrap_or(0),
        model,
        serial,
        firmware: text(64, 8),
        fdp: attributes & 1 << 19 != 0,
        streams: None,
        namespaces: Vec::new(),
        group: Group::None,
        groups: Vec::new(),
        ocp_uuid: None,
    })
}

/// CTRATT bit 9.
fn has_uuids(page: &[u8]) -> bool {
    u32_at(page, 96).is_some_and(|attributes| attributes & 1 << 9 != 0)
}

/// OACS bit 5.
fn has_directives(page: &[u8]) -> bool {
    u16_at(page, 256).is_some_and(|commands| commands & 1 << 5 != 0)
}

/// Returns the namespace IDs up to the first zero.
fn namespaces(page: &[u8]) -> Vec<u32> {
    let numbers = (0..MOST_NAMESPACES).map_while(|index| u32_at(page, 4 * index));
    numbers.take_while(|nsid| *nsid > 0).collect()
}

/// Finds OCP's UUID in a list of entries of 32 bytes: the first is reserved, and the UUID is the
/// second half of an entry.
fn ocp_uuid(page: &[u8]) -> Option<u8> {
    let entries = page.chunks_exact(32).take(128);
    let at = entries.skip(1).position(|entry| entry[16..] == OCP_UUID)?;
    u8::try_from(at + 1).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page() -> Vec<u8> {
        let mut page = vec![0; 4096];
        page[0..2].copy_from_slice(&[0xe5, 0x19]);
        page[4..24].copy_from_slice(b"SERIAL-1            ");
        page[24..64].copy_from_slice(b"HWE52P431T6M002N                        ");
        page[64..72].copy_from_slice(b"1.0.7   ");
        page
    }

    #[test]
    fn fields_are_at_the_offsets_of_the_specification() {
        let identity = parse(&page()).unwrap();
        assert_eq!(identity.vendor, 0x19e5);
        assert_eq!(identity.serial, "SERIAL-1");
        assert_eq!(identity.model, "HWE52P431T6M002N");
        assert_eq!(identity.firmware, "1.0.7");
        assert!(!identity.fdp && !has_directives(&page()));
        for (at, bit, is_seen) in [(98, 1 << 3, true), (98, 1 << 2, false), (97, 1 << 3, false)] {
            let mut page = page();
            page[at] = bit;
            assert_eq!(parse(&page).unwrap().fdp, is_seen, "{at} {bit}");
        }
        let mut page = page();
        page[97] = 1 << 1;
        page[256] = 1 << 5;
        assert!(has_uuids(&page));
        assert!(has_directives(&page));
    }

    #[test]
    fn a_page_without_model_and_serial_number_is_refused() {
        for page in [vec![0; 4096], vec![0xff; 4096]] {
            assert!(matches!(parse(&page), Err(IdentityError::Nameless)));
        }
        let short = parse(&page()[..341]);
        assert!(matches!(
            short,
            Err(IdentityError::Short {
                found: 341,
                needed: 342,
                ..
            })
        ));
    }

    #[test]
    fn namespaces_end_with_zero_and_with_the_page() {
        assert_eq!(
            namespaces(&[1, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0, 9, 0, 0, 0]),
            [1, 3]
        );
        assert_eq!(namespaces(&[2, 0, 0, 0, 5, 0]), [2]);
        assert_eq!(namespaces(&[0xff; 4096]).len(), MOST_NAMESPACES);
    }

    #[test]
    fn the_first_entry_of_the_uuid_list_does_not_count() {
        let mut page = vec![0; 4096];
        page[32 * 2 + 16..32 * 3].copy_from_slice(&OCP_UUID);
        assert_eq!(ocp_uuid(&page), Some(2));
        assert_eq!(ocp_uuid(&page[..32 * 3 - 1]), None);
        page[16..32].copy_from_slice(&OCP_UUID);
        assert_eq!(ocp_uuid(&page), Some(2), "entry 0 is reserved");
        assert_eq!(ocp_uuid(&[]), None);
    }
}
