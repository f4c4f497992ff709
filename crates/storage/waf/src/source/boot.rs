//! SMART attributes of OCP's boot SSDs, log C0h: what was written to flash in TLC and in SLC mode, in bytes.
//!
//! Spec: OCP Hyperscale NVMe Boot SSD 1.0, older than the datacenter one: TLC bytes 0 to 15, SLC bytes 16 to 31, version
//! 1 at 494, a GUID of its own at 496; as nvme-cli's wdc plugin and Meta's FioSynth read it. Drives of Western Digital
//! and Micron have it. Unproven: that all count in bytes, and that the sum is all that is written to flash.

use super::{Counters, Steps, Unusable, counter, counting, smart, whole_page};
use crate::bytes::{u16_at, u128_at};
use crate::drive::Drive;
use crate::identity::Identity;
use crate::page::Page;

pub(super) const STEPS: Steps = Steps {
    host: smart::UNIT,
    media: 2,
};
const PAGE: Page = Page::VendorC0 { uuid: 0 };
const VERSION: u16 = 1;
/// As it lies in the page.
const GUID: [u8; 16] = [
    0x65, 0x43, 0x88, 0x78, 0xac, 0xd8, 0x78, 0xa1, 0x66, 0x42, 0x1e, 0x0f, 0x92, 0xd7, 0x6d, 0xc4,
];
/// No drive writes less to flash than this part of what the host writes; one that counts by SMART's units seems to.
const LEAST_PART: u128 = 100;

pub(super) fn read(drive: &mut dyn Drive, identity: &Identity) -> Result<Counters, Unusable> {
    let bytes = whole_page(drive, PAGE, 512)?;
    let stranger = |known| Unusable::Stranger {
        vendor: identity.vendor,
        model: identity.model.clone(),
        known,
    };
    if u128_at(&bytes, 496).unwrap_or(0).to_le_bytes() != GUID {
        return Err(stranger(
            "its log page C0h has not the GUID of OCP's boot SSDs",
        ));
    }
    if u16_at(&bytes, 494) != Some(VERSION) {
        return Err(stranger(
            "its log page C0h is OCP's for boot SSDs, but not version 1",
        ));
    }
    let (tlc, slc) = (counter(&bytes, PAGE, 0, 1)?, counter(&bytes, PAGE, 16, 1)?);
    let host = smart::host_bytes(drive)?;
    let media = tlc + slc;
    if media > 0 && media < host / LEAST_PART {
        return Err(stranger(
            "it counts less than a hundredth of the host's bytes on flash, so not in bytes",
        ));
    }
    counting(drive, PAGE, Counters { host, media }, smart::UNIT)
}
