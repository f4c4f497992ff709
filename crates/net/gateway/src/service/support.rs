//! What this version can serve.
//!
//! A limit or a service that the operator has asked for must not be missing without a word.

use super::ServiceError;
use crate::settings::{Device, Settings};

/// Whether this version can serve the settings.
///
/// # Errors
/// What it cannot do.
pub fn supported(settings: &Settings) -> Result<(), ServiceError> {
    if settings.devices.iter().any(Device::is_dpdk) {
        return Err(ServiceError::Absent(
            "this version serves devices of the kinds \"xdp\" and \"tap\" only: change \
             `device.kind`",
        ));
    }
    if !settings.outgoing.prefixes.is_empty() {
        return Err(ServiceError::NoEffect("outgoing.prefixes"));
    }
    Ok(())
}
