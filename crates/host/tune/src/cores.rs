//! Divides the CPUs of a machine between the server, the interrupts of its network devices and a
//! client on the same host.
//!
//! [`divide`](partition::divide) is pure: a [`Machine`] and a
//! goal in, sets of CPUs out. Interrupts get the last cores of each node, as openGauss's
//! `bind_net_irq.sh` does; each role gets whole cores, never single SMT siblings.

pub mod binding;
pub mod faults;
pub mod instances;
pub mod interrupts;
mod node_cores;
pub mod partition;
mod set;
pub mod starts;
mod steering;

use std::collections::BTreeSet;

use saiga_topology::machine::Machine;

pub use set::CpuSet;

/// The firmware's distance from a node to the nearest of `others`; 0 if there are none.
fn distance(machine: &Machine, node: u32, others: &BTreeSet<u32>) -> u32 {
    let from = machine.nodes.iter().find(|other| other.id == node);
    let distances = from.into_iter().flat_map(|from| &from.distances);
    let to = machine.nodes.iter().zip(distances);
    let near = to.filter(|(other, _)| others.contains(&other.id));
    near.map(|(_, distance)| *distance).min().unwrap_or(0)
}

#[cfg(test)]
pub(crate) mod machines;
#[cfg(test)]
mod tests;
