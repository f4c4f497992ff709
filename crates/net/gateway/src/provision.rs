//! Huge pages and cards for the devices of DPDK: what the settings need of this machine.
//!
//! `saiga-provision` takes them from the kernel, and gives them back. Here is how much memory each
//! NUMA node must have, and which card a MAC address means.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use rustix::thread::{CpuSet, sched_getaffinity};
use saiga_netdev::dpdk::candidates;
use saiga_process::account::Account;
use saiga_process::numbers::list;
use saiga_process::root::Root;
use saiga_provision::card::with_mac;
use saiga_provision::pages::{Node, PagesError};
pub use saiga_provision::{Hold, Prepared, UndoError, Undone};
use saiga_provision::{Host, PciAddress, PrepareError, RECORD, RecordError, Wanted};
use saiga_wire::ethernet::Mac;

use crate::confine::{ConfineError, Confinement};
use crate::service::{OWN_BYTES, ServiceError, check_plugin, frame_bytes, supported};
use crate::settings::{CPU_MAX, Device, Kind, Memory, Port, Settings};

/// Why the machine is not prepared.
#[derive(Debug, thiserror::Error)]
pub enum ProvisionError {
    /// The process is not of root.
    #[error("only root can take huge pages and cards from the kernel: start the gateway as root")]
    NotRoot,
    /// No card has the MAC address.
    #[error(
        "no network interface here has the MAC address {mac}, and no card is bound to vfio-pci: \
         correct `device.mac`, or name the card by `device.pci`"
    )]
    NoCard {
        /// The MAC address in `device.mac`.
        mac: Mac,
    },
    /// There are no huge pages.
    #[error(transparent)]
    Pages(#[from] PagesError),
    /// The user or the rights of the gateway are missing.
    #[error(transparent)]
    Confine(#[from] ConfineError),
    /// This version cannot serve the settings, or DPDK is missing.
    #[error(transparent)]
    Service(#[from] Box<ServiceError>),
    /// A change was refused, or a card or huge pages cannot be had.
    #[error(transparent)]
    Prepare(#[from] PrepareError),
    /// CPUs, nodes or interfaces cannot be read.
    #[error("cannot read the CPUs, nodes and network interfaces of this machine: {0}")]
    System(#[from] io::Error),
}

/// Takes the huge pages and cards that the settings need from the kernel, and records that. `None`
/// if no device belongs to DPDK.
///
/// # Errors
/// A [`ProvisionError`]. The machine is then as it was before the first recorded change, unless
/// [`PrepareError::left`] says otherwise.
pub fn prepare(settings: &Settings) -> Result<Option<Prepared>, ProvisionError> {
    if !settings.devices.iter().any(Device::is_dpdk) {
        return Ok(None);
    }
    if !Account::is_root() {
        return Err(ProvisionError::NotRoot);
    }
    // What would keep the gateway from its start in any case.
    supported(settings).map_err(Box::new)?;
    Confinement::plan(settings)?;
    check_plugin(settings).map_err(Box::new)?;
    let wanted = wanted(settings, &Root::host())?;
    let prepared = saiga_provision::prepare(&mut Host::new(), &wanted, Path::new(RECORD))?;
    Ok(Some(prepared))
}

/// Prevents [`undo`] while this process may use what an earlier start has prepared.
///
/// # Errors
/// If [`undo`] or [`prepare`] runs, or the record is not one of root.
pub fn hold(settings: &Settings) -> Result<Option<Hold>, RecordError> {
    if settings.devices.iter().any(Device::is_dpdk) {
        saiga_provision::hold(Path::new(RECORD))
    } else {
        Ok(None)
    }
}

/// Gives back what [`prepare`] has taken.
///
/// # Errors
/// While a gateway uses it, or if the kernel refuses something.
pub fn undo() -> Result<Undone, UndoError> {
    saiga_provision::undo(&mut Host::new(), Path::new(RECORD))
}

/// What the devices of DPDK need.
pub(crate) fn wanted(settings: &Settings, root: &Root) -> Result<Wanted, ProvisionError> {
    let mut cards = Vec::new();
    for device in &settings.devices {
        cards.extend(card(device, root)?);
    }
    cards.sort_unstable();
    cards.dedup();
    Ok(Wanted {
        pages: pages(settings, root)?,
        cards,
    })
}

/// The card of a device; `None` if it has none, or DPDK must find it among the cards that the
/// kernel does not have.
pub(crate) fn card(device: &Device, root: &Root) -> Result<Option<PciAddress>, ProvisionError> {
    let Kind::Dpdk { port, .. } = &device.kind else {
        return Ok(None);
    };
    match port {
        Port::Pci(card) => Ok(Some(*card)),
        Port::Vdev(_) => Ok(None),
        Port::Mac(mac) => {
            let card = with_mac(root, &mac.to_string())?;
            if card.is_none() && candidates(&root.path("/sys"), *mac).is_empty() {
                return Err(ProvisionError::NoCard { mac: *mac });
            }
            Ok(card)
        }
    }
}

/// Bytes of huge pages of each node.
pub(crate) fn pages(settings: &Settings, root: &Root) -> Result<Vec<(Node, u64)>, ProvisionError> {
    let mut bytes = BTreeMap::new();
    match &settings.dpdk.memory {
        Memory::Ordinary => {}
        Memory::PerNode(sizes) => {
            let sizes = sizes.iter().map(|size| size.0).enumerate();
            bytes.extend(sizes.filter(|(_, size)| *size > 0));
        }
        Memory::Needed => {
            // DPDK's own memory comes from the node of its thread, and so do the frames of a device
            // without a node.
            let own = own_node(root)?;
            *bytes.entry(own).or_insert(0) += OWN_BYTES;
            for device in settings.devices.iter().filter(|one| one.is_dpdk()) {
                let node = node_of_device(device, root)?;
                *bytes.entry(node.unwrap_or(own)).or_insert(0) += frame_bytes(settings, device);
            }
        }
    }
    let pages = bytes.into_iter();
    let pages = pages.map(|(node, bytes)| Ok((Node::numbered(root, node)?, bytes)));
    pages.collect()
}

/// The node of a device's card. DPDK must find a card that an earlier start has taken by its MAC
/// address, so the node is known only if all cards that it looks at are on the same one.
fn node_of_device(device: &Device, root: &Root) -> Result<Option<usize>, ProvisionError> {
    let card = card(device, root)?;
    let cards: Vec<PciAddress> = match (card, &device.kind) {
        (None, Kind::Dpdk { port, .. }) => match port {
            Port::Mac(mac) => {
                let cards = candidates(&root.path("/sys"), *mac);
                cards.iter().filter_map(|card| card.parse().ok()).collect()
            }
            Port::Pci(_) | Port::Vdev(_) => Vec::new(),
        },
        (card, _) => card.into_iter().collect(),
    };
    let mut nodes: Vec<Option<usize>> = cards.iter().map(|card| node_of(*card, root)).collect();
    nodes.dedup();
    Ok(match nodes.as_slice() {
        [node] => *node,
        _ => None,
    })
}

/// The node of a card; `None` if the firmware does not tell (-1).
fn node_of(card: PciAddress, root: &Root) -> Option<usize> {
    let node = root.value(format!("/sys/bus/pci/devices/{card}/numa_node"));
    node.ok().flatten()
}

/// The node of the first CPU of this process, on which DPDK begins.
fn own_node(root: &Root) -> io::Result<usize> {
    let cpus = sched_getaffinity(None)?;
    let first = (0..CpuSet::MAX_CPU).find(|cpu| cpus.is_set(*cpu));
    let folder = "/sys/devices/system/node";
    for name in root.names(folder)? {
        let number = name.strip_prefix("node").and_then(|node| node.parse().ok());
        let Some(number) = number else { continue };
        let cpus = root.text(format!("{folder}/{name}/cpulist"))?;
        let cpus = cpus.and_then(|cpus| list(&cpus, CPU_MAX));
        if first
            .zip(cpus)
            .is_some_and(|(first, cpus)| cpus.contains(&first))
        {
            return Ok(number);
        }
    }
    Ok(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    /// Two nodes; the CPUs of this process are on node 1, and the card on node 0 or unknown.
    fn machine(numa_node: &str) -> (tempfile::TempDir, Root) {
        let folder = tempfile::tempdir().unwrap();
        let root = Root::at(folder.path());
        let put = |file: &str, value: &str| {
            let path = root.path(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, value).unwrap();
        };
        let nodes = "/sys/devices/system/node";
        for (node, cpus) in [(0, "4000-4010\n"), (1, "0-3999\n")] {
            put(&format!("{nodes}/node{node}/cpulist"), cpus);
            let pages = format!("{nodes}/node{node}/hugepages/hugepages-2048kB/nr_hugepages");
            put(&pages, "0\n");
        }
        put("/sys/bus/pci/devices/0000:04:00.0/numa_node", numa_node);
        (folder, root)
    }

    fn settings(tables: &str) -> Settings {
        let device = "pci = \"0000:04:00.0\"\naddresses = \"10.0.0.1/24\"\nring = 1024";
        let text = format!("[[device]]\n{device}\n[[serve]]\nport = 1\n{tables}");
        Settings::parse(&text).unwrap()
    }

    /// 2048 and 1024 frames of 2560 bytes for one queue, and 32 MiB.
    #[test]
    fn frames_come_from_the_node_of_the_card() {
        const FRAMES: u64 = 3072 * 2560;
        const OWN: u64 = 32 << 20;
        let node = |root: &Root, number| Node::numbered(root, number).unwrap();
        let (_folder, root) = machine("0\n");
        let wanted = wanted(&settings(""), &root).unwrap();
        assert_eq!(
            wanted.pages,
            [(node(&root, 0), FRAMES), (node(&root, 1), OWN)]
        );
        assert_eq!(wanted.cards, ["0000:04:00.0".parse().unwrap()]);
        let (_folder, root) = machine("-1\n");
        let pages = pages(&settings(""), &root).unwrap();
        assert_eq!(pages, [(node(&root, 1), FRAMES + OWN)]);
    }

    /// The first start finds the card by its network interface, the second one among the cards of
    /// vfio-pci.
    #[test]
    fn the_node_of_a_mac_address_is_the_same_at_the_next_start() {
        let settings = settings("");
        let mut named = settings.clone();
        let Kind::Dpdk { port, .. } = &mut named.devices[0].kind else {
            panic!("{:?}", named.devices[0]);
        };
        *port = Port::Mac(Mac([2, 0, 0, 0, 0, 4]));
        let (_folder, root) = machine("0\n");
        let expected = pages(&settings, &root).unwrap();
        assert_eq!(expected.len(), 2);
        assert!(matches!(
            pages(&named, &root),
            Err(ProvisionError::NoCard { .. })
        ));
        let card = root.path("/sys/bus/pci/devices/0000:04:00.0");
        let interface = card.join("net/eth0");
        fs::create_dir_all(&interface).unwrap();
        fs::write(interface.join("address"), "02:00:00:00:00:04\n").unwrap();
        let class = root.path("/sys/class/net");
        fs::create_dir_all(&class).unwrap();
        let link = class.join("eth0");
        symlink("../../bus/pci/devices/0000:04:00.0/net/eth0", &link).unwrap();
        assert_eq!(pages(&named, &root).unwrap(), expected);

        fs::remove_file(link).unwrap();
        let bound = |card: &str| {
            let driver = root.path("/sys/bus/pci/drivers/vfio-pci");
            fs::create_dir_all(driver.join(card)).unwrap();
        };
        bound("0000:04:00.0");
        assert_eq!(pages(&named, &root).unwrap(), expected);
        // Another card of an unknown node can have the address as well.
        bound("0000:05:00.0");
        assert_eq!(pages(&named, &root).unwrap().len(), 1);
    }

    #[test]
    fn memory_of_the_settings_is_taken_as_it_is() {
        let (_folder, root) = machine("0\n");
        let of = |memory| pages(&settings(&format!("[dpdk]\nmemory = {memory}\n")), &root);
        let node = Node::numbered(&root, 1).unwrap();
        assert_eq!(of("[\"0MiB\", \"64MiB\"]").unwrap(), [(node, 64 << 20)]);
        assert_eq!(of("\"ordinary\"").unwrap(), []);
        let absent = of("[\"0MiB\", \"0MiB\", \"1GiB\"]").unwrap_err();
        assert!(absent.to_string().contains("no NUMA node 2"), "{absent}");
    }
}
