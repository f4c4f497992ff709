//! Which cards DPDK may touch to find the one with a MAC address.
//!
//! DPDK tells the MAC address of a card only after it has taken the card, and could take another
//! one from the kernel. So it is given either the card of the kernel's interface with this address,
//! whose driver shares it, or those that were bound to a driver for user space before.
//!
//! Source: Documentation/ABI/testing/sysfs-class-net, sysfs-bus-pci.

use std::fs;
use std::path::Path;

use saiga_wire::ethernet::Mac;

/// The kernel's drivers for devices of user space.
const DRIVERS: [&str; 3] = ["vfio-pci", "igb_uio", "uio_pci_generic"];

/// PCI addresses of the cards that can have this MAC address. `root`: where sysfs is mounted.
#[must_use]
pub fn candidates(root: &Path, mac: Mac) -> Vec<String> {
    if let Some(shared) = of_interface(root, mac) {
        return vec![shared];
    }
    let folders = DRIVERS.map(|driver| root.join("bus/pci/drivers").join(driver));
    let mut cards: Vec<String> = folders.iter().flat_map(|folder| names(folder)).collect();
    // Other files there are `bind`, `new_id` and the like.
    cards.retain(|name| name.contains(':'));
    cards
}

/// The card of the kernel's interface with this address.
fn of_interface(root: &Path, mac: Mac) -> Option<String> {
    let interfaces = root.join("class/net");
    let has_it = |name: &String| {
        let address = fs::read_to_string(interfaces.join(name).join("address"));
        address.is_ok_and(|address| address.trim() == mac.to_string())
    };
    let named = names(&interfaces).into_iter().filter(has_it);
    // A VLAN or a bridge has the address of its card, and no device of its own.
    let mut devices = named.filter_map(|name| {
        let device = fs::canonicalize(interfaces.join(name).join("device")).ok()?;
        Some(device.file_name()?.to_str()?.to_owned())
    });
    devices.find(|name| name.contains(':'))
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut names: Vec<String> = entries
        .filter_map(|entry| entry.file_name().into_string().ok())
        .collect();
    names.sort();
    names
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn the_kernels_card_or_those_that_were_given_away() {
        let root = tempfile::tempdir().unwrap();
        let path = |name: &str| root.path().join(name);
        for card in ["0000:04:00.0", "0000:05:00.0", "0000:06:00.0"] {
            fs::create_dir_all(path("devices").join(card)).unwrap();
        }
        for name in [
            "class/net/eth0",
            "class/net/vlan7",
            "bus/pci/drivers/vfio-pci",
        ] {
            fs::create_dir_all(path(name)).unwrap();
        }
        symlink(path("devices/0000:04:00.0"), path("class/net/eth0/device")).unwrap();
        for interface in ["eth0", "vlan7"] {
            let file = path("class/net").join(interface).join("address");
            fs::write(file, "02:00:00:00:00:04\n").unwrap();
        }
        for card in ["0000:05:00.0", "0000:06:00.0"] {
            let link = path("bus/pci/drivers/vfio-pci").join(card);
            symlink(path("devices").join(card), link).unwrap();
        }
        fs::write(path("bus/pci/drivers/vfio-pci/bind"), "").unwrap();
        let with = |last| candidates(root.path(), Mac([2, 0, 0, 0, 0, last]));
        assert_eq!(with(4), ["0000:04:00.0"]);
        assert_eq!(with(5), ["0000:05:00.0", "0000:06:00.0"]);
    }
}
