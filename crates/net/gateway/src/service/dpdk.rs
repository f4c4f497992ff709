//! Devices of DPDK: its start for all of them, and the TAP device of each that leads to the kernel.
//!
//! The TAP device has the port's MAC address and MTU, and the addresses and routes of the settings.
//! So the kernel answers ARP and echo requests, resolves neighbours for the stacks, and serves all
//! other ports. The device, with all that it was given, vanishes with the process.

use std::ffi::OsStr;
use std::io::{self, Write as _};
use std::num::NonZeroU16;

use saiga_interface::{Configuration, Snapshot};
use saiga_netdev::dpdk::{self, Dpdk, Memory, Options, Plugin, Queue, Which, candidates};
use saiga_netdev::tap::{self, Tap};
use saiga_netdev::{Device as _, Info};

use super::ServiceError;
use crate::settings::{self, Addresses, Device, Kind, Port, Settings};

/// Threads that DPDK starts, if its drivers start none.
pub(super) const THREADS: usize = 1;
/// The name of the TAP device, unless the settings have one.
const INTERFACE: &str = "saiga0";
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
    let taps = open_tap(device, info, workers)?;
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
                Port::Mac(mac) => cards.extend(candidates(*mac)),
                Port::Vdev(_) => {}
            },
            Kind::Xdp { .. } | Kind::Tap { .. } => {}
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

/// The TAP device of a port, with a queue for each worker.
fn open_tap(device: &Device, port: &Info, workers: usize) -> Result<Vec<Tap>, ServiceError> {
    let queues = u16::try_from(workers).ok().and_then(NonZeroU16::new);
    let name = interface(device);
    let taps = Tap::open(&tap::Settings {
        name,
        link: saiga_netdev::Link::Ethernet,
        origin: tap::Origin::Make,
        queues: queues.ok_or(ServiceError::Absent("the device has no worker"))?,
        // What the kernel leaves open, the port might not do.
        has_offloads: false,
    })?;
    let snapshot = Snapshot::take(OsStr::new(name))?;
    let routes = match &device.addresses {
        Addresses::Kernel => &[][..],
        Addresses::Own { routes, .. } => routes,
    };
    let configuration = Configuration {
        index: snapshot.device.link.index,
        mac: port
            .mac
            .ok_or(ServiceError::Absent("the port has no MAC address"))?,
        mtu: port.mtu,
        addresses: device.addresses.own().to_vec(),
        routes: routes
            .iter()
            .map(|route| (route.destination, route.gateway))
            .collect(),
    };
    configuration.apply()?;
    Ok(taps)
}

/// The name of the TAP device of a port.
fn interface(device: &Device) -> &str {
    device.interface().map_or(INTERFACE, |name| name.as_str())
}
