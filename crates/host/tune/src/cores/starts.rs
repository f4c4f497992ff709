//! How servers are started on their CPUs, and the text about the division of cores.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use saiga_topology::machine::Machine;
use serde::Serialize;

use super::CpuSet;
use super::binding::{self, MemoryPolicy};
use super::instances::{Instance, TooManyInstances, instances};
use super::partition::Partition;
use crate::goal::Engine;

/// How one instance is started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Start {
    pub instance: Instance,
    pub numactl: String,
    pub systemd: String,
    /// The setting of openGauss that replaces numactl for its threads.
    pub thread_pool_attr: Option<String>,
}

/// How each instance is started. Empty if the host has no server, and if a single instance may use
/// every CPU that this process may use: then there is nothing to bind.
///
/// # Errors
/// There are fewer cores than instances.
pub fn starts(
    machine: &Machine,
    partition: &Partition,
    engine: Engine,
    count: usize,
) -> Result<Vec<Start>, TooManyInstances> {
    if partition.server.is_empty() {
        return Ok(Vec::new());
    }
    let everything = instances(machine, partition, 1)?.remove(0);
    let policy_of = |instance: &Instance| policy(engine, instance, &everything);
    let all = match engine {
        Engine::Redis => near_device(machine, partition, count)?,
        Engine::Mysql | Engine::Postgres | Engine::OpenGauss | Engine::None => {
            instances(machine, partition, count)?
        }
    };
    let usable: CpuSet = machine.limits.cpus.iter().copied().collect();
    if let [only] = &all[..]
        && usable.is_subset(&only.cpus)
        && policy_of(only) == MemoryPolicy::Local
    {
        return Ok(Vec::new());
    }
    let start = |instance: Instance| {
        let policy = policy_of(&instance);
        let is_opengauss = engine == Engine::OpenGauss;
        Start {
            numactl: binding::numactl(&instance, policy),
            systemd: binding::systemd(&instance, policy),
            thread_pool_attr: is_opengauss
                .then(|| binding::thread_pool(&instance.cpus, instance.nodes.len())),
            instance,
        }
    };
    Ok(all.into_iter().map(start).collect())
}

/// Instances of a server with one thread for commands: each on a single node, the nearest nodes to
/// the network devices first.
fn near_device(
    machine: &Machine,
    partition: &Partition,
    count: usize,
) -> Result<Vec<Instance>, TooManyInstances> {
    let nodes = instances(machine, partition, 1)?.remove(0).nodes;
    let mut all = instances(machine, partition, count.max(nodes.len()))?;
    let devices: BTreeSet<u32> = machine
        .nics
        .iter()
        .filter(|nic| nic.is_up)
        .filter_map(|nic| nic.node)
        .collect();
    all.sort_by_key(|instance| super::distance(machine, instance.nodes[0], &devices));
    all.truncate(count);
    Ok(all)
}

/// InnoDB's buffer pool is shared by all threads, so its pages are spread over the nodes. Backends
/// of PostgreSQL have much memory of their own, for which interleaving costs 10 to 20 %; openGauss
/// distributes its memory itself. An instance on some of the nodes stays there, if they have
/// memory.
/// Redis may use other nodes when its own one is full: its fork for a save may need twice as much.
fn policy(engine: Engine, instance: &Instance, everything: &Instance) -> MemoryPolicy {
    if engine == Engine::Mysql && instance.memory.len() > 1 {
        MemoryPolicy::Interleaved
    } else if engine == Engine::Redis
        || instance.nodes == everything.nodes
        || instance.memory.is_empty()
    {
        MemoryPolicy::Local
    } else {
        MemoryPolicy::Bound
    }
}

/// The division and the starts as text.
#[must_use]
pub fn text(partition: &Partition, starts: &[Start]) -> String {
    let mut text = String::from("\nCores\n");
    for (role, cpus) in [
        ("server", &partition.server),
        ("client", &partition.client),
        ("interrupts", &partition.interrupts),
        ("free", &partition.free),
        ("left alone", &partition.left_alone),
    ] {
        if !cpus.is_empty() {
            // Writing to a String does not fail.
            let plural = if cpus.len() == 1 { "" } else { "s" };
            let _ = writeln!(text, "  {role:<10} {cpus} ({} CPU{plural})", cpus.len());
        }
    }
    for note in &partition.notes {
        let _ = writeln!(text, "  {note}");
    }
    for start in starts {
        let _ = writeln!(text, "  start with: {} SERVER", start.numactl);
        if let Some(attr) = &start.thread_pool_attr {
            let _ = writeln!(text, "  or with thread_pool_attr = '{attr}'");
        }
    }
    text
}
