//! The part of a machine that one instance of a server has.

use std::path::Path;

use saiga_topology::machine::{Disk, Machine};
use serde::{Deserialize, Serialize};

use super::diff::Settings;
use super::{DiskKind, Engine, Resources};

/// Connections that are expected of a server whose settings do not have their number.
const CONNECTIONS: u32 = 200;

/// What the user says about the use of the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Use {
    /// Expected number of connections; without it, the running maximum.
    pub connections: Option<u32>,
    /// Number of servers that share the host; 0 counts as 1.
    pub instances: u32,
    /// Whether other programs use the memory of the host, too.
    pub is_shared: bool,
}

/// A kind of disk, and how it is known.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DiskChoice {
    pub kind: DiskKind,
    /// The disk under the data directory; `None` if that is not known, so that the slowest disk of
    /// the host is assumed.
    pub name: Option<String>,
}

/// The resources of one of `usage.instances` equal instances.
#[must_use]
pub fn resources(
    machine: &Machine,
    engine: Engine,
    running: &Settings,
    usage: &Use,
    disk: DiskKind,
) -> Resources {
    let limits = &machine.limits;
    let instances = usage.instances.max(1);
    let node_bytes: u64 = machine.nodes.iter().map(|node| node.memory_bytes).sum();
    let memory = limits.memory_bytes.unwrap_or(node_bytes).min(node_bytes);
    // A core counts if any of its hardware threads may be used.
    let is_usable = |cpus: &[u32]| cpus.iter().any(|cpu| limits.cpus.contains(cpu));
    let cores = machine.cores();
    let cores = cores.values().filter(|cpus| is_usable(cpus)).count();
    let quota = limits.cpu_quota.as_deref().and_then(whole_cpus);
    let cores = quota.map_or(cores, |quota| quota.min(cores));
    let nodes = machine.nodes.iter().filter(|node| is_usable(&node.cpus));
    Resources {
        memory_bytes: memory / u64::from(instances),
        cores: (cores / instances as usize).max(1),
        nodes: nodes.count(),
        disk,
        connections: usage
            .connections
            .or_else(|| connections(engine, running))
            .unwrap_or(CONNECTIONS),
        are_connections_given: usage.connections.is_some(),
        is_dedicated: !usage.is_shared,
    }
}

/// The whole CPUs of a quota such as `2.5`, at least 1.
fn whole_cpus(quota: &str) -> Option<usize> {
    let whole = quota.split('.').next()?;
    whole.parse().ok().map(|cpus: usize| cpus.max(1))
}

/// The running maximum. That of Redis is a guard against a lack of descriptors and says nothing
/// about the expected connections.
fn connections(engine: Engine, running: &Settings) -> Option<u32> {
    match engine {
        Engine::MySql | Engine::Postgres | Engine::OpenGauss => {
            let value = &running.get("max_connections")?.value;
            value.parse().ok().filter(|connections| *connections > 0)
        }
        Engine::Redis => None,
    }
}

/// The directory of the data, if the server tells it. PostgreSQL tells it to privileged users.
#[must_use]
pub fn data_directory(engine: Engine, running: &Settings) -> Option<&Path> {
    let name = match engine {
        Engine::MySql => "datadir",
        Engine::Postgres | Engine::OpenGauss => "data_directory",
        Engine::Redis => "dir",
    };
    let path = Path::new(&running.get(name)?.value);
    path.is_absolute().then_some(path)
}

/// The disk with the file system of `directory`, a path on this host without symbolic links; the
/// slowest disk of the host if that is not known. Of several disks under one file system, the
/// slowest counts.
#[must_use]
pub fn disk(disks: &[Disk], directory: Option<&Path>) -> DiskChoice {
    let depth = |disk: &Disk| {
        let mounts = disk.mounts.iter().map(Path::new);
        let above = mounts.filter(|mount| directory.is_some_and(|path| path.starts_with(mount)));
        above.map(|mount| mount.components().count()).max()
    };
    let deepest = disks.iter().filter_map(depth).max();
    let under = disks
        .iter()
        .filter(|disk| deepest.is_some() && depth(disk) == deepest);
    if let Some(disk) = under.min_by_key(|disk| speed(kind(disk))) {
        return DiskChoice {
            kind: kind(disk),
            name: Some(disk.name.clone()),
        };
    }
    let slowest = disks.iter().map(kind).min_by_key(|kind| speed(*kind));
    DiskChoice {
        kind: slowest.unwrap_or(DiskKind::Ssd),
        name: None,
    }
}

fn kind(disk: &Disk) -> DiskKind {
    if disk.name.starts_with("nvme") {
        DiskKind::Nvme
    } else if disk.is_rotational {
        DiskKind::Rotational
    } else {
        DiskKind::Ssd
    }
}

/// The order of the kinds, the slowest first.
fn speed(kind: DiskKind) -> u8 {
    match kind {
        DiskKind::Rotational => 0,
        DiskKind::Ssd => 1,
        DiskKind::Nvme => 2,
    }
}
