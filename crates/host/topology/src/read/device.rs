//! The hardware behind a network device or disk: PCI address, node, driver, interrupts.
//!
//! A device of the class directory may be several levels below the PCI function that owns its
//! interrupts: virtio, SCSI, NVMe and USB devices are. The nearest PCI function above it is taken.

use std::path::Path;

use crate::read::ReadError;
use crate::source::Source;

/// The hardware of one device.
#[derive(Debug, Default)]
pub(super) struct Device {
    pub(super) driver: Option<String>,
    pub(super) name: Option<String>,
    pub(super) node: Option<u32>,
    pub(super) irqs: Vec<u32>,
}

impl Device {
    /// Reads the device behind a link such as `/sys/class/net/eth0/device`; `None` without a link.
    pub(super) fn at(source: &Source, link: &str) -> Result<Option<Self>, ReadError> {
        let Some(real) = source.real(link)? else {
            return Ok(None);
        };
        let function = real
            .ancestors()
            .find(|dir| name(dir).is_some_and(|name| is_pci(&name)));
        let owner = function.unwrap_or(&real);
        let file = |name: &str| format!("/{}/{name}", owner.display());
        let mut irqs = source.numbered(&file("msi_irqs"), "")?;
        if irqs.is_empty() {
            // 0 means that the device has no line of its own.
            let line = source.number::<u32>(&file("irq"))?;
            irqs.extend(line.filter(|line| *line > 0));
        }
        let mut driver = source.link(&format!("/{}/driver", real.display()))?;
        if driver.is_none() {
            driver = source.link(&file("driver"))?;
        }
        Ok(Some(Self {
            driver,
            name: name(owner),
            node: source.id(&file("numa_node"))?,
            irqs,
        }))
    }
}

fn name(dir: &Path) -> Option<String> {
    Some(dir.file_name()?.to_string_lossy().into_owned())
}

/// Whether a name is a PCI address: `0000:7d:00.0`. Domains of VMD controllers have five digits.
fn is_pci(name: &str) -> bool {
    let is_hex = |text: &str, least: usize| {
        text.len() >= least && text.chars().all(|digit| digit.is_ascii_hexdigit())
    };
    let parts: Vec<&str> = name.split([':', '.']).collect();
    matches!(parts.as_slice(), [domain, bus, slot, function]
        if is_hex(domain, 4) && is_hex(bus, 2) && is_hex(slot, 2) && is_hex(function, 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pci_addresses_are_recognised() {
        for name in ["0000:7d:00.0", "10000:01:00.0"] {
            assert!(is_pci(name), "{name}");
        }
        for name in [
            "0:0:0:0",
            "pci0000:00",
            "virtio2",
            "4:0:0:0",
            "a003e00.virtio_mmio",
        ] {
            assert!(!is_pci(name), "{name}");
        }
    }
}
