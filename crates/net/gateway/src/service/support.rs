//! What this version can serve.
//!
//! A limit or a service that the operator has asked for must not be missing without a word.

use super::{ServiceError, cpu};
use crate::settings::Settings;

/// Whether this version can serve the settings.
///
/// # Errors
/// What it cannot do.
pub fn supported(settings: &Settings) -> Result<(), ServiceError> {
    for device in settings.devices.iter().filter(|one| one.has_tap_beside()) {
        if device.vlan.is_some() {
            return Err(ServiceError::NoEffect("device.vlan"));
        }
    }
    if !settings.outgoing.prefixes.is_empty() {
        can_open_connections(settings)?;
    }
    Ok(())
}

/// The remote host's answer must reach the worker that has asked.
fn can_open_connections(settings: &Settings) -> Result<(), ServiceError> {
    let workers = settings.devices.iter();
    let workers = workers.map(|device| cpu::of_workers(device, &settings.workers).len());
    if workers.sum::<usize>() > 1 {
        return Err(ServiceError::Absent(
            "this version opens the connections of `outgoing.prefixes` with one device and one \
             worker: name one of each, or remove the key",
        ));
    }
    Ok(())
}
