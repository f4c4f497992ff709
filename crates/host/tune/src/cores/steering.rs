//! Steers packets to fit the placement of interrupts: the CPUs that send on each transmit queue
//! (XPS), and interrupt cores without a queue that process received packets of others (RPS).
//!
//! Source: Linux Documentation/networking/scaling.rst. A CPU should send on one queue only, whose
//! completions are processed near it. RPS is for fewer queues than cores; its CPUs should be on
//! the node of the queue's interrupt, without the CPU of the interrupt itself.

use std::collections::{BTreeMap, BTreeSet};

use saiga_topology::machine::{Machine, Nic};

use super::CpuSet;
use super::instances::pieces;

/// The CPU of each placed interrupt.
pub(super) type Handlers = BTreeMap<u32, u32>;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Direction {
    Transmit,
    Receive,
}

/// Returns the CPUs that send on each transmit queue of a device. Each online CPU is in one set;
/// the CPU of a queue's interrupt is in the set of this queue. `None` if the device has one queue,
/// or if the interrupt of a queue is unknown or not placed.
pub(super) fn transmit(machine: &Machine, nic: &Nic, placed: &Handlers) -> Option<Vec<CpuSet>> {
    if nic.tx_queues < 2 {
        return None;
    }
    let handlers = handlers(machine, nic, Direction::Transmit, placed)?;
    let mut sets = vec![CpuSet::default(); handlers.len()];
    let mut cores: BTreeMap<u32, Vec<CpuSet>> = BTreeMap::new();
    for (first, cpus) in machine.cores() {
        let node = machine.cpu(first).map_or(0, |cpu| cpu.node);
        cores
            .entry(node)
            .or_default()
            .push(cpus.into_iter().collect());
    }
    for (node, cores) in cores {
        let queues = nearest(machine, node, &handlers);
        let own = |core: &CpuSet| queues.iter().find(|at| core.contains(handlers[**at]));
        let (of_interrupts, rest): (Vec<CpuSet>, Vec<CpuSet>) =
            cores.into_iter().partition(|core| own(core).is_some());
        for core in &of_interrupts {
            if let Some(at) = own(core) {
                sets[*at] = sets[*at].union(core);
            }
        }
        for (at, (from, to)) in queues.iter().zip(pieces(rest.len(), queues.len())) {
            for core in &rest[from..to] {
                sets[*at] = sets[*at].union(core);
            }
        }
    }
    Some(sets)
}

/// Returns the CPUs that process packets of each receive queue, by device and queue. Empty unless
/// the devices have fewer receive queues than `targets` has cores for interrupts.
pub(super) fn receive(
    machine: &Machine,
    nics: &[&Nic],
    targets: &[u32],
    placed: &Handlers,
) -> BTreeMap<(String, u32), CpuSet> {
    let mut busy: BTreeMap<(String, u32), u32> = BTreeMap::new();
    for nic in nics {
        // A device without known queues may use any of the cores.
        let Some(handlers) = handlers(machine, nic, Direction::Receive, placed) else {
            return BTreeMap::new();
        };
        for (queue, cpu) in (0..).zip(handlers) {
            busy.insert((nic.name.clone(), queue), cpu);
        }
    }
    if busy.len() >= targets.len() {
        return BTreeMap::new();
    }
    let used: BTreeSet<u32> = busy.values().copied().collect();
    let node = |cpu: u32| machine.cpu(cpu).map(|cpu| cpu.node);
    let helpers = |cpu: u32| -> CpuSet {
        let idle = targets.iter().copied().filter(|cpu| !used.contains(cpu));
        idle.filter(|other| node(*other) == node(cpu)).collect()
    };
    busy.into_iter()
        .map(|(queue, cpu)| (queue, helpers(cpu)))
        .filter(|(_, cpus)| !cpus.is_empty())
        .collect()
}

/// The queues whose interrupts arrive on a node, or else on the node that is nearest to it.
fn nearest(machine: &Machine, node: u32, handlers: &[u32]) -> Vec<usize> {
    let distance = |cpu: u32| match machine.cpu(cpu).map(|cpu| cpu.node) {
        Some(other) if other == node => 0,
        Some(other) => super::distance(machine, node, &BTreeSet::from([other])).max(1),
        None => u32::MAX,
    };
    let distances: Vec<u32> = handlers.iter().map(|cpu| distance(*cpu)).collect();
    let least = distances.iter().min();
    (0..handlers.len())
        .filter(|at| Some(&distances[*at]) == least)
        .collect()
}

/// The CPU of each queue's interrupt, in the order of the queues.
fn handlers(
    machine: &Machine,
    nic: &Nic,
    direction: Direction,
    placed: &Handlers,
) -> Option<Vec<u32>> {
    let irqs = interrupts(machine, nic, direction)?;
    irqs.iter().map(|irq| placed.get(irq).copied()).collect()
}

/// The interrupt of each queue. Drivers number the queues in the names of their handlers; a device
/// may have further interrupts, for its control. Without such names, one interrupt for each queue
/// is in their order.
fn interrupts(machine: &Machine, nic: &Nic, direction: Direction) -> Option<Vec<u32>> {
    let queues = match direction {
        Direction::Transmit => nic.tx_queues,
        Direction::Receive => nic.rx_queues,
    };
    let mut by_name: BTreeMap<String, BTreeMap<u32, u32>> = BTreeMap::new();
    for irq in &nic.irqs {
        for action in machine.irq(*irq).iter().flat_map(|irq| &irq.actions) {
            if let Some((name, queue)) = queue_of(action) {
                by_name.entry(name).or_default().insert(queue, *irq);
            }
        }
    }
    let of_other = |name: &str| match direction {
        Direction::Transmit => ["rx", "input"].iter().any(|word| name.ends_with(word)),
        Direction::Receive => ["tx", "output"].iter().any(|word| name.ends_with(word)),
    };
    let has_both = |name: &str| {
        ["txrx", "tx-rx", "rxtx", "rx-tx"]
            .iter()
            .any(|w| name.ends_with(w))
    };
    let is_complete = |of: &BTreeMap<u32, u32>| of.keys().copied().eq(0..queues);
    let mut named = by_name
        .into_iter()
        .filter(|(name, of)| is_complete(of) && (has_both(name) || !of_other(name)))
        .map(|(_, of)| of.into_values().collect());
    match (named.next(), named.next()) {
        (Some(irqs), None) => Some(irqs),
        (Some(_), Some(_)) => None,
        (None, _) => (nic.irqs.len() == queues as usize).then(|| nic.irqs.clone()),
    }
}

/// The name and the number of the queue in the name of a handler: `eth0-TxRx-3`,
/// `virtio0-input.3`, `mlx5_comp3@pci:0000:5e:00.0`.
pub(super) fn queue_of(action: &str) -> Option<(String, u32)> {
    let action = action.split('@').next()?;
    let name = action.trim_end_matches(|c: char| c.is_ascii_digit());
    let queue = action.strip_prefix(name)?.parse().ok()?;
    let name = name.trim_end_matches(['-', '.', '_']).to_ascii_lowercase();
    Some((name, queue))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cores::interrupts::placement;
    use crate::cores::machines::{KUNPENG_128, Shape, with_nic};
    use crate::cores::partition::{Goal, divide};
    use crate::goal::{Placement, Role};

    fn placed(machine: &Machine, goal: &Goal) -> Placement {
        let partition = divide(machine, goal).unwrap();
        placement(machine, goal, &partition).unwrap()
    }

    fn set(placement: &BTreeMap<(String, u32), Vec<u32>>, queue: u32) -> String {
        let cpus = placement.get(&("eth0".to_owned(), queue));
        let cpus: CpuSet = cpus.into_iter().flatten().copied().collect();
        cpus.to_string()
    }

    /// Handlers as the named driver calls them, of which the first is for control.
    fn with_names(mut machine: Machine, control: &str, names: &[&str]) -> Machine {
        let actions = std::iter::once(control).chain(names.iter().copied());
        for (irq, action) in machine.irqs.iter_mut().zip(actions) {
            irq.actions = vec![action.to_owned()];
        }
        machine
    }

    #[test]
    fn each_cpu_sends_on_one_queue_of_its_node() {
        let machine = with_nic(KUNPENG_128.machine(), "eth0", 0, 16);
        let found = placed(&machine, &Goal::of(Role::Server)).transmit;
        // Interrupts of queues 0, 4, 8 and 12 are on CPUs 31, 30, 29 and 28.
        for (queue, expected) in [
            (0, "0-6,31"),
            (4, "7-13,30"),
            (12, "21-28"),
            (1, "32-38,63"),
            (15, "117-124"),
        ] {
            assert_eq!(set(&found, queue), expected, "queue {queue}");
        }
        let mut all: Vec<u32> = found.into_values().flatten().collect();
        all.sort_unstable();
        assert_eq!(all, (0..128).collect::<Vec<u32>>());
    }

    /// Two queues, on nodes 2 and 3. The nodes of the other package are equally far from both.
    #[test]
    fn nodes_without_an_interrupt_send_on_the_nearest_queue() {
        let machine = with_nic(KUNPENG_128.machine(), "eth0", 2, 2);
        let found = placed(&machine, &Goal::of(Role::Server));
        assert_eq!((found.irqs[&100][0], found.irqs[&101][0]), (95, 127));
        assert_eq!(set(&found.transmit, 0), "0-15,32-47,64-95");
        assert_eq!(set(&found.transmit, 1), "16-31,48-63,96-127");
    }

    #[test]
    fn siblings_send_on_the_same_queue() {
        let shape = Shape {
            packages: 1,
            nodes: 1,
            cores: 16,
            cluster: 0,
            threads: 2,
        };
        let machine = with_nic(shape.machine(), "eth0", 0, 2);
        let found = placed(&machine, &Goal::of(Role::Server)).transmit;
        assert_eq!(set(&found, 0), "0-6,15-22,31");
        assert_eq!(set(&found, 1), "7-14,23-30");
    }

    #[test]
    fn the_queue_of_an_interrupt_is_in_the_name_of_its_handler() {
        let with = |queues: u32, irqs, control, names: &[&str]| {
            let mut machine = with_nic(KUNPENG_128.machine(), "eth0", 0, irqs);
            (machine.nics[0].rx_queues, machine.nics[0].tx_queues) = (queues, queues);
            with_names(machine, control, names)
        };
        let irqs = |machine: &Machine, direction| interrupts(machine, &machine.nics[0], direction);
        let virtio = with(
            2,
            5,
            "virtio0-config",
            &[
                "virtio0-input.0",
                "virtio0-output.0",
                "virtio0-input.1",
                "virtio0-output.1",
            ],
        );
        assert_eq!(irqs(&virtio, Direction::Receive), Some(vec![101, 103]));
        assert_eq!(irqs(&virtio, Direction::Transmit), Some(vec![102, 104]));
        let ixgbe = with(2, 3, "eth0", &["eth0-TxRx-1", "eth0-TxRx-0"]);
        assert_eq!(irqs(&ixgbe, Direction::Transmit), Some(vec![102, 101]));
        let mlx5 = with(
            2,
            3,
            "mlx5_async0@pci:0000:5e:00.0",
            &["mlx5_comp0@pci:0000:5e:00.0", "mlx5_comp1@pci:0000:5e:00.0"],
        );
        assert_eq!(irqs(&mlx5, Direction::Receive), Some(vec![101, 102]));
        // Nothing tells which of three interrupts is not that of a queue.
        assert_eq!(
            irqs(&with(2, 3, "a", &["b", "c"]), Direction::Receive),
            None
        );
    }

    #[test]
    fn interrupt_cores_without_a_queue_process_packets_of_their_node() {
        let machine = with_nic(KUNPENG_128.machine(), "eth0", 0, 4);
        let goal = |cores| Goal {
            interrupt_cores: cores,
            ..Goal::of(Role::Server)
        };
        let found = placed(&machine, &goal(Some(8))).receive;
        assert_eq!(
            (set(&found, 0), set(&found, 3)),
            ("30".into(), "126".into())
        );
        assert!(
            placed(&machine, &goal(None)).receive.is_empty(),
            "as many queues as cores"
        );
        // Two queues on four nodes: nodes 2 and 3 are another memory domain.
        let machine = with_nic(KUNPENG_128.machine(), "eth0", 0, 2);
        let found = placed(&machine, &goal(Some(4))).receive;
        assert!(found.is_empty(), "{found:?}");
    }

    /// The interrupts of new queues are not known yet.
    #[test]
    fn another_number_of_queues_is_steered_by_the_next_plan() {
        let machine = with_nic(KUNPENG_128.machine(), "eth0", 0, 4);
        let goal = |queues| Goal {
            queues: Some(queues),
            ..Goal::of(Role::Server)
        };
        assert!(placed(&machine, &goal(16)).transmit.is_empty());
        assert_eq!(placed(&machine, &goal(4)).transmit.len(), 4);
        let notes = |queues| divide(&machine, &goal(queues)).unwrap().notes;
        assert_eq!(
            notes(16)[0],
            "the number of queues of eth0 changes: after this plan, make another one for the \
             interrupts and XPS of the new queues"
        );
        assert!(!notes(4).iter().any(|note| note.contains("queues")));
    }
}
