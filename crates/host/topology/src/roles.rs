//! The roles of CPUs in the picture: which take interrupts of network devices, which a process may
//! use.

use std::collections::{BTreeMap, BTreeSet};

use saiga_document::model::Square;

use crate::machine::{Cpu, Machine, Node};
use crate::process::Process;
use crate::summary::delivered;

/// Names of the roles; the constants below are indexes.
pub(crate) const NAMES: [&str; 5] = [
    "other",
    "interrupts of network devices",
    "allowed for the process",
    "isolated",
    "offline",
];
const OTHER: usize = 0;
const INTERRUPTS: usize = 1;
const PROCESS: usize = 2;
const ISOLATED: usize = 3;
const OFFLINE: usize = 4;

/// What CPUs do, beyond the machine itself.
pub(crate) struct Roles {
    /// Network devices whose interrupts each CPU takes.
    interrupts: BTreeMap<u32, Vec<String>>,
    process: BTreeSet<u32>,
}

impl Roles {
    pub(crate) fn new(machine: &Machine, process: Option<&Process>) -> Self {
        let mut interrupts: BTreeMap<u32, Vec<String>> = BTreeMap::new();
        for nic in &machine.nics {
            for cpu in delivered(machine, &nic.irqs) {
                interrupts.entry(cpu).or_default().push(nic.name.clone());
            }
        }
        Self {
            interrupts,
            process: process.map(Process::allowed).unwrap_or_default(),
        }
    }

    /// A CPU that takes interrupts and belongs to the process shows both roles.
    fn square(&self, cpu: &Cpu) -> Square {
        let nics = self.interrupts.get(&cpu.id);
        let mut roles = Vec::new();
        let mut label = vec![format!("CPU {}", cpu.id)];
        if !cpu.is_online {
            roles.push(OFFLINE);
            label.push("offline".to_owned());
        }
        if self.process.contains(&cpu.id) {
            roles.push(PROCESS);
            label.push("allowed for the process".to_owned());
        }
        if cpu.is_isolated {
            roles.push(ISOLATED);
            label.push("isolated".to_owned());
        }
        if let Some(nics) = nics {
            roles.push(INTERRUPTS);
            label.push(format!("interrupts of {}", nics.join(", ")));
        }
        Square {
            label: label.join(", "),
            role: roles.first().copied().unwrap_or(OTHER),
            inner: roles.get(1).copied(),
        }
    }

    /// Squares of the offline CPUs, whose node the kernel may not tell.
    pub(crate) fn offline(&self, machine: &Machine) -> Vec<Square> {
        let offline = machine.cpus.iter().filter(|cpu| !cpu.is_online);
        offline.map(|cpu| self.square(cpu)).collect()
    }

    /// The squares of a node, one group for each cluster of cores, or for each core.
    pub(crate) fn groups(&self, machine: &Machine, node: &Node) -> Vec<Vec<Square>> {
        let is_here = |cpu: &&Cpu| cpu.is_online && cpu.node == node.id;
        let cpus: Vec<&Cpu> = machine.cpus.iter().filter(is_here).collect();
        let mut clusters: BTreeMap<(Option<u32>, Option<u32>), Vec<&Cpu>> = BTreeMap::new();
        for cpu in &cpus {
            clusters
                .entry((cpu.package, cpu.cluster))
                .or_default()
                .push(cpu);
        }
        let has_clusters = clusters.values().any(|cluster| {
            let cores: BTreeSet<u32> = cluster.iter().map(|cpu| cpu.core).collect();
            cores.len() > 1
        });
        let mut groups: BTreeMap<u32, Vec<&Cpu>> = BTreeMap::new();
        let has_clusters = has_clusters && clusters.len() > 1;
        for cpu in &cpus {
            let key = match clusters
                .get(&(cpu.package, cpu.cluster))
                .and_then(|one| one.first())
            {
                Some(first) if has_clusters && cpu.cluster.is_some() => first.id,
                Some(_) | None => cpu.core,
            };
            groups.entry(key).or_default().push(cpu);
        }
        let squares = |group: Vec<&Cpu>| group.into_iter().map(|cpu| self.square(cpu)).collect();
        groups.into_values().map(squares).collect()
    }
}
