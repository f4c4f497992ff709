//! The measurement: which CPUs and nodes, how much memory, and the loop over both.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::thread;

use rustix::thread::{CpuSet, sched_setaffinity};
use saiga_document::number;

use crate::latency::memory::{HUGE_BYTES, Memory, Pages};
use crate::latency::{Latency, Row, Samples};
use crate::machine::{Machine, Node};
use crate::process::placed;
use crate::summary::{delivered, size};

/// Last-level caches up to which each has a row; with more, each node has one.
const MAX_CACHE_ROWS: usize = 16;
/// Part of the free memory of a node that is used at most.
const FREE_SHARE: u64 = 4;
/// Less memory than this is in the caches of most CPUs.
const LEAST_BYTES: u64 = 4 * HUGE_BYTES as u64;

/// How much is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// Size of the memory; raised to twice the largest cache and lowered to a quarter of the free
    /// memory.
    pub bytes: u64,
    pub repetitions: u32,
    /// Accesses in one repetition.
    pub steps: u32,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            bytes: 256 << 20,
            repetitions: 5,
            steps: 1 << 20,
        }
    }
}

/// Why latencies cannot be measured.
#[derive(Debug, thiserror::Error)]
pub enum LatencyError {
    #[error("too little free memory for a measurement: {} on node {node}", number::bytes(*free))]
    NoMemory { node: u32, free: u64 },
    #[error("no CPU and no node with memory may be used")]
    NothingAllowed,
    #[error("cannot run on CPU {cpu}: {error}")]
    Pin { cpu: u32, error: io::Error },
    #[error("cannot map {} on node {node}: {error}", number::bytes(*bytes))]
    Map {
        bytes: u64,
        node: u32,
        error: io::Error,
    },
    #[error("the measuring thread failed")]
    Thread,
}

/// Measures from one CPU of each last-level cache or node to each node with memory. Calls
/// `progress` with a sentence before each row.
///
/// # Errors
/// There is not enough memory, or a thread cannot run on its CPU.
pub fn measure(
    machine: &Machine,
    options: Options,
    mut progress: impl FnMut(&str),
) -> Result<Latency, LatencyError> {
    let nodes: Vec<&Node> = machine
        .nodes
        .iter()
        .filter(|node| node.memory_bytes > 0)
        .collect();
    let cpus = places(machine);
    if cpus.is_empty() || nodes.is_empty() {
        return Err(LatencyError::NothingAllowed);
    }
    let mut notes = Vec::new();
    let bytes = memory_size(machine, &nodes, options.bytes, &mut notes)?;
    let mut run = Run {
        machine,
        options,
        bytes,
        pages: BTreeSet::new(),
        notes: BTreeSet::new(),
    };
    let mut rows = Vec::new();
    for (cpu, node) in cpus {
        progress(&format!("measuring from CPU {cpu} on node {node}"));
        // A thread of its own, because its affinity cannot always be restored.
        let cells = thread::scope(|scope| {
            let row = scope.spawn(|| run.row(cpu, node, &nodes));
            row.join().unwrap_or(Err(LatencyError::Thread))
        })?;
        rows.push(Row { cpu, node, cells });
    }
    notes.extend(run.notes);
    Ok(Latency {
        bytes,
        pages: run.pages.into_iter().collect::<Vec<_>>().join(" and "),
        nodes: nodes.iter().map(|node| node.id).collect(),
        rows,
        notes,
    })
}

/// One CPU with its node for each last-level cache, or for each node if there are many caches. A
/// CPU without interrupts of network devices is preferred.
fn places(machine: &Machine) -> Vec<(u32, u32)> {
    let usable = |cpu: &&u32| machine.limits.cpus.contains(*cpu);
    let busy: BTreeSet<u32> = machine
        .nics
        .iter()
        .flat_map(|nic| delivered(machine, &nic.irqs))
        .collect();
    let choose = |cpus: &[u32]| {
        let usable: Vec<u32> = cpus.iter().filter(usable).copied().collect();
        let quiet = usable.iter().find(|cpu| !busy.contains(cpu));
        quiet.or(usable.first()).copied()
    };
    let level = machine
        .caches
        .iter()
        .map(|cache| cache.level)
        .max()
        .unwrap_or(0);
    let caches: Vec<&[u32]> = machine
        .caches
        .iter()
        .filter(|cache| cache.level == level && level >= 2)
        .map(|cache| cache.cpus.as_slice())
        .collect();
    let nodes: Vec<&[u32]> = machine
        .nodes
        .iter()
        .map(|node| node.cpus.as_slice())
        .collect();
    let with_cpus = nodes.iter().filter(|cpus| !cpus.is_empty()).count();
    let sets = if caches.len() > with_cpus && caches.len() <= MAX_CACHE_ROWS {
        caches
    } else {
        nodes
    };
    let of = |cpu: u32| Some((cpu, machine.cpu(cpu)?.node));
    let mut places: Vec<(u32, u32)> = sets.into_iter().filter_map(choose).filter_map(of).collect();
    places.sort_by_key(|(cpu, node)| (*node, *cpu));
    places
}

/// The size of the memory, a multiple of 2 MiB.
fn memory_size(
    machine: &Machine,
    nodes: &[&Node],
    wanted: u64,
    notes: &mut Vec<String>,
) -> Result<u64, LatencyError> {
    let cache = machine
        .caches
        .iter()
        .map(|cache| cache.bytes)
        .max()
        .unwrap_or(0);
    let allowed = |node: &&&Node| machine.limits.nodes.contains(&node.id);
    let least = nodes
        .iter()
        .filter(allowed)
        .min_by_key(|node| node.free_bytes);
    let least = least.ok_or(LatencyError::NothingAllowed)?;
    let free = least
        .free_bytes
        .min(machine.limits.memory_bytes.unwrap_or(u64::MAX));
    let unit = HUGE_BYTES as u64;
    let bytes = wanted.max(cache.saturating_mul(2)).min(free / FREE_SHARE) / unit * unit;
    if bytes < LEAST_BYTES {
        return Err(LatencyError::NoMemory {
            node: least.id,
            free,
        });
    }
    if bytes < cache.saturating_mul(2) {
        notes.push(format!(
            "The memory is smaller than twice the largest cache ({}): a part of the accesses ends \
             in that cache.",
            size(cache)
        ));
    }
    Ok(bytes)
}

/// State of one measurement.
struct Run<'a> {
    machine: &'a Machine,
    options: Options,
    bytes: u64,
    pages: BTreeSet<String>,
    notes: BTreeSet<String>,
}

impl Run<'_> {
    /// Runs on a thread of its own and pins it.
    fn row(
        &mut self,
        cpu: u32,
        own: u32,
        nodes: &[&Node],
    ) -> Result<Vec<Option<Samples>>, LatencyError> {
        let mut set = CpuSet::new();
        let index = usize::try_from(cpu).unwrap_or(usize::MAX);
        if index >= CpuSet::MAX_CPU {
            let error = io::ErrorKind::InvalidInput.into();
            return Err(LatencyError::Pin { cpu, error });
        }
        set.set(index);
        sched_setaffinity(None, &set).map_err(|errno| LatencyError::Pin {
            cpu,
            error: errno.into(),
        })?;
        nodes
            .iter()
            .map(|node| self.cell(node, node.id == own))
            .collect()
    }

    fn cell(&mut self, node: &Node, is_own: bool) -> Result<Option<Samples>, LatencyError> {
        if !self.machine.limits.nodes.contains(&node.id) {
            let note = format!("This process may not use memory of node {}.", node.id);
            self.notes.insert(note);
            return Ok(None);
        }
        let memory = self.map(node).map_err(|error| LatencyError::Map {
            bytes: self.bytes,
            node: node.id,
            error,
        })?;
        let Some((mut memory, is_bound)) = memory else {
            return Ok(None);
        };
        if !is_bound && !is_own {
            return Ok(None);
        }
        memory.write(&cycle(memory.slots(), u64::from(node.id)));
        self.examine(&memory, node);
        let steps = self.options.steps.max(1);
        // Not counted: translations of addresses and the first misses.
        let (_, mut at) = memory.chase(0, steps / 4);
        let mut ns = Vec::new();
        for _ in 0..self.options.repetitions.max(1) {
            let (time, end) = memory.chase(at, steps);
            at = end;
            ns.push(time.as_secs_f64() * 1e9 / f64::from(steps));
        }
        Ok(Some(Samples { ns }))
    }

    /// Maps memory of the node, from its pool of huge pages if that has enough. The flag tells
    /// whether the memory is bound to the node.
    fn map(&mut self, node: &Node) -> io::Result<Option<(Memory, bool)>> {
        let bytes = usize::try_from(self.bytes).map_err(|_| io::ErrorKind::OutOfMemory)?;
        let pool = node
            .hugepages
            .iter()
            .find(|pool| pool.page_bytes == HUGE_BYTES as u64);
        if pool.is_some_and(|pool| pool.free.saturating_mul(pool.page_bytes) >= self.bytes)
            && let Ok(memory) = Memory::map(bytes, Pages::Pool)
            && (self.machine.nodes.len() == 1 || memory.bind(node.id).is_ok())
            && memory.populate().is_ok()
        {
            return Ok(Some((memory, true)));
        }
        let memory = Memory::map(bytes, Pages::Usual)?;
        if self.machine.nodes.len() == 1 {
            return Ok(Some((memory, true)));
        }
        if let Err(error) = memory.bind(node.id) {
            self.notes.insert(format!(
                "Memory cannot be bound to nodes here (mbind: {error}), so that only the local node \
                 of each CPU is measured. In a container, the capability SYS_NICE or another \
                 seccomp profile may permit it."
            ));
            return Ok(Some((memory, false)));
        }
        Ok(Some((memory, true)))
    }

    /// Finds out the size and the node of the pages.
    fn examine(&mut self, memory: &Memory, node: &Node) {
        let smaps = fs::read_to_string("/proc/self/smaps").unwrap_or_default();
        let huge = huge_bytes(&smaps, memory.address());
        let base = size(self.machine.system.page_bytes);
        self.pages.insert(match huge {
            Some((Pages::Pool, _)) => "2 MiB huge pages".to_owned(),
            Some((Pages::Usual, bytes)) if bytes >= self.bytes / 10 * 9 => {
                "transparent huge pages".to_owned()
            }
            Some((Pages::Usual, bytes)) if bytes > 0 => {
                format!("{base} pages, some of them transparent huge pages")
            }
            Some((Pages::Usual, _)) | None => format!("{base} pages"),
        });
        let numa_maps = fs::read_to_string("/proc/self/numa_maps").unwrap_or_default();
        let by_node = placed(&numa_maps, memory.address());
        let elsewhere: u64 = by_node
            .iter()
            .filter(|(id, _)| **id != node.id)
            .map(|(_, n)| n)
            .sum();
        if elsewhere > self.bytes / 20 {
            self.notes.insert(format!(
                "{} of the memory for node {} was placed on other nodes.",
                number::bytes(elsewhere),
                node.id
            ));
        }
    }
}

/// The huge pages at an address in `/proc/self/smaps`: their kind and size in bytes.
fn huge_bytes(smaps: &str, address: usize) -> Option<(Pages, u64)> {
    let is_range = |line: &str| {
        let (start, rest) = line.split_once('-')?;
        let end = rest.split(' ').next()?;
        let hex = |text: &str| usize::from_str_radix(text, 16).ok();
        Some((hex(start)?..hex(end)?).contains(&address))
    };
    let mut lines = smaps
        .lines()
        .skip_while(|line| is_range(line) != Some(true))
        .skip(1);
    let mut transparent = 0;
    for line in lines.by_ref().take_while(|line| is_range(line).is_none()) {
        let kib = |name: &str| {
            let value = line.strip_prefix(name)?.trim().strip_suffix(" kB")?;
            value.trim().parse::<u64>().ok()
        };
        if kib("KernelPageSize:") == Some(2048) {
            return Some((Pages::Pool, 0));
        }
        transparent += kib("AnonHugePages:").unwrap_or(0);
    }
    Some((Pages::Usual, transparent * 1024))
}

/// A random cycle through all slots (Sattolo's algorithm): the slot that follows each slot.
pub(super) fn cycle(slots: usize, seed: u64) -> Vec<u32> {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut next: Vec<u32> = (0..).take(slots).collect();
    for last in (1..slots).rev() {
        next.swap(last, random.usize(..last));
    }
    next
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cycle_visits_every_slot_once() {
        for slots in [1, 2, 3, 1000] {
            let next = cycle(slots, 1);
            let mut at = 0;
            let mut seen = BTreeSet::new();
            while seen.insert(at) {
                at = next[at as usize];
            }
            assert_eq!((seen.len(), at), (slots, 0));
        }
    }

    #[test]
    fn huge_pages_are_found_at_an_address() {
        let smaps = "1000-2000 rw-p 0 00:00 0\nAnonHugePages:   4096 kB\n\
                     2000-3000 rw-p 0 00:00 0\nKernelPageSize:   4 kB\nAnonHugePages:   2048 kB\n\
                     3000-4000 rw-p 0 00:00 0\nKernelPageSize:   2048 kB\n";
        assert_eq!(huge_bytes(smaps, 0x2800), Some((Pages::Usual, 2 << 20)));
        assert_eq!(huge_bytes(smaps, 0x3000), Some((Pages::Pool, 0)));
    }
}
