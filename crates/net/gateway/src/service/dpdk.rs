//! Devices of DPDK: its start for all of them, and each port with the TAP device beside it.

use std::io::{self, Write as _};
use std::num::NonZeroU16;
use std::path::Path;

use saiga_netdev::Device as _;
use saiga_netdev::dpdk::{self, Dpdk, Memory, Options, Plugin, Queue, Which, candidates};
use saiga_netdev::tap::Tap;

use super::{ServiceError, beside};
use crate::settings::{self, Device, Kind, Port, Settings};

/// Threads that DPDK starts, if its drivers start none.
pub(super) const THREADS: usize = 1;
/// Bytes that DPDK takes beside the frames.
pub(crate) const OWN_BYTES: u64 = 32 << 20;

/// Begins DPDK if a device needs it.
pub(super) fn begin(settings: &Settings) -> Result<Option<Dpdk>, ServiceError> {
    if !settings.devices.iter().any(Device::is_dpdk) {
        return Ok(None);
    }
    let plugin = Plugin::find()?;
    Ok(Some(Dpdk::begin(plugin, &eal(settings), say)?))
}

/// Whether DPDK and its plug-in are there, if a device needs them. Begins nothing.
///
/// # Errors
/// What is missing.
pub fn check_plugin(settings: &Settings) -> Result<(), ServiceError> {
    if settings.devices.iter().any(Device::is_dpdk) {
        Plugin::find()?;
    }
    Ok(())
}

/// Prints a line of DPDK beside the messages of the gateway.
fn say(line: &str) {
    // Nothing is left to do with an error of stderr.
    let _written = writeln!(io::stderr(), "saiga: DPDK: {line}");
}

/// A port of the settings, opened: its queues, and those of the TAP device.
pub(super) fn open(
    dpdk: &Dpdk,
    device: &Device,
    workers: usize,
) -> Result<(Vec<Queue>, Vec<Tap>), ServiceError> {
    let options = options(device, workers)?;
    let ports = dpdk.open(&options)?;
    let info = ports.first().map(|port| port.info());
    let info = info.ok_or(ServiceError::Absent("the device has no queue"))?;
    // What the kernel leaves open, the port might not do.
    let taps = beside::open(device, info, workers, false)?;
    Ok((ports, taps))
}

/// How DPDK begins for these settings.
fn eal(settings: &Settings) -> dpdk::Settings {
    let settings::Dpdk {
        memory,
        huge_dir,
        eal,
    } = &settings.dpdk;
    let memory = match memory {
        settings::Memory::Needed => Memory::Needed,
        settings::Memory::PerNode(nodes) => {
            Memory::PerNode(nodes.iter().map(|size| size.0 >> 20).collect())
        }
        settings::Memory::Ordinary => {
            let bytes: u64 = settings
                .devices
                .iter()
                .map(|one| frame_bytes(settings, one))
                .sum();
            Memory::Ordinary {
                mebibytes: (bytes + OWN_BYTES) >> 20,
            }
        }
    };
    let mut cards = Vec::new();
    for device in &settings.devices {
        match &device.kind {
            Kind::Dpdk { port, .. } => match port {
                Port::Pci(address) => cards.push(address.to_string()),
                Port::Mac(mac) => cards.extend(candidates(Path::new("/sys"), *mac)),
                Port::Vdev(_) => {}
            },
            Kind::Xdp { .. } | Kind::Tap { .. } | Kind::Memif { .. } => {}
        }
    }
    cards.sort();
    cards.dedup();
    dpdk::Settings {
        memory,
        huge_dir: huge_dir.clone(),
        cards,
        arguments: eal.clone(),
    }
}

/// Bytes of the frames of a device; 0 if it does not belong to DPDK.
pub(crate) fn frame_bytes(settings: &Settings, device: &Device) -> u64 {
    let workers = super::cpu::of_workers(device, &settings.workers).len();
    options(device, workers).map_or(0, |options| options.memory_bytes())
}

fn options(device: &Device, workers: usize) -> Result<Options, ServiceError> {
    let other = ServiceError::Absent("the device does not belong to DPDK");
    let Kind::Dpdk { port, queues, .. } = &device.kind else {
        return Err(other);
    };
    let queues = queues.or(u16::try_from(workers).ok());
    Ok(Options {
        which: match port {
            Port::Pci(address) => Which::Device(address.to_string()),
            Port::Mac(mac) => Which::Mac(*mac),
            Port::Vdev(device) => Which::Device(device.clone()),
        },
        queues: queues.and_then(NonZeroU16::new).ok_or(other)?,
        ring: u16::try_from(device.ring).unwrap_or(u16::MAX),
        frames: device.frames,
        mtu: device.mtu,
    })
}
