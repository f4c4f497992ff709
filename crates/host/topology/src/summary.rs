//! Short descriptions of CPUs, caches and devices, for the terminal and for the page.

use std::collections::{BTreeMap, BTreeSet};

use saiga_document::number;
use saiga_process::numbers::ranges;

use crate::machine::{Cache, Disk, HugePages, Machine, Nic, Node};

/// A size as an integer of the largest unit of which it is a multiple, or with three digits.
pub(crate) fn size(bytes: u64) -> String {
    for (shift, unit) in [(40, "TiB"), (30, "GiB"), (20, "MiB"), (10, "KiB")] {
        let whole = bytes >> shift;
        if whole > 0 && whole << shift == bytes && whole < 10_000 {
            return format!("{whole} {unit}");
        }
    }
    number::bytes(bytes)
}

/// CPUs as ranges: `0-27,32-59`, or `1-37:4` for every fourth one, as for taskset(1).
pub(crate) fn cpus<'a>(cpus: impl IntoIterator<Item = &'a u32>) -> String {
    let cpus: Vec<u32> = cpus.into_iter().copied().collect();
    if let [first, second, .., last] = cpus.as_slice()
        && cpus.len() >= 4
        && *second > first + 1
        && cpus
            .windows(2)
            .all(|pair| matches!(pair, [a, b] if b - a == second - first))
    {
        return format!("{first}-{last}:{}", second - first);
    }
    let cpus: Vec<usize> = cpus
        .into_iter()
        .filter_map(|cpu| cpu.try_into().ok())
        .collect();
    ranges(&cpus)
}

/// `CPU 3` or `CPUs 0-3`.
pub(crate) fn named_cpus(list: &BTreeSet<u32>) -> String {
    let word = if list.len() == 1 { "CPU" } else { "CPUs" };
    format!("{word} {}", cpus(list))
}

pub(crate) fn counted(count: usize, noun: &str) -> String {
    number::counted(count as u64, noun)
}

/// Cores, threads and clusters of CPUs: `32 cores in 8 clusters of 4`.
pub(crate) fn cores(machine: &Machine, cpus: &[u32]) -> String {
    let cores = machine.cores();
    let mut by_threads: BTreeMap<usize, usize> = BTreeMap::new();
    for threads in cores.values() {
        if threads.first().is_some_and(|cpu| cpus.contains(cpu)) {
            *by_threads.entry(threads.len()).or_default() += 1;
        }
    }
    let has_smt = by_threads.keys().any(|threads| *threads > 1);
    let text = |(threads, count): (&usize, &usize)| {
        let cores = counted(*count, "core");
        if has_smt {
            format!("{cores} of {}", counted(*threads, "thread"))
        } else {
            cores
        }
    };
    let text: Vec<String> = by_threads.iter().rev().map(text).collect();
    text.join(" and ") + &clusters(machine, cpus)
}

/// Clusters of several cores that are smaller than the node; empty if there are none.
fn clusters(machine: &Machine, cpus: &[u32]) -> String {
    let mut clusters: BTreeMap<(Option<u32>, u32), BTreeSet<u32>> = BTreeMap::new();
    let mut all = BTreeSet::new();
    for cpu in machine.cpus.iter().filter(|cpu| cpus.contains(&cpu.id)) {
        all.insert(cpu.core);
        if let Some(cluster) = cpu.cluster {
            clusters
                .entry((cpu.package, cluster))
                .or_default()
                .insert(cpu.core);
        }
    }
    clusters.retain(|_, cores| cores.len() > 1 && cores.len() < all.len());
    let sizes: BTreeSet<usize> = clusters.values().map(BTreeSet::len).collect();
    match sizes.iter().collect::<Vec<_>>().as_slice() {
        [] => String::new(),
        [size] if clusters.len() * **size == all.len() => {
            format!(" in {} of {size}", counted(clusters.len(), "cluster"))
        }
        [size] => format!(", some in {} of {size}", counted(clusters.len(), "cluster")),
        _ => format!(", some in {}", counted(clusters.len(), "cluster")),
    }
}

/// The caches of CPUs by level: `L1d 64 KiB, L2 512 KiB per core; L3 32 MiB`.
pub(crate) fn caches(machine: &Machine, cpus: &[u32]) -> String {
    let cores = machine.cores();
    let is_own = |cache: &&Cache| {
        let is_core = || cores.values().any(|core| *core == cache.cpus);
        cache.level <= 2 && (cache.cpus.len() == 1 || is_core())
    };
    let has = |cache: &&Cache| cache.cpus.iter().any(|cpu| cpus.contains(cpu));
    let (own, shared): (Vec<&Cache>, Vec<&Cache>) =
        machine.caches.iter().filter(has).partition(is_own);
    let is_per_core = own
        .iter()
        .all(|cache| cores.values().any(|core| *core == cache.cpus));
    let mut parts: Vec<String> = Vec::new();
    let mut names: Vec<String> = Vec::new();
    for cache in own {
        let name = format!("{} {}", level(cache), size(cache.bytes));
        if !names.contains(&name) {
            names.push(name);
        }
    }
    if !names.is_empty() {
        // Modules of old AMD CPUs: one core for the kernel, with caches for each thread.
        let per = if is_per_core { "core" } else { "CPU" };
        parts.push(format!("{} per {per}", names.join(", ")));
    }
    let mut groups: BTreeMap<(String, u64, usize), usize> = BTreeMap::new();
    for cache in shared {
        *groups
            .entry((level(cache), cache.bytes, cache.cpus.len()))
            .or_default() += 1;
    }
    for ((level, bytes, sharing), count) in groups {
        let of = if sharing == cpus.len() {
            String::new()
        } else {
            format!(" of {sharing} CPUs")
        };
        let times = if count > 1 {
            format!("{count} x ")
        } else {
            String::new()
        };
        parts.push(format!("{times}{level} {}{of}", size(bytes)));
    }
    parts.join("; ")
}

fn level(cache: &Cache) -> String {
    let kind = match cache.kind.as_str() {
        "Data" => "d",
        "Instruction" => "i",
        _ => "",
    };
    format!("L{}{kind}", cache.level)
}

/// Groups of CPUs that differ in performance: `0-11 at 5.00 GHz, 12-19 at 3.90 GHz`; `None` if all
/// are equal.
pub(crate) fn performance(machine: &Machine) -> Option<String> {
    let mut classes: BTreeMap<u64, Vec<u32>> = BTreeMap::new();
    for cpu in &machine.cpus {
        if let Some(performance) = cpu.performance {
            classes.entry(performance).or_default().push(cpu.id);
        }
    }
    if classes.len() < 2 {
        return None;
    }
    let class = |(performance, list): (u64, Vec<u32>)| {
        // Capacities of Arm CPUs end at 1024; frequencies are in kHz.
        let text = if performance <= 1024 {
            format!("capacity {performance}")
        } else {
            format!(
                "{}.{:02} GHz",
                performance / 1_000_000,
                performance / 10_000 % 100
            )
        };
        format!("{} {text}", cpus(&list))
    };
    let classes: Vec<String> = classes.into_iter().rev().map(class).collect();
    Some(classes.join(", "))
}

/// Pools that have pages: `1024 of 4096 huge pages of 2 MiB free`.
pub(crate) fn hugepages(pools: &[HugePages]) -> Option<String> {
    let pools: Vec<String> = pools
        .iter()
        .filter(|pool| pool.total > 0)
        .map(|pool| {
            let page = size(pool.page_bytes);
            format!("{} of {} huge pages of {page} free", pool.free, pool.total)
        })
        .collect();
    (!pools.is_empty()).then(|| pools.join(", "))
}

pub(crate) fn memory(node: &Node) -> String {
    if node.memory_bytes == 0 {
        return "no memory".to_owned();
    }
    let free = number::bytes(node.free_bytes);
    let memory = format!(
        "memory: {free} free of {}",
        number::bytes(node.memory_bytes)
    );
    match hugepages(&node.hugepages) {
        Some(pages) => format!("{memory}; {pages}"),
        None => memory,
    }
}

/// The node of a device, if the machine has that node. On a machine with one node this is the node
/// of all devices.
pub(crate) fn known_node(machine: &Machine, node: Option<u32>) -> Option<u32> {
    match machine.nodes.as_slice() {
        [only] => Some(only.id),
        nodes => node.filter(|id| nodes.iter().any(|node| node.id == *id)),
    }
}

/// CPUs to which interrupts are delivered, or may be if the kernel does not say more.
pub(crate) fn delivered(machine: &Machine, irqs: &[u32]) -> BTreeSet<u32> {
    let mut cpus = BTreeSet::new();
    for irq in irqs.iter().filter_map(|number| machine.irq(*number)) {
        let effective = irq.effective.as_ref().filter(|cpus| !cpus.is_empty());
        cpus.extend(effective.or(irq.affinity.as_ref()).into_iter().flatten());
    }
    cpus
}

/// The interrupts of a device: `16 interrupts on CPUs 28-31,60-63, 12 of them outside node 0`;
/// `None` if none is in use.
pub(crate) fn interrupts(machine: &Machine, irqs: &[u32], node: Option<u32>) -> Option<String> {
    let used: Vec<u32> = irqs
        .iter()
        .copied()
        .filter(|irq| machine.irq(*irq).is_some())
        .collect();
    let cpus = delivered(machine, &used);
    if used.is_empty() {
        return None;
    }
    let mut text = counted(used.len(), "interrupt");
    if !cpus.is_empty() {
        text.push_str(&format!(" on {}", named_cpus(&cpus)));
    }
    let node = known_node(machine, node);
    let node = node.and_then(|id| machine.nodes.iter().find(|node| node.id == id));
    if let Some(node) = node {
        let is_outside = |irq: &&u32| {
            let cpus = delivered(machine, &[**irq]);
            !cpus.is_empty() && cpus.iter().all(|cpu| !node.cpus.contains(cpu))
        };
        let outside = used.iter().filter(is_outside).count();
        if outside > 0 {
            text.push_str(&format!(", {outside} of them outside node {}", node.id));
        }
    }
    Some(text)
}

/// Driver, address, speed and queues of a network device.
pub(crate) fn nic(nic: &Nic) -> String {
    let mut parts = vec![place(nic.driver.as_deref(), nic.device.as_deref())];
    parts.push(match nic.speed_mbit_s {
        _ if !nic.is_up => "down".to_owned(),
        Some(speed) if speed % 1000 == 0 => format!("{} Gbit/s", speed / 1000),
        Some(speed) => format!("{speed} Mbit/s"),
        None => "up".to_owned(),
    });
    parts.push(if nic.rx_queues == nic.tx_queues {
        counted(nic.rx_queues as usize, "queue")
    } else {
        format!(
            "{} to receive, {} to send",
            counted(nic.rx_queues as usize, "queue"),
            nic.tx_queues
        )
    });
    parts.retain(|part| !part.is_empty());
    parts.join(", ")
}

/// Model, driver, address, size, queues and scheduler of a disk.
pub(crate) fn disk(disk: &Disk) -> String {
    let mut parts: Vec<String> = disk.model.iter().cloned().collect();
    parts.push(place(disk.driver.as_deref(), disk.device.as_deref()));
    parts.push(number::bytes(disk.bytes));
    if disk.is_rotational {
        parts.push("rotational".to_owned());
    }
    parts.push(counted(disk.queues as usize, "queue"));
    if let Some(scheduler) = &disk.scheduler {
        parts.push(format!("scheduler {scheduler}"));
    }
    parts.retain(|part| !part.is_empty());
    parts.join(", ")
}

fn place(driver: Option<&str>, device: Option<&str>) -> String {
    match (driver, device) {
        (Some(driver), Some(device)) => format!("{driver} at {device}"),
        (driver, device) => driver.or(device).unwrap_or_default().to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpus_are_ranges_or_steps() {
        for (list, expected) in [
            (vec![0, 1, 2, 8], "0-2,8"),
            (vec![1, 5, 9, 13], "1-13:4"),
            (vec![1, 5, 9], "1,5,9"),
            (vec![], ""),
        ] {
            assert_eq!(cpus(&list), expected);
        }
    }

    #[test]
    fn whole_sizes_have_no_decimals() {
        for (bytes, expected) in [
            (64 << 10, "64 KiB"),
            (1280 << 10, "1280 KiB"),
            (32 << 20, "32 MiB"),
            (135_000_000, "128 MiB"),
            (0, "0 B"),
        ] {
            assert_eq!(size(bytes), expected);
        }
    }
}
