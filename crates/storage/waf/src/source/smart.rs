//! SMART / health information, log 02h: host writes in units of 1000 blocks of 512 bytes.
//!
//! Spec: NVM Express Base 2.0, figure 207. Data Units Written, bytes 48 to 63, is rounded up.

use super::{Unusable, counter, whole_page};
use crate::drive::Drive;
use crate::page::Page;

/// Size in bytes of a data unit.
pub(crate) const UNIT: u128 = 512_000;

/// Reads the bytes that the host wrote.
pub(super) fn host_bytes(drive: &mut dyn Drive) -> Result<u128, Unusable> {
    let bytes = whole_page(drive, Page::Smart, 64)?;
    counter(&bytes, Page::Smart, 48, UNIT)
}
