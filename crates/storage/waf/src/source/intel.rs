//! Intel's additional SMART attributes, log CAh, also of Solidigm, DapuStor and Memblaze.
//!
//! A list of items of twelve bytes: key, two reserved, normalised value, one reserved, raw value of
//! six bytes, one reserved. Item F4h counts flash writes, F5h host writes, both in units of 32 MiB.
//! The page has no signature, so the vendor of the drive must be one of these. A vendor's own unit
//! cancels out of the factor. Memblaze's models before P5920 have other items and units (nvme-cli's
//! plugin).

use super::{Counters, Steps, Unusable, counting, in_bytes, whole_page};
use crate::bytes::u48_at;
use crate::drive::Drive;
use crate::identity::Identity;
use crate::page::Page;

const UNIT: u128 = 32 << 20;
pub(super) const STEPS: Steps = Steps {
    host: UNIT,
    media: UNIT,
};
/// Intel, Solidigm, DapuStor, Memblaze.
const VENDORS: [u16; 4] = [0x8086, 0x025e, 0x1e3b, 0x1c5f];
const MEMBLAZE: u16 = 0x1c5f;
/// The first of Memblaze's models in P with Intel's layout.
const FIRST_MODEL: &str = "P5920";
const ITEM: usize = 12;
const FLASH: u8 = 0xf4;
const HOST: u8 = 0xf5;

pub(super) fn read(drive: &mut dyn Drive, identity: &Identity) -> Result<Counters, Unusable> {
    let other = |known| Unusable::OtherDrive {
        vendor: identity.vendor,
        model: identity.model.clone(),
        known,
    };
    if !VENDORS.contains(&identity.vendor) {
        return Err(other(
            "this layout is that of Intel, Solidigm, DapuStor and Memblaze (8086h, 025eh, 1e3bh, \
             1c5fh)",
        ));
    }
    let model = identity.model.as_str();
    if identity.vendor == MEMBLAZE && model.starts_with('P') && model < FIRST_MODEL {
        return Err(other(
            "Memblaze's models before P5920 have another layout, in which host writes are in GiB \
             and flash writes are not",
        ));
    }
    let page = Page::VendorCa;
    let bytes = whole_page(drive, page, ITEM)?;
    let item = |key| {
        let mut items = bytes.chunks_exact(ITEM);
        let found = items.find(|item| item.first() == Some(&key));
        let raw = found.and_then(|item| u48_at(item, 5));
        raw.ok_or(Unusable::NoItem { page, key })
    };
    let counters = Counters {
        host: in_bytes(page, u128::from(item(HOST)?), UNIT)?,
        media: in_bytes(page, u128::from(item(FLASH)?), UNIT)?,
    };
    counting(drive, page, counters, UNIT)
}
