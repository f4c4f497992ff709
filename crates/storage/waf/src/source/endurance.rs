//! Endurance group information, log 09h: the only pair of counters in the base specification.
//!
//! Spec: NVM Express Base 2.0, figure 211: Data Units Written, bytes 64 to 79; Media Units Written,
//! 80 to 95. Both count units of 10^9 bytes, rounded up, so that an error of one percent needs
//! 100 GB of host writes. A field of 0 may also mean that the drive does not report it.

use super::{Counters, Steps, Unusable, counter, counting, group, whole_page};
use crate::drive::Drive;
use crate::identity::Identity;
use crate::page::Page;

pub(crate) const UNIT: u128 = 1_000_000_000;
pub(super) const STEPS: Steps = Steps {
    host: UNIT,
    media: UNIT,
};

pub(super) fn read(drive: &mut dyn Drive, identity: &Identity) -> Result<Counters, Unusable> {
    let page = Page::Endurance(group(identity)?);
    let bytes = whole_page(drive, page, 96)?;
    let counters = Counters {
        host: counter(&bytes, page, 64, UNIT)?,
        media: counter(&bytes, page, 80, UNIT)?,
    };
    // Both are rounded up, so that any host write makes both positive.
    if (counters.host == 0) != (counters.media == 0) {
        return Err(Unusable::OneSided { page, counters });
    }
    if identity.groups.len() > 1 {
        // SMART counts for all groups, so its count cannot prove that this group's counters stand
        // still.
        return Ok(counters);
    }
    counting(drive, page, counters, UNIT)
}
