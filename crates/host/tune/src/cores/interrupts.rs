//! Assigns the interrupts of network devices to CPUs.

use std::collections::BTreeMap;

use saiga_topology::machine::{Machine, Nic};
use serde::{Deserialize, Serialize};

use crate::goal::Placement;

use super::CpuSet;
use super::partition::{Goal, Partition, PartitionError, devices, has_other_queues};
use super::steering::{self, queue_of};

/// An interrupt and the CPU that is to handle it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Placed {
    pub device: String,
    pub irq: u32,
    pub cpu: u32,
}

/// Assigns the interrupts of each device to the targets of a partition, in the order of their
/// numbers. The next device continues after the last target, so that two devices of few queues
/// use different cores. If the devices are to have fewer queues than now, only interrupts of the
/// queues that stay are assigned: drivers may free the others.
///
/// With `nodes` nodes and `n` targets, interrupt `i` of the first device is on node `i mod nodes`,
/// `(i mod n) / nodes` cores before its end: the formula of openGauss's `bind_net_irq.sh`.
///
/// # Errors
/// A device of the goal does not exist.
pub fn place(
    machine: &Machine,
    goal: &Goal,
    partition: &Partition,
) -> Result<Vec<Placed>, PartitionError> {
    let mut targets = partition.targets.iter().cycle();
    let mut placed = Vec::new();
    for nic in devices(machine, &goal.devices)? {
        for irq in staying(machine, nic, goal.queues) {
            let Some(cpu) = targets.next() else {
                return Ok(placed);
            };
            placed.push(Placed {
                device: nic.name.clone(),
                irq,
                cpu: *cpu,
            });
        }
    }
    Ok(placed)
}

/// The interrupts of a device that do not belong to queues above the wanted number.
fn staying(machine: &Machine, nic: &Nic, queues: Option<usize>) -> Vec<u32> {
    let now = nic.rx_queues.max(nic.tx_queues) as usize;
    let Some(queues) = queues.filter(|queues| *queues < now) else {
        return nic.irqs.clone();
    };
    // One interrupt for each queue, in their order.
    if nic.irqs.len() == now {
        return nic.irqs.iter().take(queues).copied().collect();
    }
    let stays = |irq: &u32| {
        let action = machine.irq(*irq).and_then(|irq| irq.actions.first());
        let queue = action.and_then(|action| queue(action, &nic.name));
        queue.is_none_or(|queue| (queue as usize) < queues)
    };
    nic.irqs.iter().copied().filter(stays).collect()
}

/// The queue of an interrupt's handler. An interrupt for errors or for the link has no number at
/// its end, or the name of the device.
fn queue(action: &str, nic: &str) -> Option<u32> {
    let (_, queue) = queue_of(action).filter(|_| !action.ends_with(nic))?;
    Some(queue)
}

/// The placement that a plan carries out: interrupts on the targets of the partition, the CPUs
/// that send on each queue, and, if the goal says so, another number of queues. A device whose
/// number of queues changes gets no steering: the interrupts of its new queues do not exist yet.
///
/// # Errors
/// A device of the goal does not exist.
pub fn placement(
    machine: &Machine,
    goal: &Goal,
    partition: &Partition,
) -> Result<Placement, PartitionError> {
    let placed = place(machine, goal, partition)?;
    let handlers = placed
        .iter()
        .map(|placed| (placed.irq, placed.cpu))
        .collect();
    let nics = devices(machine, &goal.devices)?;
    let queues = goal.queues.and_then(|queues| u32::try_from(queues).ok());
    let queues = nics
        .iter()
        .filter_map(|nic| Some((nic.name.clone(), queues?)));
    let steered: Vec<&Nic> = nics
        .iter()
        .copied()
        .filter(|nic| !has_other_queues(goal, nic))
        .collect();
    let mut transmit = BTreeMap::new();
    for nic in &steered {
        let sets = steering::transmit(machine, nic, &handlers);
        for (queue, cpus) in (0..).zip(sets.unwrap_or_default()) {
            // More queues than cores: the rest stays without senders.
            if !cpus.is_empty() {
                transmit.insert((nic.name.clone(), queue), numbers(&cpus));
            }
        }
    }
    // The queues of all devices count, so that none may be unknown.
    let receive = if steered.len() == nics.len() {
        steering::receive(machine, &steered, &partition.targets, &handlers)
    } else {
        BTreeMap::new()
    };
    Ok(Placement {
        irqs: handlers
            .into_iter()
            .map(|(irq, cpu)| (irq, vec![cpu]))
            .collect(),
        queues: queues.collect(),
        transmit,
        receive: receive
            .into_iter()
            .map(|(queue, cpus)| (queue, numbers(&cpus)))
            .collect(),
    })
}

fn numbers(cpus: &CpuSet) -> Vec<u32> {
    cpus.iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_queue_is_at_the_end_of_the_name_of_a_handler() {
        for (action, expected) in [
            ("eth0-TxRx-3", Some(3)),
            ("virtio0-input.12", Some(12)),
            ("mlx5_comp7@pci:0000:3b:00.0", Some(7)),
            ("ens5-Tx-Rx-0", Some(0)),
            ("virtio0-config", None),
            ("ena-mgmnt@pci:0000:00:05.0", None),
            ("i40e-0000:3b:00.0:misc", None),
            ("eth0", None),
            ("igb: eth0", None),
        ] {
            assert_eq!(queue(action, "eth0"), expected, "{action}");
        }
    }
}
