//! A device of the settings, opened, with its network.

use saiga_netdev::dpdk::Dpdk;

use super::device::{self, Opened};
use super::network::{Plan, Source};
use super::{ServiceError, cpu};
use crate::settings::{Device, Settings};
use crate::socket::Owner;

/// A device before its workers begin.
pub(super) struct Attached {
    /// The CPU of each worker.
    pub(super) cpus: Vec<Option<usize>>,
    pub(super) opened: Opened,
    pub(super) source: Source,
    pub(super) plan: Plan,
}

impl Attached {
    /// Opens a device for its workers, and reads its network.
    pub(super) fn open(
        settings: &Settings,
        device: &Device,
        dpdk: Option<&Dpdk>,
        owner: Owner,
    ) -> Result<Self, ServiceError> {
        let cpus = cpu::of_workers(device, &settings.workers);
        let opened = device::open(settings, device, &cpus, dpdk, owner)?;
        let (source, mut plan) = Source::open(settings, device, &opened)?;
        plan.left_out.extend(hidden_tags(device, &opened));
        Ok(Self {
            cpus,
            opened,
            source,
            plan,
        })
    }
}

/// What must be done at the other end of a veth pair, which this end cannot see.
fn hidden_tags(device: &Device, opened: &Opened) -> Option<String> {
    let steering = opened.steering.as_ref()?;
    let vlan = device.vlan.filter(|_| steering.hides_tags_of_peer())?;
    let name = steering.name();
    Some(format!(
        "frames of VLAN {vlan} whose tags the other end of {name} puts beside them: it must have \
         `ethtool -K PEER txvlan off`"
    ))
}
