//! Divides the CPUs of the server between several instances.

use saiga_topology::machine::Machine;
use serde::{Deserialize, Serialize};

use super::CpuSet;
use super::node_cores;
use super::partition::Partition;

/// The CPUs of one instance, and where its memory may be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Instance {
    pub cpus: CpuSet,
    /// The nodes of its CPUs.
    pub nodes: Vec<u32>,
    /// Those of them that have memory which this process may use.
    pub memory: Vec<u32>,
}

/// Why the server cannot be divided.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{instances} instances do not fit: the server has {cores} cores in {nodes} nodes")]
pub struct TooManyInstances {
    pub instances: usize,
    pub cores: usize,
    pub nodes: usize,
}

/// Divides the cores of the server between `count` instances.
///
/// With at least as many nodes as instances, each instance gets whole nodes. They are in one
/// package if possible, so that no instance needs memory of another package. With fewer nodes, the
/// instances on a node divide its cores.
///
/// # Errors
/// There are fewer cores than instances.
pub fn instances(
    machine: &Machine,
    partition: &Partition,
    count: usize,
) -> Result<Vec<Instance>, TooManyInstances> {
    let mut nodes: Vec<_> = node_cores::nodes(machine)
        .into_iter()
        .map(|mut node| {
            node.cores.retain(|core| partition.server.contains(core[0]));
            node
        })
        .filter(|node| !node.cores.is_empty())
        .collect();
    nodes.sort_by_key(|node| (node.package, node.node));
    let cores: usize = nodes.iter().map(|node| node.cores.len()).sum();
    let too_many = TooManyInstances {
        instances: count,
        cores,
        nodes: nodes.len(),
    };
    if count == 0 || count > cores || nodes.is_empty() {
        return Err(too_many);
    }
    if count <= nodes.len() {
        let groups = pieces(nodes.len(), count);
        return Ok(groups
            .map(|(from, to)| {
                let nodes = &nodes[from..to];
                let cpus = nodes.iter().flat_map(|node| node.cores.concat());
                let ids = nodes.iter().map(|node| node.node);
                instance(machine, cpus.collect(), ids.collect())
            })
            .collect());
    }
    let mut all = Vec::new();
    for (node, (from, to)) in nodes.iter().zip(pieces(count, nodes.len())) {
        if to - from > node.cores.len() {
            return Err(too_many);
        }
        for (first, last) in pieces(node.cores.len(), to - from) {
            let cpus = node.cores[first..last].concat().into_iter();
            all.push(instance(machine, cpus.collect(), vec![node.node]));
        }
    }
    Ok(all)
}

fn instance(machine: &Machine, cpus: CpuSet, nodes: Vec<u32>) -> Instance {
    let has_memory = |id: &&u32| {
        let mut all = machine.nodes.iter();
        let is_there = all.any(|node| node.id == **id && node.memory_bytes > 0);
        is_there && machine.limits.nodes.contains(id)
    };
    let memory = nodes.iter().filter(has_memory).copied().collect();
    Instance {
        cpus,
        nodes,
        memory,
    }
}

/// Divides `total` things into `count` consecutive pieces whose sizes differ by at most one.
pub(super) fn pieces(total: usize, count: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..count).map(move |at| (at * total / count, (at + 1) * total / count))
}
