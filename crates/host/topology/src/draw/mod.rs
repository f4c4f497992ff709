//! A machine as text for a terminal: packages with their nodes, devices, limits, distances.
//!
//! Takes a width of at least 40 columns. Lists of CPUs are ranges, or `1-37:4` for every fourth
//! CPU, as taskset(1) takes them.

pub(crate) mod latency;
mod lines;
pub(crate) mod process;

use std::collections::BTreeMap;

use saiga_document::number;

use crate::latency::Latency;
use crate::machine::{Disk, Machine, Nic, Node};
use crate::overview;
use crate::process::Process;
use crate::summary::{self, cpus};
use lines::Lines;

const LEAST_WIDTH: usize = 40;
/// Columns at which the text of a node starts, and that of a device.
const NODE_TEXT: usize = 11;
const DEVICE_TEXT: usize = 13;

/// Draws a machine, and a process and latencies if given.
#[must_use]
pub fn draw(
    machine: &Machine,
    process: Option<&Process>,
    latency: Option<&Latency>,
    width: usize,
) -> String {
    let mut lines = Lines::new(width.max(LEAST_WIDTH));
    heading(&mut lines, machine);
    packages(&mut lines, machine);
    let is_elsewhere = |node: Option<u32>| summary::known_node(machine, node).is_none();
    let nics: Vec<&Nic> = machine
        .nics
        .iter()
        .filter(|nic| is_elsewhere(nic.node))
        .collect();
    let disks: Vec<&Disk> = machine
        .disks
        .iter()
        .filter(|disk| is_elsewhere(disk.node))
        .collect();
    if !(nics.is_empty() && disks.is_empty()) {
        lines.gap();
        lines.text(0, "Devices of unknown node");
        devices(&mut lines, machine, &nics, &disks);
    }
    distances(&mut lines, machine);
    limits(&mut lines, machine);
    if let Some(process) = process {
        process::draw(&mut lines, machine, process);
    }
    if let Some(latency) = latency {
        latency::draw(&mut lines, machine, latency);
    }
    lines.finish()
}

fn heading(lines: &mut Lines, machine: &Machine) {
    lines.text(0, &overview::title(machine));
    let counts = format!(
        "{}, {}",
        overview::counts(machine),
        overview::memory(machine)
    );
    let model = machine.system.cpu_model.iter().cloned();
    let all = model.chain([counts]).chain(overview::remarks(machine));
    for text in all {
        lines.text(2, &text);
    }
    if let Some(common) = overview::common(machine) {
        lines.text(2, &format!("each node: {}", common.join("; ")));
    }
}

/// Nodes under the packages of their CPUs. A node without CPUs comes last.
fn packages(lines: &mut Lines, machine: &Machine) {
    let mut groups: BTreeMap<(bool, Vec<u32>), Vec<&Node>> = BTreeMap::new();
    for node in &machine.nodes {
        let key = (node.cpus.is_empty(), packages_of(machine, node));
        groups.entry(key).or_default().push(node);
    }
    let is_single = groups.len() == 1;
    let has_common = overview::common(machine).is_some();
    for ((has_no_cpus, packages), nodes) in groups {
        lines.gap();
        if has_no_cpus {
            lines.text(0, "Memory without CPUs");
        } else if !(is_single && packages.len() < 2) {
            lines.text(0, &package_title(&packages));
        }
        for node in nodes {
            draw_node(lines, machine, node, has_common);
        }
    }
}

/// The packages of a node's CPUs, in ascending order.
pub(crate) fn packages_of(machine: &Machine, node: &Node) -> Vec<u32> {
    let of = |cpu: &u32| machine.cpu(*cpu).and_then(|cpu| cpu.package);
    let mut packages: Vec<u32> = node.cpus.iter().filter_map(of).collect();
    packages.sort_unstable();
    packages.dedup();
    packages
}

pub(crate) fn package_title(packages: &[u32]) -> String {
    match packages {
        [] => "Package unknown".to_owned(),
        [one] => format!("Package {one}"),
        _ => format!("Packages {}", cpus(packages)),
    }
}

/// Cores and caches are left out if all nodes have them in common.
fn draw_node(lines: &mut Lines, machine: &Machine, node: &Node, has_common: bool) {
    let name = format!("Node {}", node.id);
    let memory = summary::memory(node);
    if node.cpus.is_empty() {
        lines.item(2, NODE_TEXT, &name, &memory);
    } else {
        lines.item(2, NODE_TEXT, &name, &format!("CPUs {}", cpus(&node.cpus)));
        if !has_common {
            for text in overview::cores_and_caches(machine, node) {
                lines.text(NODE_TEXT, &text);
            }
        }
        lines.text(NODE_TEXT, &memory);
    }
    let is_here = |of: Option<u32>| summary::known_node(machine, of) == Some(node.id);
    let nics: Vec<&Nic> = machine
        .nics
        .iter()
        .filter(|nic| is_here(nic.node))
        .collect();
    let disks: Vec<&Disk> = machine
        .disks
        .iter()
        .filter(|disk| is_here(disk.node))
        .collect();
    devices(lines, machine, &nics, &disks);
}

fn devices(lines: &mut Lines, machine: &Machine, nics: &[&Nic], disks: &[&Disk]) {
    for nic in nics {
        lines.item(
            4,
            NODE_TEXT,
            "NIC",
            &format!("{}: {}", nic.name, summary::nic(nic)),
        );
        if let Some(text) = summary::interrupts(machine, &nic.irqs, nic.node) {
            lines.text(DEVICE_TEXT, &text);
        }
    }
    for disk in disks {
        lines.item(
            4,
            NODE_TEXT,
            "disk",
            &format!("{}: {}", disk.name, summary::disk(disk)),
        );
        if !disk.mounts.is_empty() {
            lines.text(
                DEVICE_TEXT,
                &format!("mounted at {}", disk.mounts.join(", ")),
            );
        }
        if let Some(text) = summary::interrupts(machine, &disk.irqs, disk.node) {
            lines.text(DEVICE_TEXT, &text);
        }
    }
}

/// A matrix, if there is more than one node.
fn distances(lines: &mut Lines, machine: &Machine) {
    if machine.nodes.len() < 2 || machine.nodes.iter().all(|node| node.distances.is_empty()) {
        return;
    }
    lines.gap();
    lines.text(0, "Distances of the firmware (10 is local)");
    let ids = machine.nodes.iter().map(|node| node.id.to_string());
    let heading: Vec<String> = std::iter::once("to node".to_owned()).chain(ids).collect();
    let row = |node: &Node| {
        let distances = node.distances.iter().map(u32::to_string);
        std::iter::once(format!("from node {}", node.id))
            .chain(distances)
            .collect()
    };
    let rows: Vec<Vec<String>> = machine.nodes.iter().map(row).collect();
    lines.table(2, &heading, &rows);
}

fn limits(lines: &mut Lines, machine: &Machine) {
    lines.gap();
    lines.text(0, "Limits of this process");
    for limit in limit_sentences(machine) {
        lines.text(2, &limit);
    }
}

/// What a process started here may use.
pub(crate) fn limit_sentences(machine: &Machine) -> Vec<String> {
    let limits = &machine.limits;
    let mut all = Vec::new();
    let online = machine.cpus.iter().filter(|cpu| cpu.is_online).count();
    if limits.cpus.len() < online {
        all.push(format!(
            "CPUs {} ({} of {online})",
            cpus(&limits.cpus),
            limits.cpus.len()
        ));
    }
    let with_memory = machine
        .nodes
        .iter()
        .filter(|node| node.memory_bytes > 0)
        .count();
    if limits.nodes.len() < with_memory {
        all.push(format!("memory of nodes {}", cpus(&limits.nodes)));
    }
    all.extend(
        limits
            .cpu_quota
            .as_ref()
            .map(|quota| format!("CPU time of {quota} CPUs")),
    );
    let memory = limits
        .memory_bytes
        .map(|bytes| format!("{} of memory", number::bytes(bytes)));
    all.extend(memory);
    if all.is_empty() {
        all.push("none: all CPUs, all nodes, no quota, no memory limit".to_owned());
    }
    all.extend(
        limits
            .cgroup_version
            .map(|version| format!("cgroups of version {version}")),
    );
    all
}
