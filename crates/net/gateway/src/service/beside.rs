//! The TAP device beside a device that the kernel does not have: a port of DPDK, or memif.
//!
//! The TAP device has the device's MAC address and MTU, and the addresses and routes of the
//! settings. So the kernel answers ARP and echo requests, resolves neighbours for the stacks, and
//! serves all other ports. The TAP device, with all that it was given, vanishes with the process.

use std::ffi::OsStr;
use std::num::NonZeroU16;

use saiga_interface::{Configuration, Snapshot};
use saiga_netdev::Info;
use saiga_netdev::tap::{self, Tap};

use super::ServiceError;
use crate::settings::{Addresses, Device};

/// The name of the TAP device, unless the settings have one.
const INTERFACE: &str = "saiga0";

/// Opens the TAP device beside `beside`, with a queue for each worker.
pub(super) fn open(
    device: &Device,
    beside: &Info,
    workers: usize,
    has_offloads: bool,
) -> Result<Vec<Tap>, ServiceError> {
    let queues = u16::try_from(workers).ok().and_then(NonZeroU16::new);
    let name = interface(device);
    let taps = Tap::open(&tap::Settings {
        name,
        link: saiga_netdev::Link::Ethernet,
        origin: tap::Origin::Make,
        queues: queues.ok_or(ServiceError::Absent("the device has no worker"))?,
        has_offloads,
    })?;
    let snapshot = Snapshot::take(OsStr::new(name))?;
    let routes = match &device.addresses {
        Addresses::Kernel => &[][..],
        Addresses::Own { routes, .. } => routes,
    };
    let configuration = Configuration {
        index: snapshot.device.link.index,
        mac: beside
            .mac
            .ok_or(ServiceError::Absent("the device has no MAC address"))?,
        mtu: beside.mtu,
        addresses: device.addresses.own().to_vec(),
        routes: routes
            .iter()
            .map(|route| (route.destination, route.gateway))
            .collect(),
    };
    configuration.apply()?;
    Ok(taps)
}

/// The name of the TAP device.
pub(super) fn interface(device: &Device) -> &str {
    device.interface().map_or(INTERFACE, |name| name.as_str())
}
