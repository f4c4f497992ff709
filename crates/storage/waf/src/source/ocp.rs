//! OCP's SMART / health information extended, log C0h, with host writes from SMART.
//!
//! Spec: OCP Datacenter NVMe SSD 2.0, SMART-1 to SMART-29: Physical Media Units Written in bytes,
//! bytes 0 to 15; Log Page Version, 494 and 495; Log Page GUID, 496 to 511. The layout of these
//! fields is the same in versions 1 to 6. Drives with another page C0h return OCP's for OCP's UUID.

use std::ops::RangeInclusive;

use super::{Counters, Steps, Unusable, counter, counting, smart, whole_page};
use crate::bytes::{u16_at, u128_at};
use crate::drive::Drive;
use crate::identity::Identity;
use crate::page::Page;

pub(super) const STEPS: Steps = Steps {
    host: smart::UNIT,
    media: 1,
};
/// Supported versions of the page.
pub(super) const VERSIONS: RangeInclusive<u16> = 1..=6;
/// The GUID of OCP's page, in the byte order of the page.
const GUID: [u8; 16] = [
    0xc5, 0xaf, 0x10, 0x28, 0xea, 0xbf, 0xf2, 0xa4, 0x9c, 0x4f, 0x6f, 0x7c, 0xc9, 0x14, 0xd5, 0xaf,
];

pub(super) fn read(drive: &mut dyn Drive, identity: &Identity) -> Result<Counters, Unusable> {
    let page = Page::VendorC0 {
        uuid: identity.ocp_uuid.unwrap_or(0),
    };
    let bytes = whole_page(drive, page, 512)?;
    check(&bytes, page)?;
    let media = counter(&bytes, page, 0, 1)?;
    let host = smart::host_bytes(drive)?;
    counting(drive, page, Counters { host, media }, smart::UNIT)
}

/// Fails unless the page is OCP's in a supported version.
pub(super) fn check(bytes: &[u8], page: Page) -> Result<(), Unusable> {
    let guid = u128_at(bytes, 496).unwrap_or(0).to_le_bytes();
    if guid != GUID {
        return Err(Unusable::Guid { page, guid });
    }
    let version = u16_at(bytes, 494).unwrap_or(0);
    if !VERSIONS.contains(&version) {
        return Err(Unusable::Version { page, version });
    }
    Ok(())
}
