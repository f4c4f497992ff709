//! The division of the cores between server, interrupts and client.
//!
//! In each node the server has the first cores, then comes the client, and interrupts have the
//! last ones. Procedure 004 gives 28 of 32 cores per node to openGauss and 4 to 16 queues; its best
//! result with the client on the same host is 24 and 8.

use std::collections::BTreeSet;

use saiga_topology::machine::{Machine, Nic, Node};
use serde::{Deserialize, Serialize};

use super::CpuSet;
use super::node_cores::{self, NodeCores};
use crate::goal::Role;

/// With fewer cores, all roles use all cores: a core for interrupts alone would be idle most of the
/// time.
const MIN_CORES: usize = 8;
/// Interrupts get at most one of this many cores of a server.
const SERVER_SHARE: usize = 8;
/// Of the cores of a host that only runs clients, interrupts get at most 3 of 8.
const CLIENT_SHARE: (usize, usize) = (3, 8);
/// A client on the host of its server, together with the interrupts, gets one of this many cores.
const SHARED_HOST_SHARE: usize = 4;

/// The nodes whose cores handle interrupts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Spread {
    /// All nodes get the same number.
    AllNodes,
    /// Only the nodes of the network devices.
    NearDevice,
}

/// The wanted division. The rules decide about fields that are `None`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Goal {
    pub role: Role,
    pub spread: Spread,
    /// Cores of the server, in all nodes together.
    pub server_cores: Option<usize>,
    /// Cores for interrupts, in all nodes together.
    pub interrupt_cores: Option<usize>,
    /// Queues that the devices will have; by default those that they have.
    pub queues: Option<usize>,
    /// Network devices; by default all that are up and have interrupts.
    pub devices: Vec<String>,
}

impl Goal {
    #[must_use]
    pub fn of(role: Role) -> Self {
        Self {
            role,
            spread: Spread::AllNodes,
            server_cores: None,
            interrupt_cores: None,
            queues: None,
            devices: Vec::new(),
        }
    }
}

/// The division. The sets are disjoint, and together they are all online CPUs.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Partition {
    pub server: CpuSet,
    pub client: CpuSet,
    pub interrupts: CpuSet,
    /// Cores that no role gets.
    pub free: CpuSet,
    /// Isolated CPUs, and those outside of the cpuset of this process.
    pub left_alone: CpuSet,
    /// The CPUs to which interrupts are assigned in turn: one node after the other, from the last
    /// core of each. One CPU per core, because SMT siblings add nothing for interrupts.
    pub targets: Vec<u32>,
    pub notes: Vec<String>,
}

/// Why cores cannot be divided as wanted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PartitionError {
    #[error("there is no network device {name}; this host has {}", known.join(", "))]
    NoDevice { name: String, known: Vec<String> },
    #[error("{wanted} cores for {role} are more than the {available} that are left")]
    TooMany {
        role: &'static str,
        wanted: usize,
        available: usize,
    },
    #[error("the number of {role} cores must be at least 1 for each of {nodes} nodes")]
    TooFew { role: &'static str, nodes: usize },
}

/// The cores that each role gets in one node.
#[derive(Debug, Clone, Copy, Default)]
struct Counts {
    server: usize,
    client: usize,
    interrupts: usize,
}

/// Divides the cores of a machine.
///
/// # Errors
/// A device does not exist, or the machine has fewer cores than are wanted.
pub fn divide(machine: &Machine, goal: &Goal) -> Result<Partition, PartitionError> {
    let devices = devices(machine, &goal.devices)?;
    let nodes = node_cores::nodes(machine);
    let cores: usize = nodes.iter().map(|node| node.cores.len()).sum();
    let mut partition = Partition {
        left_alone: node_cores::left_alone(machine),
        ..Partition::default()
    };
    if !partition.left_alone.is_empty() {
        let cpus = &partition.left_alone;
        let note = format!("CPUs {cpus} are isolated or outside of the cpuset, and left alone");
        partition.notes.push(note);
    }
    if let Some(quota) = &machine.limits.cpu_quota {
        let note = format!("the CPU quota of this cgroup is {quota} CPUs: more threads only wait");
        partition.notes.push(note);
    }
    partition.notes.extend(note_of_queues(goal, &devices));
    let is_explicit = goal.server_cores.is_some() || goal.interrupt_cores.is_some();
    if cores < MIN_CORES && !is_explicit {
        share(&mut partition, &nodes, goal.role);
        return Ok(partition);
    }
    let counts = counts(machine, &nodes, goal, &devices)?;
    for (node, counts) in nodes.iter().zip(&counts) {
        partition.take(node, *counts);
    }
    partition.targets = targets(&nodes, &counts);
    partition.notes.extend(notes(machine, &nodes, &counts));
    Ok(partition)
}

/// The devices whose interrupts are placed.
///
/// # Errors
/// A name is not that of a network device.
pub(super) fn devices<'a>(
    machine: &'a Machine,
    names: &[String],
) -> Result<Vec<&'a Nic>, PartitionError> {
    if names.is_empty() {
        let nics = machine.nics.iter();
        return Ok(nics
            .filter(|nic| nic.is_up && !nic.irqs.is_empty())
            .collect());
    }
    let find = |name: &String| {
        let nic = machine.nics.iter().find(|nic| nic.name == *name);
        nic.ok_or_else(|| PartitionError::NoDevice {
            name: name.clone(),
            known: machine.nics.iter().map(|nic| nic.name.clone()).collect(),
        })
    };
    names.iter().map(find).collect()
}

/// Whether the goal changes the number of queues of a device.
pub(super) fn has_other_queues(goal: &Goal, nic: &Nic) -> bool {
    let now = nic.rx_queues.max(nic.tx_queues) as usize;
    goal.queues.is_some_and(|queues| queues != now)
}

fn note_of_queues(goal: &Goal, devices: &[&Nic]) -> Option<String> {
    let changed = devices.iter().filter(|nic| has_other_queues(goal, nic));
    let names: Vec<&str> = changed.map(|nic| nic.name.as_str()).collect();
    (!names.is_empty()).then(|| {
        format!(
            "the number of queues of {} changes: after this plan, make another one for the \
             interrupts and XPS of the new queues",
            names.join(", ")
        )
    })
}

/// All roles on all cores. There are no targets: interrupts stay where they are.
fn share(partition: &mut Partition, nodes: &[NodeCores], role: Role) {
    let all: CpuSet = nodes.iter().flat_map(|node| node.cores.concat()).collect();
    let count: usize = nodes.iter().map(|node| node.cores.len()).sum();
    partition.notes.push(format!(
        "{count} cores are too few to reserve any for interrupts, which stay where they are"
    ));
    match role {
        Role::Server | Role::Both => partition.server = all,
        Role::Client => partition.client = all,
    }
}

fn counts(
    machine: &Machine,
    nodes: &[NodeCores],
    goal: &Goal,
    devices: &[&Nic],
) -> Result<Vec<Counts>, PartitionError> {
    let near = |node: &NodeCores| devices.iter().any(|nic| nic.node == Some(node.node));
    let hosts: Vec<bool> = match goal.spread {
        Spread::NearDevice if nodes.iter().any(near) => nodes.iter().map(near).collect(),
        Spread::NearDevice | Spread::AllNodes => vec![true; nodes.len()],
    };
    let interrupts = interrupt_counts(machine, nodes, goal, devices, &hosts)?;
    let servers = match goal.server_cores {
        None => None,
        Some(wanted) => {
            let room: Vec<usize> = nodes.iter().map(|node| node.cores.len()).collect();
            Some(spread("server", wanted, &room)?)
        }
    };
    let count = |at: usize, node: &NodeCores| {
        let all = node.cores.len();
        let reserved = match goal.interrupt_cores {
            Some(_) => interrupts[at],
            // The wanted cores of the server come first.
            None => interrupts[at].min(all - servers.as_ref().map_or(0, |of| of[at])),
        };
        let left = all - reserved;
        let server = match (&servers, goal.role) {
            (Some(of), _) => of[at],
            (None, Role::Server) => left,
            (None, Role::Client) => 0,
            (None, Role::Both) => left.min(all - (all / SHARED_HOST_SHARE).max(1)),
        };
        if server > left {
            return Err(PartitionError::TooMany {
                role: "the server",
                wanted: server,
                available: left,
            });
        }
        let client = match goal.role {
            Role::Server => 0,
            Role::Client | Role::Both => left - server,
        };
        Ok(Counts {
            server,
            client,
            interrupts: reserved,
        })
    };
    let nodes = nodes.iter().enumerate();
    nodes.map(|(at, node)| count(at, node)).collect()
}

/// The cores for interrupts in each node.
fn interrupt_counts(
    machine: &Machine,
    nodes: &[NodeCores],
    goal: &Goal,
    devices: &[&Nic],
    hosts: &[bool],
) -> Result<Vec<usize>, PartitionError> {
    let room = |at: usize, cores: usize| if hosts[at] { cores } else { 0 };
    let nodes_at = || nodes.iter().enumerate();
    if let Some(wanted) = goal.interrupt_cores {
        // The server or client needs a core, too.
        let room: Vec<usize> = nodes_at()
            .map(|(at, node)| room(at, node.cores.len().saturating_sub(1)))
            .collect();
        return spread("interrupts", wanted, &room);
    }
    let most: Vec<usize> = nodes_at()
        .map(|(at, node)| room(at, most_for_interrupts(node.cores.len(), goal.role)))
        .collect();
    let queues = goal.queues.unwrap_or_else(|| {
        let count = |nic: &&Nic| nic.rx_queues.max(nic.tx_queues) as usize;
        // Some drivers show more queues than they have interrupts.
        let counts = devices.iter().map(|nic| count(nic).min(nic.irqs.len()));
        counts.sum()
    });
    // The share of each node is rounded up, which would be half of a machine of small nodes.
    let cores: usize = nodes.iter().map(|node| node.cores.len()).sum();
    let wanted = queues
        .min(most.iter().sum())
        .min(most_for_interrupts(cores, goal.role));
    let used = hosts.iter().filter(|host| **host).count();
    let counts = if wanted >= used {
        let each = wanted.div_ceil(used.max(1));
        most.iter().map(|most| each.min(*most)).collect()
    } else {
        near_first(machine, nodes, devices, &most, wanted)
    };
    let aligned = nodes.iter().zip(counts);
    Ok(aligned
        .map(|(node, count)| aligned_to_cluster(node, count))
        .collect())
}

/// Rounds up to whole clusters if more than half of the last one is needed.
fn aligned_to_cluster(node: &NodeCores, count: usize) -> usize {
    let cluster = node.cluster_cores;
    let over = count % cluster;
    let whole = count - over + cluster;
    if over * 2 > cluster && whole * 2 <= node.cores.len() {
        whole
    } else {
        count
    }
}

/// One core each in the nodes nearest to the devices.
fn near_first(
    machine: &Machine,
    nodes: &[NodeCores],
    devices: &[&Nic],
    most: &[usize],
    mut wanted: usize,
) -> Vec<usize> {
    let mut order: Vec<usize> = (0..nodes.len()).collect();
    let near: BTreeSet<u32> = devices.iter().filter_map(|nic| nic.node).collect();
    order.sort_by_key(|&at| super::distance(machine, nodes[at].node, &near));
    let mut counts = vec![0; nodes.len()];
    for at in order {
        if wanted > 0 && most[at] > 0 {
            counts[at] = 1;
            wanted -= 1;
        }
    }
    counts
}

fn most_for_interrupts(cores: usize, role: Role) -> usize {
    match role {
        Role::Server | Role::Both => cores.div_ceil(SERVER_SHARE),
        Role::Client => (cores * CLIENT_SHARE.0).div_ceil(CLIENT_SHARE.1),
    }
    .min(cores.saturating_sub(1))
}

/// Divides a number of cores evenly between the nodes that have enough cores.
fn spread(role: &'static str, wanted: usize, room: &[usize]) -> Result<Vec<usize>, PartitionError> {
    let available: usize = room.iter().sum();
    if wanted > available {
        return Err(PartitionError::TooMany {
            role,
            wanted,
            available,
        });
    }
    let used = room.iter().filter(|room| **room > 0).count();
    if wanted < used {
        return Err(PartitionError::TooFew { role, nodes: used });
    }
    let mut counts = vec![0; room.len()];
    let mut left = wanted;
    while left > 0 {
        for (count, room) in counts.iter_mut().zip(room) {
            if left > 0 && *count < *room {
                *count += 1;
                left -= 1;
            }
        }
    }
    Ok(counts)
}

impl Partition {
    fn take(&mut self, node: &NodeCores, counts: Counts) {
        let all = node.cores.len();
        let first_interrupt = all - counts.interrupts;
        let first_client = first_interrupt - counts.client;
        for (at, core) in node.cores.iter().enumerate() {
            let role = match at {
                at if at >= first_interrupt => &mut self.interrupts,
                at if at >= first_client => &mut self.client,
                at if at < counts.server => &mut self.server,
                _ => &mut self.free,
            };
            *role = role.union(&core.iter().copied().collect());
        }
    }
}

fn targets(nodes: &[NodeCores], counts: &[Counts]) -> Vec<u32> {
    let most = counts.iter().map(|counts| counts.interrupts).max();
    let mut targets = Vec::new();
    for behind in 0..most.unwrap_or(0) {
        for (node, counts) in nodes.iter().zip(counts) {
            if behind < counts.interrupts {
                targets.push(node.cores[node.cores.len() - 1 - behind][0]);
            }
        }
    }
    targets
}

fn notes(machine: &Machine, nodes: &[NodeCores], counts: &[Counts]) -> Vec<String> {
    let mut notes = Vec::new();
    for node in &machine.nodes {
        if node.memory_bytes == 0 && !node.cpus.is_empty() {
            let id = node.id;
            notes.push(format!(
                "node {id} has no memory: its CPUs use that of other nodes"
            ));
        }
    }
    let has_memory = |node: &&Node| node.memory_bytes > 0;
    let is_outside = |node: &&Node| !machine.limits.nodes.contains(&node.id);
    let is_used = |node: &&Node| nodes.iter().any(|used| used.node == node.id);
    let all = machine.nodes.iter().filter(has_memory);
    let outside: CpuSet = all
        .filter(is_outside)
        .filter(is_used)
        .map(|node| node.id)
        .collect();
    if !outside.is_empty() {
        notes.push(format!(
            "memory of node {outside} is outside of the cpuset: its CPUs use that of other nodes"
        ));
    }
    for (node, counts) in nodes.iter().zip(counts) {
        let cluster = node.cluster_cores;
        if cluster > 1 && counts.server % cluster != 0 {
            notes.push(format!(
                "node {}: {} cores of the server are not whole clusters of {cluster}",
                node.node, counts.server
            ));
        }
    }
    notes
}
