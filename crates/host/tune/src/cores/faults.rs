//! Faults of an existing division of CPUs, such as those in the procedures that Saiga replaces.

use std::fmt;

use saiga_topology::machine::Machine;
use serde::{Deserialize, Serialize};

use super::CpuSet;
use super::partition::Partition;

/// A fault of a division.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "fault")]
pub enum Fault {
    /// Two roles have CPUs in common.
    Overlap {
        first: String,
        second: String,
        cpus: CpuSet,
    },
    /// Interrupts of a device may be delivered to other CPUs than those for interrupts.
    Unbound {
        device: String,
        bound: usize,
        irqs: Vec<u32>,
    },
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Overlap {
                first,
                second,
                cpus,
            } => write!(
                f,
                "CPUs {cpus} ({} of them) are given to {first} and to {second}",
                cpus.len()
            ),
            Self::Unbound {
                device,
                bound,
                irqs,
            } => {
                let irqs: Vec<String> = irqs.iter().map(u32::to_string).collect();
                write!(
                    f,
                    "{device}: {bound} of {} interrupts are bound; not {}",
                    bound + irqs.len(),
                    irqs.join(", ")
                )
            }
        }
    }
}

/// Finds CPUs that two roles have in common.
#[must_use]
pub fn overlaps(roles: &[(&str, &CpuSet)]) -> Vec<Fault> {
    let mut faults = Vec::new();
    for (at, (first, of_first)) in roles.iter().enumerate() {
        for (second, of_second) in &roles[at + 1..] {
            let cpus = of_first.intersection(of_second);
            if !cpus.is_empty() {
                faults.push(Fault::Overlap {
                    first: (*first).to_owned(),
                    second: (*second).to_owned(),
                    cpus,
                });
            }
        }
    }
    faults
}

/// Finds CPUs on which a running server may run and which a division gives to another role. `name`
/// is that of the server; `allowed` comes from the `Cpus_allowed_list` of its threads.
#[must_use]
pub fn of_server(name: &str, allowed: &CpuSet, partition: &Partition) -> Vec<Fault> {
    let others = [
        ("interrupts", &partition.interrupts),
        ("the client", &partition.client),
    ];
    let faults = others.map(|other| overlaps(&[(name, allowed), other]));
    faults.into_iter().flatten().collect()
}

/// Finds interrupts of network devices that are not bound to `cpus`, the CPUs for interrupts.
#[must_use]
pub fn unbound(machine: &Machine, cpus: &CpuSet) -> Vec<Fault> {
    let mut faults = Vec::new();
    for nic in machine.nics.iter().filter(|nic| !nic.irqs.is_empty()) {
        let is_bound = |number: &u32| {
            let affinity = machine.irq(*number).and_then(|irq| irq.affinity.as_ref());
            affinity.is_some_and(|list| list.iter().all(|cpu| cpus.contains(*cpu)))
        };
        let (bound, free): (Vec<u32>, Vec<u32>) = nic.irqs.iter().partition(|irq| is_bound(irq));
        if !bound.is_empty() && !free.is_empty() {
            faults.push(Fault::Unbound {
                device: nic.name.clone(),
                bound: bound.len(),
                irqs: free,
            });
        }
    }
    faults
}
