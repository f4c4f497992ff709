//! The machine as a whole, in one phrase for each subject.

use std::collections::BTreeSet;

use saiga_document::number;

use crate::machine::{Cpu, Machine, Node};
use crate::summary::{self, cpus, size};

/// The product, or the kind of virtual machine.
pub(crate) fn title(machine: &Machine) -> String {
    let system = &machine.system;
    let guest = || system.virtualisation.as_deref().map(capital);
    let title = system.product.clone().or_else(guest);
    title.unwrap_or_else(|| "Unknown product".to_owned())
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().into_iter().flat_map(char::to_uppercase);
    first.chain(letters.clone()).collect()
}

/// Numbers of CPUs, packages and nodes.
pub(crate) fn counts(machine: &Machine) -> String {
    let online = machine.cpus.iter().filter(|cpu| cpu.is_online).count();
    let packages: BTreeSet<u32> = machine.cpus.iter().filter_map(|cpu| cpu.package).collect();
    let mut counts = vec![summary::counted(online, "CPU")];
    if !packages.is_empty() {
        counts.push(summary::counted(packages.len(), "package"));
    }
    counts.push(summary::counted(machine.nodes.len(), "NUMA node"));
    counts.join(", ")
}

/// The memory of all nodes.
pub(crate) fn memory(machine: &Machine) -> String {
    let sum = |of: fn(&Node) -> u64| number::bytes(machine.nodes.iter().map(of).sum::<u64>());
    let (total, free) = (sum(|node| node.memory_bytes), sum(|node| node.free_bytes));
    format!("{free} free of {total} of memory")
}

/// What is special about the machine, and its kernel.
pub(crate) fn remarks(machine: &Machine) -> Vec<String> {
    let system = &machine.system;
    // Without a product, the virtual machine is the title.
    let mut all: Vec<String> = system
        .product
        .as_ref()
        .and(system.virtualisation.clone())
        .into_iter()
        .collect();
    all.extend(summary::performance(machine).map(|classes| format!("CPUs differ: {classes}")));
    let listed = |is: fn(&Cpu) -> bool| {
        let found = machine.cpus.iter().filter(|cpu| is(cpu)).map(|cpu| cpu.id);
        let found: Vec<u32> = found.collect();
        (!found.is_empty()).then(|| cpus(&found))
    };
    all.extend(listed(|cpu| !cpu.is_online).map(|list| format!("offline: {list}")));
    all.extend(listed(|cpu| cpu.is_isolated).map(|list| format!("isolated: {list}")));
    let release = match system.kernel.as_str() {
        "unknown" => "of unknown release",
        release => release,
    };
    let mut kernel = vec![
        format!("Linux {release} on {}", system.architecture),
        format!("pages of {}", size(system.page_bytes)),
    ];
    let transparent = system.transparent_hugepages.as_ref();
    kernel.extend(transparent.map(|mode| format!("transparent huge pages: {mode}")));
    let iommu = if system.iommu {
        "IOMMU in use"
    } else {
        "no IOMMU in use"
    };
    kernel.push(iommu.to_owned());
    all.push(kernel.join(", "));
    all
}

/// Cores and caches of a node's CPUs.
pub(crate) fn cores_and_caches(machine: &Machine, node: &Node) -> Vec<String> {
    let mut all = vec![
        summary::cores(machine, &node.cpus),
        summary::caches(machine, &node.cpus),
    ];
    all.retain(|text| !text.is_empty());
    all
}

/// Cores and caches, if there are several nodes and all nodes with CPUs are equal.
pub(crate) fn common(machine: &Machine) -> Option<Vec<String>> {
    let mut nodes = machine.nodes.iter().filter(|node| !node.cpus.is_empty());
    let first = cores_and_caches(machine, nodes.next()?);
    let mut others = nodes.peekable();
    others.peek()?;
    others
        .all(|node| cores_and_caches(machine, node) == first)
        .then_some(first)
}
