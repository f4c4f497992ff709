//! The vendor's log C0h of Huawei ES3000 drives, read like calculate_wa.sh.
//!
//! The eight bytes at 1C4h count host writes, those at 1D0h writes by garbage collection, both in
//! units of 4 KiB. The page has no signature, so the drive must have PCI vendor 19E5h and a model
//! that begins with HWE.

use super::{Counters, Steps, Unusable, counting, in_bytes, ocp, whole_page};
use crate::bytes::u64_at;
use crate::drive::Drive;
use crate::identity::Identity;
use crate::page::Page;

const UNIT: u128 = 4096;
/// Flash writes are the sum of two counters, so their step is twice the unit.
pub(super) const STEPS: Steps = Steps {
    host: UNIT,
    media: 2 * UNIT,
};
const PAGE: Page = Page::VendorC0 { uuid: 0 };
const VENDOR: u16 = 0x19e5;
const MODEL: &str = "HWE";

pub(super) fn read(drive: &mut dyn Drive, identity: &Identity) -> Result<Counters, Unusable> {
    if identity.vendor != VENDOR || !identity.model.starts_with(MODEL) {
        return Err(Unusable::OtherDrive {
            vendor: identity.vendor,
            model: identity.model.clone(),
            known: "this layout is that of Huawei's ES3000 (19e5h, HWE...)",
        });
    }
    let bytes = whole_page(drive, PAGE, 0x1d8)?;
    // Newer firmware may have OCP's page, in which these bytes are reserved.
    if ocp::check(&bytes, PAGE).is_ok() {
        return Err(Unusable::OtherDrive {
            vendor: identity.vendor,
            model: identity.model.clone(),
            known: "its log page C0h is OCP's",
        });
    }
    let field = |at| in_bytes(PAGE, u64_at(&bytes, at).map_or(u128::MAX, u128::from), UNIT);
    let (host, moved) = (field(0x1c4)?, field(0x1d0)?);
    let media = host + moved;
    counting(drive, PAGE, Counters { host, media }, STEPS.media)
}
