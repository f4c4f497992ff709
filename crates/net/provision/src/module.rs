//! The module vfio-pci and those that it needs.

use std::io;

use saiga_process::root::Root;
use serde::{Deserialize, Serialize};

use crate::machine::Machine;

/// The driver for user space, and its module.
pub(crate) const VFIO_PCI: &str = "vfio-pci";

/// A module that comes with vfio-pci. In the order in which they can be unloaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Module {
    VfioIommuType1,
    VfioPci,
    VfioPciCore,
    VfioVirqfd,
    Vfio,
    Irqbypass,
}

impl Module {
    const ALL: [Self; 6] = [
        Self::VfioIommuType1,
        Self::VfioPci,
        Self::VfioPciCore,
        Self::VfioVirqfd,
        Self::Vfio,
        Self::Irqbypass,
    ];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::VfioIommuType1 => "vfio_iommu_type1",
            Self::VfioPci => "vfio_pci",
            Self::VfioPciCore => "vfio_pci_core",
            Self::VfioVirqfd => "vfio_virqfd",
            Self::Vfio => "vfio",
            Self::Irqbypass => "irqbypass",
        }
    }

    pub(crate) fn is_loaded(self, root: &Root) -> bool {
        root.exists(format!("/sys/module/{}", self.name()))
    }

    /// Whether something needs the module. What is built into the kernel counts as used.
    pub(crate) fn is_used(self, root: &Root) -> io::Result<bool> {
        let users = root.value::<u32>(format!("/sys/module/{}/refcnt", self.name()))?;
        Ok(users != Some(0))
    }
}

/// The modules that come with vfio-pci; none if the driver is there.
pub(crate) fn missing(root: &Root) -> Vec<Module> {
    if has_driver(root) {
        return Vec::new();
    }
    let all = Module::ALL.into_iter();
    all.filter(|module| !module.is_loaded(root)).collect()
}

/// Loads vfio-pci.
pub(crate) fn load(machine: &mut dyn Machine) -> io::Result<()> {
    machine.load(VFIO_PCI)?;
    if has_driver(machine.root()) {
        return Ok(());
    }
    Err(io::Error::other("the kernel has no driver vfio-pci"))
}

fn has_driver(root: &Root) -> bool {
    root.exists("/sys/bus/pci/drivers/vfio-pci")
}

/// Whether vfio takes devices without an IOMMU.
pub(crate) fn is_unsafe(root: &Root) -> io::Result<bool> {
    let file = "/sys/module/vfio/parameters/enable_unsafe_noiommu_mode";
    Ok(root.text(file)?.as_deref() == Some("Y"))
}
