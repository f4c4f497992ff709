//! Logical CPUs and caches of `/sys/devices/system/cpu`.

use std::collections::{BTreeMap, BTreeSet};

use crate::machine::{Cache, Cpu, Node};
use crate::read::ReadError;
use crate::source::Source;

const CPUS: &str = "/sys/devices/system/cpu";

pub(super) fn read(source: &Source, nodes: &[Node]) -> Result<Vec<Cpu>, ReadError> {
    let present = match source.list(&format!("{CPUS}/present"))? {
        Some(present) if !present.is_empty() => present,
        Some(_) | None => source.numbered(CPUS, "cpu")?,
    };
    if present.is_empty() {
        let path = source.path(CPUS);
        return Err(ReadError::NotAMachine { path });
    }
    let online = source.list(&format!("{CPUS}/online"))?;
    let isolated = source
        .list(&format!("{CPUS}/isolated"))?
        .unwrap_or_default();
    let mut cpus = Vec::new();
    for id in present {
        let is_online = match &online {
            Some(online) => online.contains(&id),
            // Kernels before 2.6.26: the directory exists for online CPUs only.
            None => source.exists(&format!("{CPUS}/cpu{id}/topology"))?,
        };
        let is_isolated = isolated.contains(&id);
        cpus.push(cpu(source, id, is_online, is_isolated, nodes)?);
    }
    Ok(cpus)
}

fn cpu(
    source: &Source,
    id: u32,
    is_online: bool,
    is_isolated: bool,
    nodes: &[Node],
) -> Result<Cpu, ReadError> {
    let topology = |name: &str| format!("{CPUS}/cpu{id}/topology/{name}");
    let siblings = source.cpus(
        &topology("thread_siblings_list"),
        &topology("thread_siblings"),
    )?;
    let siblings = siblings.unwrap_or_default();
    let mut performance = source.number(&format!("{CPUS}/cpu{id}/cpu_capacity"))?;
    if performance.is_none() {
        performance = source.number(&format!("{CPUS}/cpu{id}/cpufreq/cpuinfo_max_freq"))?;
    }
    Ok(Cpu {
        id,
        is_online,
        is_isolated,
        node: node_of(source, id, nodes)?,
        package: source.id(&topology("physical_package_id"))?,
        die: source.id(&topology("die_id"))?,
        cluster: source.id(&topology("cluster_id"))?,
        core: siblings.first().copied().unwrap_or(id),
        performance,
    })
}

/// The node of a CPU. Nodes list online CPUs only; some kernels link offline ones to their node.
fn node_of(source: &Source, cpu: u32, nodes: &[Node]) -> Result<u32, ReadError> {
    if let Some(node) = nodes.iter().find(|node| node.cpus.contains(&cpu)) {
        return Ok(node.id);
    }
    let linked = source.numbered(&format!("{CPUS}/cpu{cpu}"), "node")?;
    let first = nodes.first().map_or(0, |node| node.id);
    Ok(linked.first().copied().unwrap_or(first))
}

/// The caches of the online CPUs, each once, by level, kind and first CPU.
pub(super) fn caches(source: &Source, cpus: &[Cpu]) -> Result<Vec<Cache>, ReadError> {
    let mut caches: BTreeMap<(u32, String, Vec<u32>), u64> = BTreeMap::new();
    for cpu in cpus.iter().filter(|cpu| cpu.is_online) {
        let dir = format!("{CPUS}/cpu{}/cache", cpu.id);
        for index in source.numbered(&dir, "index")? {
            let file = |name: &str| format!("{dir}/index{index}/{name}");
            let (Some(level), Some(kind)) =
                (source.number(&file("level"))?, source.word(&file("type"))?)
            else {
                continue;
            };
            // An arm64 kernel whose firmware does not describe the caches, as in many virtual
            // machines, has no size, and lists all CPUs for each cache.
            let Some(bytes) = size(source, &file("size"))? else {
                continue;
            };
            let shared = source.cpus(&file("shared_cpu_list"), &file("shared_cpu_map"))?;
            let shared = shared.unwrap_or_else(|| vec![cpu.id]);
            caches.insert((level, kind, shared), bytes);
        }
    }
    let mut seen = BTreeSet::new();
    let cache = |((level, kind, cpus), bytes): ((u32, String, Vec<u32>), u64)| Cache {
        level,
        kind,
        bytes,
        cpus,
    };
    let caches = caches.into_iter().map(cache);
    // A damaged table may list one CPU in two caches of a level; the first one stays.
    Ok(caches
        .filter(|cache| {
            let first = cache.cpus.first().copied();
            seen.insert((cache.level, cache.kind.clone(), first))
        })
        .collect())
}

/// A size such as `32K` or `24M`, in bytes.
fn size(source: &Source, name: &str) -> Result<Option<u64>, ReadError> {
    let Some(text) = source.word(name)? else {
        return Ok(None);
    };
    let (digits, unit) = match text.strip_suffix('K') {
        Some(digits) => (digits, 1 << 10),
        None => text
            .strip_suffix('M')
            .map_or((text.as_str(), 1), |digits| (digits, 1 << 20)),
    };
    let bytes = digits
        .parse::<u64>()
        .ok()
        .and_then(|size| size.checked_mul(unit));
    bytes
        .map(Some)
        .ok_or_else(|| source.damaged(name, &text, "a size such as 32K"))
}
