//! `[dpdk]`: what all devices of DPDK have in common. Its library is initialised once.

use std::path::PathBuf;

use super::output::Output;
use super::reader::{Table, quoted};
use super::service::absolute;
use super::value::{Bytes, plain};

/// Most NUMA nodes (`RTE_MAX_NUMA_NODES`).
const NODES: usize = 32;
/// Options that follow from other keys, with these keys.
const OWNED: [(&str, &str); 18] = [
    ("-l", "workers.cpus"),
    ("-c", "workers.cpus"),
    ("-s", "workers.cpus"),
    ("-S", "workers.cpus"),
    ("--lcores", "workers.cpus"),
    ("--main-lcore", "workers.cpus"),
    ("-a", "device.pci"),
    ("-w", "device.pci"),
    ("--allow", "device.pci"),
    ("--pci-whitelist", "device.pci"),
    ("--vdev", "device.vdev"),
    ("-m", "dpdk.memory"),
    ("--socket-mem", "dpdk.memory"),
    ("--numa-mem", "dpdk.memory"),
    ("--no-huge", "dpdk.memory"),
    ("--huge-dir", "dpdk.huge_dir"),
    ("--file-prefix", "nothing: the gateway has its own prefix"),
    ("--proc-type", "nothing: the gateway is the only process"),
];

/// Settings of DPDK.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Dpdk {
    /// Memory of frames.
    pub memory: Memory,
    /// Where hugetlbfs is mounted; `None` for the mount that DPDK finds.
    pub huge_dir: Option<PathBuf>,
    /// Further arguments of the environment abstraction layer.
    pub eal: Vec<String>,
}

/// Memory of frames of DPDK devices.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Memory {
    /// As much as is needed, from free huge pages of the devices' nodes.
    #[default]
    Needed,
    /// Huge pages that are taken at the start, by number of the node.
    PerNode(Vec<Bytes>),
    /// Ordinary pages.
    Ordinary,
}

impl Dpdk {
    pub(super) fn read(table: &Table<'_>) -> Self {
        table.check_names();
        let memory = if table.is_word("memory", "ordinary") {
            Some(Memory::Ordinary)
        } else {
            table
                .parsed_list("memory", |text| text.parse::<Bytes>())
                .map(Memory::PerNode)
        };
        if let Some(Memory::PerNode(nodes)) = &memory {
            check_nodes(table, nodes);
        }
        Self {
            memory: memory.unwrap_or_default(),
            huge_dir: table.parsed_by("huge_dir", absolute),
            eal: table.parsed_list("eal", eal).unwrap_or_default(),
        }
    }

    pub(super) fn write(&self, out: &mut Output) {
        let Self {
            memory,
            huge_dir,
            eal,
        } = self;
        out.table("dpdk");
        match memory {
            Memory::Needed => {}
            Memory::PerNode(nodes) => out.texts("memory", nodes),
            Memory::Ordinary => out.text("memory", "ordinary"),
        }
        if let Some(folder) = huge_dir {
            out.text("huge_dir", folder.display());
        }
        out.texts("eal", eal);
    }
}

fn check_nodes(table: &Table<'_>, nodes: &[Bytes]) {
    if nodes.len() > NODES {
        table.problem(
            "memory",
            &format!("write at most {NODES} sizes, one for each node"),
        );
    }
    if nodes.iter().all(|size| size.0 == 0) {
        table.problem("memory", "write a size above zero for at least one node");
    }
    if nodes.iter().any(|size| !size.0.is_multiple_of(1 << 20)) {
        table.problem("memory", "write whole MiB: DPDK counts in them");
    }
}

/// Checks a further argument of DPDK.
pub(crate) fn eal(text: &str) -> Result<String, String> {
    let (option, _) = option(text);
    match OWNED.iter().find(|(owned, _)| *owned == option) {
        Some((_, key)) => Err(format!("{} follows from {key}; remove it", quoted(option))),
        None => plain(text).map(str::to_owned),
    }
}

/// Divides `--option=value` and `-ovalue`, as getopt_long(3) does.
pub(crate) fn option(text: &str) -> (&str, Option<&str>) {
    if text.starts_with("--") {
        return match text.split_once('=') {
            Some((option, value)) => (option, Some(value)),
            None => (text, None),
        };
    }
    let is_short = text.starts_with('-');
    match text.split_at_checked(2).filter(|_| is_short) {
        Some((option, value)) if !value.is_empty() => (option, Some(value)),
        Some(_) | None => (text, None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_that_follow_from_other_keys_are_refused() {
        for text in [
            "--iova-mode=va",
            "-d",
            "librte_net_mlx5.so",
            "-n4",
            "--in-memory",
        ] {
            assert_eq!(eal(text).as_deref(), Ok(text));
        }
        for (text, key) in [
            ("-l", "workers.cpus"),
            ("-l1-4", "workers.cpus"),
            ("--socket-mem=1024", "dpdk.memory"),
            ("-a0000:04:00.0", "device.pci"),
            ("--vdev", "device.vdev"),
        ] {
            assert!(eal(text).unwrap_err().contains(key), "{text}");
        }
    }
}
