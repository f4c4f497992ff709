//! Huge pages of 2 MiB of a NUMA node: how many are free, and their number.
//!
//! Source: kernel Documentation/admin-guide/mm/hugetlbpage.rst. `nr_hugepages` shows surplus pages
//! as well, which the kernel takes and gives back by itself; a written number is without them. If
//! it is raised, surplus pages come to count first (mm/hugetlb.c, `set_max_huge_pages`).

use std::fmt;
use std::io;

use saiga_process::root::Root;
use serde::{Deserialize, Serialize};

use crate::machine::Machine;

/// Bytes of a page.
const PAGE_BYTES: u64 = 2 << 20;
/// The folder of these pages.
const FOLDER: &str = "hugepages-2048kB";
/// Without NUMA nodes, and for all nodes together.
const ALL: &str = "/sys/kernel/mm/hugepages";

/// A NUMA node, or the whole memory where the kernel has no nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Node(Option<u16>);

/// A number of pages that is to be raised.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Missing {
    /// The NUMA node of the pages.
    pub node: Node,
    /// The number of pages now, without surplus.
    pub was: u64,
    /// The number with which enough are free.
    pub wanted: u64,
}

/// Why huge pages cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum PagesError {
    /// The kernel has no such node.
    #[error("there is no {node}: correct `dpdk.memory`")]
    NoNode {
        /// The NUMA node of the pages.
        node: Node,
    },
    /// The kernel has no huge pages of 2 MiB.
    #[error(
        "the kernel has no huge pages of 2 MiB: reserve larger ones at boot, or set `dpdk.memory = \
         \"ordinary\"`"
    )]
    NoPages,
    /// The node has too little memory in one piece.
    #[error(
        "{node} has memory for {got} of {wanted} huge pages (2 MiB): reserve them at boot (kernel \
         parameters {}), lower `device.ring`, `device.frames` or `dpdk.memory`, or set `dpdk.memory \
         = \"ordinary\"`",
        node.parameters(*wanted)
    )]
    Short {
        /// The NUMA node of the pages.
        node: Node,
        /// The pages that it can have, those from before included.
        got: u64,
        /// The pages with which enough would be free.
        wanted: u64,
    },
    /// A file of the kernel cannot be read or written.
    #[error("huge pages of {node}: {source}")]
    System {
        /// The NUMA node of the pages.
        node: Node,
        /// The error of the kernel.
        source: io::Error,
    },
}

impl Node {
    /// The node with this number; the whole memory for 0 where the kernel has no nodes.
    ///
    /// # Errors
    /// [`PagesError::NoNode`] if there is no such node, [`PagesError::NoPages`].
    pub fn numbered(root: &Root, number: usize) -> Result<Self, PagesError> {
        let numbered = Self(u16::try_from(number).ok());
        let is_there = root.exists(format!("/sys/devices/system/node/node{number}"));
        let node = match numbered {
            Self(Some(_)) if is_there => numbered,
            Self(Some(0)) => Self(None),
            _ => return Err(PagesError::NoNode { node: numbered }),
        };
        if !root.exists(format!("{}/{FOLDER}", node.folder())) {
            return Err(PagesError::NoPages);
        }
        Ok(node)
    }

    /// The kernel parameters for a number of pages (with nodes since Linux 5.16). Without a size,
    /// they are of the default size, which is 512 MiB on arm64 with pages of 64 KiB.
    fn parameters(self, count: u64) -> String {
        match self.0 {
            Some(number) => format!("hugepagesz=2M hugepages={number}:{count}"),
            None => format!("hugepagesz=2M hugepages={count}"),
        }
    }

    fn folder(self) -> String {
        match self.0 {
            Some(number) => format!("/sys/devices/system/node/node{number}/hugepages"),
            None => ALL.to_owned(),
        }
    }
}

impl fmt::Display for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(number) => write!(f, "NUMA node {number}"),
            None => f.write_str("the machine"),
        }
    }
}

/// What a node lacks so that `bytes` are free in huge pages of any size; `None` if they are.
///
/// # Errors
/// [`PagesError::System`].
pub fn missing(root: &Root, node: Node, bytes: u64) -> Result<Option<Missing>, PagesError> {
    let system = |source| PagesError::System { node, source };
    let free = free_bytes(root, node).map_err(system)?;
    let lacking = bytes.saturating_sub(free).div_ceil(PAGE_BYTES);
    if lacking == 0 {
        return Ok(None);
    }
    let (all, was) = counts(root, node).map_err(system)?;
    let wanted = all.saturating_add(lacking);
    Ok(Some(Missing { node, was, wanted }))
}

/// Free bytes of all sizes. Pages that other programs have reserved and not used yet can come from
/// any node, so they are not free on this one.
fn free_bytes(root: &Root, node: Node) -> io::Result<u64> {
    let mut free = 0_u64;
    for name in root.names(node.folder())? {
        let size = name.strip_prefix("hugepages-");
        let size = size.and_then(|size| size.strip_suffix("kB")?.parse::<u64>().ok());
        let Some(kibibytes) = size else { continue };
        let pages = number(root, &format!("{}/{name}/free_hugepages", node.folder()))?;
        let reserved = number(root, &format!("{ALL}/{name}/resv_hugepages"))?;
        let pages = pages.saturating_sub(reserved);
        free = free.saturating_add(pages.saturating_mul(kibibytes << 10));
    }
    Ok(free)
}

/// The number of pages that was set.
pub(crate) fn count(root: &Root, node: Node) -> io::Result<u64> {
    Ok(counts(root, node)?.1)
}

/// The number of all pages, and of those without surplus.
fn counts(root: &Root, node: Node) -> io::Result<(u64, u64)> {
    let folder = format!("{}/{FOLDER}", node.folder());
    let all = number(root, &format!("{folder}/nr_hugepages"))?;
    let surplus = number(root, &format!("{folder}/surplus_hugepages"))?;
    Ok((all, all.saturating_sub(surplus)))
}

/// Sets the number of pages; returns the number that the kernel has then.
pub(crate) fn set(machine: &mut dyn Machine, node: Node, count: u64) -> io::Result<u64> {
    let file = format!("{}/{FOLDER}/nr_hugepages", node.folder());
    machine.write(&file, &format!("{count}\n"))?;
    self::count(machine.root(), node)
}

fn number(root: &Root, file: &str) -> io::Result<u64> {
    let value = root.value(file)?;
    value.ok_or_else(|| io::Error::other(format!("{file} is missing, or not a number")))
}
