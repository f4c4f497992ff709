//! The facts by which a plan recognises its machine.

use std::fmt;

use saiga_topology::machine::Machine;
use serde::{Deserialize, Serialize};

use crate::form::cpu_list;

/// Facts that do not change while a machine runs, except for CPUs that are taken offline.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Identity {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub product: Option<String>,
    pub architecture: String,
    pub kernel: String,
    /// Online CPUs.
    pub cpus: String,
    /// NUMA nodes.
    pub nodes: String,
    /// The interrupts of each network device. Their numbers may belong to other devices after a
    /// restart, or on another host of the same product.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub interrupts: String,
}

/// A fact or value that is not what the plan relies on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Changed {
    pub what: String,
    pub planned: String,
    pub found: String,
}

impl fmt::Display for Changed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            what,
            planned,
            found,
        } = self;
        write!(f, "{what}: the plan was made for {planned}, now {found}")
    }
}

impl Identity {
    #[must_use]
    pub fn of(machine: &Machine) -> Self {
        let online = machine.cpus.iter().filter(|cpu| cpu.is_online);
        Self {
            product: machine.system.product.clone(),
            architecture: machine.system.architecture.clone(),
            kernel: machine.system.kernel.clone(),
            cpus: cpu_list(&online.map(|cpu| cpu.id).collect()),
            nodes: cpu_list(&machine.nodes.iter().map(|node| node.id).collect()),
            interrupts: interrupts(machine),
        }
    }

    /// The facts in which `found` differs.
    #[must_use]
    pub fn differences(&self, found: &Self) -> Vec<Changed> {
        let Self {
            product,
            architecture,
            kernel,
            cpus,
            nodes,
            interrupts,
        } = self;
        let unknown = || "unknown".to_owned();
        let name = |product: &Option<String>| product.clone().unwrap_or_else(unknown);
        [
            ("product", name(product), name(&found.product)),
            (
                "architecture",
                architecture.clone(),
                found.architecture.clone(),
            ),
            ("kernel", kernel.clone(), found.kernel.clone()),
            ("online CPUs", cpus.clone(), found.cpus.clone()),
            ("NUMA nodes", nodes.clone(), found.nodes.clone()),
            (
                "interrupts of network devices",
                interrupts.clone(),
                found.interrupts.clone(),
            ),
        ]
        .into_iter()
        .filter(|(_, planned, found)| planned != found)
        .map(|(what, planned, found)| Changed {
            what: what.to_owned(),
            planned,
            found,
        })
        .collect()
    }
}

/// The interrupts of each device: `eth0 37-39, eth1 40`.
fn interrupts(machine: &Machine) -> String {
    let nics = machine.nics.iter().filter(|nic| !nic.irqs.is_empty());
    let shown = nics.map(|nic| {
        let numbers = nic.irqs.iter().copied().collect();
        format!("{} {}", nic.name, cpu_list(&numbers))
    });
    shown.collect::<Vec<_>>().join(", ")
}
