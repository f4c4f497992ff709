//! NUMA nodes of `/sys/devices/system/node`, and pools of huge pages.

use saiga_process::proc;

use crate::machine::{HugePages, Node};
use crate::read::ReadError;
use crate::source::Source;

const NODES: &str = "/sys/devices/system/node";

/// The online nodes. A kernel without NUMA has no directory of nodes: its memory and all CPUs are
/// node 0, whose list of CPUs is left empty here.
pub(super) fn read(source: &Source) -> Result<Vec<Node>, ReadError> {
    let mut ids = source.list(&format!("{NODES}/online"))?.unwrap_or_default();
    if ids.is_empty() {
        ids = source.numbered(NODES, "node")?;
    }
    ids.retain(|id| {
        source
            .real(&format!("{NODES}/node{id}"))
            .is_ok_and(|dir| dir.is_some())
    });
    if ids.is_empty() {
        return Ok(vec![whole(source)?]);
    }
    ids.iter().map(|id| node(source, *id, ids.len())).collect()
}

fn whole(source: &Source) -> Result<Node, ReadError> {
    let meminfo = source.text("/proc/meminfo")?.unwrap_or_default();
    let bytes = |name| proc::bytes(&meminfo, name).unwrap_or(0);
    Ok(Node {
        id: 0,
        cpus: Vec::new(),
        memory_bytes: bytes("MemTotal"),
        free_bytes: bytes("MemFree"),
        distances: vec![10],
        hugepages: hugepages(source, "/sys/kernel/mm/hugepages")?,
    })
}

fn node(source: &Source, id: u32, count: usize) -> Result<Node, ReadError> {
    let file = |name: &str| format!("{NODES}/node{id}/{name}");
    let meminfo = source.text(&file("meminfo"))?.unwrap_or_default();
    // Each line starts with "Node 0 ".
    let prefix = format!("Node {id} ");
    let meminfo: Vec<&str> = meminfo
        .lines()
        .map(|line| line.trim_start().strip_prefix(&prefix).unwrap_or(line))
        .collect();
    let meminfo = meminfo.join("\n");
    let bytes = |name| proc::bytes(&meminfo, name).unwrap_or(0);
    Ok(Node {
        id,
        cpus: source
            .cpus(&file("cpulist"), &file("cpumap"))?
            .unwrap_or_default(),
        memory_bytes: bytes("MemTotal"),
        free_bytes: bytes("MemFree"),
        distances: distances(source, &file("distance"), count)?,
        hugepages: hugepages(source, &file("hugepages"))?,
    })
}

/// One distance for each node; empty if the kernel does not tell.
fn distances(source: &Source, name: &str, count: usize) -> Result<Vec<u32>, ReadError> {
    let Some(text) = source.word(name)? else {
        return Ok(Vec::new());
    };
    let numbers: Result<Vec<u32>, _> = text.split_whitespace().map(str::parse).collect();
    match numbers {
        Ok(numbers) if numbers.len() == count => Ok(numbers),
        Ok(_) | Err(_) => Err(source.damaged(name, &text, "one distance for each node")),
    }
}

/// The pools below a directory such as `/sys/kernel/mm/hugepages`, smallest pages first.
pub(super) fn hugepages(source: &Source, dir: &str) -> Result<Vec<HugePages>, ReadError> {
    let mut pools = Vec::new();
    for name in source.names_that(dir, |name| name.starts_with("hugepages-"))? {
        let kib = name
            .strip_prefix("hugepages-")
            .and_then(|name| name.strip_suffix("kB"));
        let Some(kib) = kib.and_then(|kib| kib.parse::<u64>().ok()) else {
            continue;
        };
        pools.push(HugePages {
            page_bytes: kib * 1024,
            total: source
                .number(&format!("{dir}/{name}/nr_hugepages"))?
                .unwrap_or(0),
            free: source
                .number(&format!("{dir}/{name}/free_hugepages"))?
                .unwrap_or(0),
        });
    }
    pools.sort_by_key(|pool| pool.page_bytes);
    Ok(pools)
}
