//! What this version can serve.
//!
//! A limit or a service that the operator has asked for must not be missing without a word.

use super::{ServiceError, cpu};
use crate::settings::{Device, Kind, Settings};

/// The device, if this version can serve the settings.
///
/// # Errors
/// What it cannot do.
pub fn supported(settings: &Settings) -> Result<(), ServiceError> {
    for device in &settings.devices {
        is_supported(device, settings)?;
    }
    let keys = [
        (
            "workers.memory_bind",
            !settings.workers.memory_bind.is_empty(),
        ),
        ("outgoing.prefixes", !settings.outgoing.prefixes.is_empty()),
    ];
    refuse(&keys)
}

fn is_supported(device: &Device, settings: &Settings) -> Result<(), ServiceError> {
    match &device.kind {
        // The replies of connections on other queues would come to the gateway.
        Kind::Xdp {
            queues: Some(_), ..
        } => Err(ServiceError::Absent(
            "this version serves all queues of an interface: remove `device.queues`",
        )),
        Kind::Tap {
            queues: Some(2..), ..
        } => Err(ServiceError::NoEffect("device.queues")),
        // Each worker would have to learn the neighbours whose answers come to another one.
        Kind::Tap { .. } if cpu::of_workers(device, &settings.workers).len() > 1 => {
            Err(ServiceError::Absent(
                "this version serves a TAP device with one worker: name one CPU in `workers.cpus`",
            ))
        }
        Kind::Xdp { .. } | Kind::Tap { .. } | Kind::Dpdk { .. } => Ok(()),
    }?;
    refuse(&[
        ("device.vlan", device.vlan.is_some()),
        ("device.frames", device.has_frames() && !device.is_dpdk()),
    ])
}

/// Refuses the first key that is set: this version does not follow it.
fn refuse(keys: &[(&'static str, bool)]) -> Result<(), ServiceError> {
    match keys.iter().find(|(_, is_set)| *is_set) {
        Some((key, _)) => Err(ServiceError::NoEffect(key)),
        None => Ok(()),
    }
}
