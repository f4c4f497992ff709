//! The cores of each node that may be divided, in the order in which roles take them.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use saiga_topology::machine::{Cpu, Machine};

use super::CpuSet;

/// The cores of one node. A core is the list of its online CPUs (SMT siblings).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NodeCores {
    pub(crate) node: u32,
    pub(crate) package: Option<u32>,
    /// The fastest first, then by CPU number: the server takes them from the front, interrupts
    /// from the back.
    pub(crate) cores: Vec<Vec<u32>>,
    /// Cores of a cluster, which share a part of a cache; 1 without clusters.
    pub(crate) cluster_cores: usize,
}

/// Returns the nodes that have usable CPUs: online, not isolated, and inside the cpuset of this
/// process.
pub(crate) fn nodes(machine: &Machine) -> Vec<NodeCores> {
    let mut cores: BTreeMap<u32, Vec<&Cpu>> = BTreeMap::new();
    for cpu in machine.cpus.iter().filter(|cpu| is_usable(machine, cpu)) {
        cores.entry(cpu.core).or_default().push(cpu);
    }
    let mut by_node: BTreeMap<u32, Vec<Vec<&Cpu>>> = BTreeMap::new();
    for core in cores.into_values() {
        by_node.entry(core[0].node).or_default().push(core);
    }
    let node = |(node, mut cores): (u32, Vec<Vec<&Cpu>>)| {
        cores.sort_by_key(|core| (Reverse(core[0].performance), core[0].id));
        NodeCores {
            node,
            package: cores[0][0].package,
            cluster_cores: cluster_cores(&cores),
            cores: cores.iter().map(|core| ids(core)).collect(),
        }
    };
    by_node.into_iter().map(node).collect()
}

fn is_usable(machine: &Machine, cpu: &Cpu) -> bool {
    cpu.is_online && !cpu.is_isolated && machine.limits.cpus.contains(&cpu.id)
}

/// The CPUs that no role gets: isolated ones and those outside of the cpuset.
pub(crate) fn left_alone(machine: &Machine) -> CpuSet {
    let cpus = machine.cpus.iter();
    let left = cpus.filter(|cpu| cpu.is_online && !is_usable(machine, cpu));
    left.map(|cpu| cpu.id).collect()
}

/// The number of cores in each cluster; 1 if clusters differ in size, are single cores, or are half
/// of the node or more: keeping those whole would leave a role far too few cores or too many.
fn cluster_cores(cores: &[Vec<&Cpu>]) -> usize {
    let mut sizes: BTreeMap<(Option<u32>, u32), usize> = BTreeMap::new();
    for core in cores {
        let Some(cluster) = core[0].cluster else {
            return 1;
        };
        *sizes.entry((core[0].package, cluster)).or_default() += 1;
    }
    let mut sizes = sizes.into_values();
    let first = sizes.next().unwrap_or(1);
    if sizes.all(|size| size == first) && first * 2 < cores.len() {
        first
    } else {
        1
    }
}

fn ids(core: &[&Cpu]) -> Vec<u32> {
    core.iter().map(|cpu| cpu.id).collect()
}
