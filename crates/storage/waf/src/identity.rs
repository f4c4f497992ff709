//! Which drive it is, and what it says it can do.
//!
//! Spec: NVM Express Base 2.0, figures 275 (Identify Controller) and 280 (Identify Namespace), 5.17.2.22 (UUID list);
//! TP4146 for CTRATT bit 19. Deliberately absent: counters.

use crate::bytes::{text_at, u16_at, u32_at};
use crate::drive::{Drive, ReadError};
use crate::page::Page;

/// Namespaces of a drive that are asked for their endurance group; no real drive has more groups than this.
const MOST_NAMESPACES: usize = 128;
/// Where a namespace's page has its endurance group.
pub(crate) const ENDGID: usize = 102;
/// OCP's UUID, which chooses its meaning of the vendor's log pages (OCP Datacenter NVMe SSD 2.0, LUID).
const OCP_UUID: [u8; 16] = [
    0xc1, 0x94, 0xd5, 0x5b, 0xe0, 0x94, 0x47, 0x94, 0xa2, 0x1d, 0x29, 0x99, 0x8f, 0x56, 0xbe, 0x6f,
];

/// What a drive says of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// PCI vendor, VID.
    pub vendor: u16,
    /// Model number, MN.
    pub model: String,
    /// Serial number, SN.
    pub serial: String,
    /// Firmware revision, FR.
    pub firmware: String,
    /// Whether it has Flexible Data Placement, CTRATT bit 19.
    pub fdp: bool,
    /// How many streams the directive of that name can have (NSSA), on drives with directives (OACS bit 5).
    pub streams: Option<u16>,
    /// The namespace that was named, or all.
    pub namespaces: Vec<u32>,
    /// The endurance group of these namespaces.
    pub group: Group,
    /// The endurance groups of all namespaces of the drive, in order: a group's counters are not the drive's where there
    /// are several.
    pub groups: Vec<u16>,
    /// Where OCP's UUID stands in the drive's list.
    pub ocp_uuid: Option<u8>,
}

/// The endurance group that is measured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Group {
    /// All namespaces that were looked at are in it.
    One(u16),
    /// The drive reports none.
    None,
    /// The namespaces are in these: the counters of one would not be those of the drive.
    Several(Vec<u16>),
}

impl Group {
    /// Its number, when there is one.
    #[must_use]
    pub fn one(&self) -> Option<u16> {
        match self {
            Self::One(group) => Some(*group),
            Self::None | Self::Several(_) => None,
        }
    }

    /// The numbers of all.
    #[must_use]
    pub fn all(&self) -> Vec<u16> {
        match self {
            Self::One(group) => vec![*group],
            Self::None => Vec::new(),
            Self::Several(groups) => groups.clone(),
        }
    }
}

/// Why it is not known which drive it is.
#[derive(Debug, thiserror::Error)]
pub enum IdentityError {
    /// It does not answer.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// Its answer ends early.
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
    /// Its answer holds no model or no serial number.
    #[error("{} names no model or no serial number, so that this drive cannot be told from another", Page::Controller.title())]
    Nameless,
}

/// Asks a drive what it is.
///
/// # Errors
/// [`IdentityError`]. A page that the drive does not have is an empty list; one that it could not give this time is an
/// error, for without it this would seem to be another drive, or one with other sources.
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
        // Neither a series nor a source depends on it, so a fault costs no sample.
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

/// The endurance groups of namespaces, each once.
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

/// A page that is as long as needed and was filled in; `None` when the drive has none.
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

/// What the controller's page alone says.
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

/// Numbers up to the first zero.
fn namespaces(page: &[u8]) -> Vec<u32> {
    let numbers = (0..MOST_NAMESPACES).map_while(|index| u32_at(page, 4 * index));
    numbers.take_while(|nsid| *nsid > 0).collect()
}

/// Entries of 32 bytes, the first of which is reserved; an entry's UUID is its second half.
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
    fn fields_are_where_the_specification_has_them() {
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
    fn a_page_that_names_nobody_is_no_identity() {
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
    fn the_uuid_list_begins_with_an_entry_that_does_not_count() {
        let mut page = vec![0; 4096];
        page[32 * 2 + 16..32 * 3].copy_from_slice(&OCP_UUID);
        assert_eq!(ocp_uuid(&page), Some(2));
        assert_eq!(ocp_uuid(&page[..32 * 3 - 1]), None);
        page[16..32].copy_from_slice(&OCP_UUID);
        assert_eq!(ocp_uuid(&page), Some(2), "entry 0 is reserved");
        assert_eq!(ocp_uuid(&[]), None);
    }
}
