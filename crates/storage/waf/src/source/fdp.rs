//! Statistics of Flexible Data Placement, log 22h: two counters of single bytes.
//!
//! Spec: TP4146, FDP Statistics log page: Host Bytes with Metadata Written, bytes 0 to 15; Media
//! Bytes with Metadata Written, 16 to 31. They count since placement was enabled in the endurance
//! group.

use super::{Counters, Steps, Unusable, counter, group, whole_page};
use crate::drive::Drive;
use crate::identity::Identity;
use crate::page::Page;

pub(super) const STEPS: Steps = Steps { host: 1, media: 1 };

pub(super) fn read(drive: &mut dyn Drive, identity: &Identity) -> Result<Counters, Unusable> {
    if !identity.fdp {
        return Err(Unusable::NoFdp);
    }
    let page = Page::Fdp(group(identity)?);
    let bytes = whole_page(drive, page, 32)?;
    Ok(Counters {
        host: counter(&bytes, page, 0, 1)?,
        media: counter(&bytes, page, 16, 1)?,
    })
}
