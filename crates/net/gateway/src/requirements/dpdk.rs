//! DPDK, its memory and its cards.

use std::path::Path;

use rustix::fs::statfs;
use saiga_process::root::Root;
use saiga_provision::card::{self, Place};
use saiga_provision::pages::{self, Missing, Node};
use saiga_provision::{Host, PciAddress};
use saiga_wire::ethernet::Mac;

use super::Found;
use crate::provision;
use crate::service::check_plugin;
use crate::settings::{Device, Kind, Port, Settings};

/// HUGETLBFS_MAGIC of include/uapi/linux/magic.h.
const HUGETLBFS: u64 = 0x9584_58f6;

pub(super) fn plugin(settings: &Settings) -> Found {
    check_plugin(settings).into()
}

/// A card, and those that go to DPDK with it.
pub(super) fn card(settings: &Settings, card: PciAddress) -> Found {
    let all = settings.devices.iter();
    let all = all.filter_map(|device| provision::card(device, &Root::host()).ok().flatten());
    let all: Vec<PciAddress> = all.collect();
    match card::look(&Host::new(), card, &all) {
        Ok(Place::WithDpdk) => Found::There,
        Ok(Place::WithKernel) => {
            Found::Lacks("the kernel has it; `up --prepare` binds it to vfio-pci".to_owned())
        }
        Err(error) => Found::lacks(&error),
    }
}

pub(super) fn card_with(settings: &Settings, mac: Mac) -> Found {
    let has_it = |device: &&Device| match &device.kind {
        Kind::Dpdk { port, .. } => *port == Port::Mac(mac),
        Kind::Xdp { .. } | Kind::Tap { .. } | Kind::Memif { .. } => false,
    };
    let Some(device) = settings.devices.iter().find(has_it) else {
        return Found::Untried;
    };
    match provision::card(device, &Root::host()) {
        Ok(Some(address)) => card(settings, address),
        // Only DPDK can read the addresses of cards that the kernel does not have.
        Ok(None) => Found::Untried,
        Err(error) => Found::lacks(&error),
    }
}

/// The memory of all nodes, or of one.
pub(super) fn huge_pages(settings: &Settings, node: Option<usize>) -> Found {
    let root = Root::host();
    let wanted = match provision::pages(settings, &root) {
        Ok(wanted) => wanted,
        Err(error) => return Found::lacks(&error),
    };
    let only = node.map(|node| Node::numbered(&root, node).ok());
    let mut lacking = Vec::new();
    for (node, bytes) in wanted {
        if only.is_some_and(|only| only != Some(node)) {
            continue;
        }
        match pages::missing(&root, node, bytes) {
            Ok(None) => {}
            Ok(Some(Missing { was, wanted, .. })) => lacking.push(format!(
                "{node} needs {wanted} huge pages of 2 MiB and has {was}"
            )),
            Err(error) => return Found::lacks(&error),
        }
    }
    Found::when(lacking.is_empty(), || {
        format!("{}; `up --prepare` reserves them", lacking.join(", "))
    })
}

pub(super) fn huge_dir(path: &Path) -> Found {
    let kind = statfs(path).map(|found| found.f_type.cast_unsigned());
    Found::when(kind == Ok(HUGETLBFS), || {
        "no hugetlbfs is mounted there: remove the key, because DPDK needs none, or mount it"
            .to_owned()
    })
}
