//! A device of the settings, opened, with its network.

use saiga_netdev::dpdk::Dpdk;

use super::device::{self, Opened};
use super::network::{Plan, Source};
use super::{ServiceError, cpu};
use crate::settings::{Device, Settings};

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
    ) -> Result<Self, ServiceError> {
        let cpus = cpu::of_workers(device, &settings.workers);
        let opened = device::open(device, &cpus, dpdk)?;
        let (source, plan) = Source::open(settings, device, &opened)?;
        Ok(Self {
            cpus,
            opened,
            source,
            plan,
        })
    }
}
