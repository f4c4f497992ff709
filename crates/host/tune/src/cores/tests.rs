//! The vectors of the procedures, and properties of every division.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use saiga_topology::machine::Machine;

use super::binding::{self, MemoryPolicy};
use super::instances::instances;
use super::interrupts::place;
use super::machines::{KUNPENG_96, KUNPENG_128, Order, Shape, with_nic};
use super::partition::{Goal, PartitionError, Spread, divide};
use super::starts::starts;
use super::{CpuSet, faults};
use crate::goal::{Engine, Role};

fn set(text: &str) -> CpuSet {
    text.parse().unwrap()
}

fn kunpeng(queues: u32) -> Machine {
    with_nic(KUNPENG_128.machine(), "enp3s0", 0, queues)
}

/// The number of interrupts that each CPU gets.
fn per_cpu(machine: &Machine, goal: &Goal) -> BTreeMap<u32, usize> {
    let partition = divide(machine, goal).unwrap();
    let mut counts = BTreeMap::new();
    for placed in place(machine, goal, &partition).unwrap() {
        *counts.entry(placed.cpu).or_default() += 1;
    }
    counts
}

#[test]
fn a_server_of_128_cores_gives_the_last_four_of_each_node_to_interrupts() {
    let (machine, goal) = (kunpeng(16), Goal::of(Role::Server));
    let partition = divide(&machine, &goal).unwrap();
    assert_eq!(partition.interrupts, set("28-31,60-63,92-95,124-127"));
    assert_eq!(partition.server, set("0-27,32-59,64-91,96-123"));
    assert!(partition.free.is_empty() && partition.client.is_empty());
    let counts = per_cpu(&machine, &goal);
    assert_eq!((counts.len(), counts.values().max()), (16, Some(&1)));
}

#[test]
fn interrupts_are_dealt_by_the_formula_of_the_script() {
    for (shape, per_node, net_cores) in [(KUNPENG_128, 32, 16), (KUNPENG_96, 24, 12)] {
        let machine = with_nic(shape.machine(), "enp3s0", 0, 48);
        let goal = Goal {
            interrupt_cores: Some(net_cores),
            ..Goal::of(Role::Server)
        };
        let partition = divide(&machine, &goal).unwrap();
        let placed = place(&machine, &goal, &partition).unwrap();
        let cpus: Vec<u32> = placed.iter().map(|placed| placed.cpu).collect();
        let cores = 4 * per_node;
        let by_script: Vec<u32> = (0..48)
            .map(|i| {
                let behind = (i % u32::try_from(net_cores).unwrap()) / 4;
                ((i + 1) * per_node - behind - 1) % cores
            })
            .collect();
        assert_eq!(cpus, by_script);
    }
}

#[test]
fn more_queues_than_interrupt_cores_share_them_evenly() {
    let counts = per_cpu(&kunpeng(48), &Goal::of(Role::Server));
    let shown: Vec<String> = counts.iter().map(|(cpu, n)| format!("{cpu}:{n}")).collect();
    assert_eq!(
        shown.join(" "),
        "28:3 29:3 30:3 31:3 60:3 61:3 62:3 63:3 92:3 93:3 94:3 95:3 124:3 125:3 126:3 127:3"
    );
    let smaller = with_nic(KUNPENG_96.machine(), "enp3s0", 0, 16);
    let partition = divide(&smaller, &Goal::of(Role::Server)).unwrap();
    assert_eq!(partition.interrupts, set("20-23,44-47,68-71,92-95"));
    let goal = Goal {
        interrupt_cores: Some(12),
        ..Goal::of(Role::Server)
    };
    let counts = per_cpu(&with_nic(KUNPENG_96.machine(), "enp3s0", 0, 48), &goal);
    assert_eq!(counts.len(), 12);
    assert!(counts.values().all(|count| *count == 4));
}

#[test]
fn a_client_host_has_a_core_for_each_of_48_queues() {
    let partition = divide(&kunpeng(48), &Goal::of(Role::Client)).unwrap();
    assert_eq!(partition.interrupts, set("20-31,52-63,84-95,116-127"));
    assert_eq!(partition.client, set("0-19,32-51,64-83,96-115"));
    assert!(partition.server.is_empty());
}

#[test]
fn the_goal_of_the_server_decides() {
    for (cores, server) in [
        (112, "0-27,32-59,64-91,96-123"),
        (104, "0-25,32-57,64-89,96-121"),
        (100, "0-24,32-56,64-88,96-120"),
        (96, "0-23,32-55,64-87,96-119"),
    ] {
        let goal = Goal {
            server_cores: Some(cores),
            ..Goal::of(Role::Server)
        };
        let partition = divide(&kunpeng(16), &goal).unwrap();
        assert_eq!(partition.server, set(server));
        assert_eq!(partition.interrupts, set("28-31,60-63,92-95,124-127"));
        assert_eq!(partition.free.len(), 112 - cores);
        let is_aligned = cores % 16 == 0;
        assert_eq!(
            partition.notes.is_empty(),
            is_aligned,
            "{:?}",
            partition.notes
        );
    }
}

/// Procedure 004: 24 of 32 cores for openGauss and 8 for the client and the interrupts gave the
/// most transactions.
#[test]
fn server_and_client_share_a_host() {
    let partition = divide(&kunpeng(16), &Goal::of(Role::Both)).unwrap();
    assert_eq!(partition.server, set("0-23,32-55,64-87,96-119"));
    assert_eq!(partition.client, set("24-27,56-59,88-91,120-123"));
    assert_eq!(partition.interrupts, set("28-31,60-63,92-95,124-127"));
    let alone = divide(&KUNPENG_128.machine(), &Goal::of(Role::Both)).unwrap();
    assert_eq!(alone.client, set("24-31,56-63,88-95,120-127"));
}

#[test]
fn faults_of_the_procedures_are_found() {
    // 004: the client's cores and the cores of its interrupts.
    let (client, irq) = (
        set("0-27,32-59,64-91,96-123"),
        set("26-31,58-63,90-95,122-127"),
    );
    let found = faults::overlaps(&[("client", &client), ("interrupts", &irq)]);
    assert_eq!(
        found[0].to_string(),
        "CPUs 26-27,58-59,90-91,122-123 (8 of them) are given to client and to interrupts"
    );
    assert!(faults::overlaps(&[("client", &set("0-19")), ("interrupts", &irq)]).is_empty());

    // 001: six queues, five of which are bound, to CPUs of both packages.
    let mut machine = kunpeng(6);
    for (irq, cpu) in machine.irqs.iter_mut().zip(61..66) {
        irq.affinity = Some(vec![cpu]);
    }
    let cpus = set("61-66");
    assert_eq!(
        faults::unbound(&machine, &cpus)[0].to_string(),
        "enp3s0: 5 of 6 interrupts are bound; not 105"
    );
    machine.irqs[5].affinity = Some(vec![66]);
    assert!(faults::unbound(&machine, &cpus).is_empty());
}

#[test]
fn the_thread_pool_of_opengauss_follows_from_the_server() {
    let partition = divide(&kunpeng(16), &Goal::of(Role::Server)).unwrap();
    assert_eq!(
        binding::thread_pool(&partition.server, 4),
        "812,4,(cpubind:0-27,32-59,64-91,96-123)"
    );
    assert_eq!(
        binding::thread_pool(&(0..1000).collect(), 1)
            .split(',')
            .next(),
        Some("4096")
    );
}

#[test]
fn instances_get_whole_nodes_of_one_package() {
    let machine = kunpeng(16);
    let partition = divide(&machine, &Goal::of(Role::Server)).unwrap();
    let two = instances(&machine, &partition, 2).unwrap();
    assert_eq!(two[0].nodes, [0, 1]);
    assert_eq!(
        binding::numactl(&two[0], MemoryPolicy::Interleaved),
        "numactl -C 0-27,32-59 -i 0-1"
    );
    assert_eq!(
        binding::systemd(&two[1], MemoryPolicy::Bound),
        "[Service]\nCPUAffinity=\nCPUAffinity=64-91 96-123\nNUMAPolicy=bind\nNUMAMask=\nNUMAMask=2-3\n"
    );
    let eight = instances(&machine, &partition, 8).unwrap();
    assert_eq!(
        (eight[0].cpus.clone(), eight[7].cpus.clone()),
        (set("0-13"), set("110-123"))
    );
    let error = instances(&machine, &partition, 113).unwrap_err();
    assert_eq!(
        error.to_string(),
        "113 instances do not fit: the server has 112 cores in 4 nodes"
    );
}

#[test]
fn few_queues_take_a_core_of_the_nearest_node() {
    let machine = with_nic(KUNPENG_128.machine(), "eth0", 2, 1);
    let partition = divide(&machine, &Goal::of(Role::Server)).unwrap();
    assert_eq!(partition.interrupts, set("95"));
    let near = Goal {
        spread: Spread::NearDevice,
        ..Goal::of(Role::Server)
    };
    let machine = with_nic(KUNPENG_128.machine(), "eth0", 2, 16);
    assert_eq!(divide(&machine, &near).unwrap().interrupts, set("92-95"));
}

#[test]
fn siblings_go_together_and_one_of_them_has_the_interrupts() {
    // Two packages of 16 cores with two threads each; CPU 0 and 32 are one core.
    let shape = Shape {
        packages: 2,
        nodes: 1,
        cores: 16,
        cluster: 0,
        threads: 2,
    };
    let machine = with_nic(shape.machine(), "eth0", 0, 4);
    let partition = divide(&machine, &Goal::of(Role::Server)).unwrap();
    assert_eq!(partition.interrupts, set("14-15,30-31,46-47,62-63"));
    assert_eq!(partition.targets, [15, 31, 14, 30]);
}

#[test]
fn interrupts_go_to_the_slow_cores_of_a_hybrid_machine() {
    let shape = Shape {
        packages: 1,
        nodes: 1,
        cores: 16,
        cluster: 0,
        threads: 1,
    };
    let mut machine = with_nic(shape.machine(), "eth0", 0, 2);
    for cpu in &mut machine.cpus {
        cpu.performance = Some(if cpu.id < 4 { 500 } else { 1024 });
    }
    let partition = divide(&machine, &Goal::of(Role::Server)).unwrap();
    assert_eq!(partition.interrupts, set("2-3"));
}

#[test]
fn small_and_limited_machines_are_served() {
    let small = Shape {
        packages: 1,
        nodes: 1,
        cores: 2,
        cluster: 0,
        threads: 1,
    };
    let machine = with_nic(small.machine(), "eth0", 0, 1);
    let partition = divide(&machine, &Goal::of(Role::Server)).unwrap();
    assert_eq!(
        (partition.server, partition.interrupts),
        (set("0-1"), set(""))
    );
    assert!(partition.targets.is_empty());
    assert!(partition.notes[0].starts_with("2 cores are too few"));

    let mut limited = kunpeng(16);
    limited.limits.cpus = (0..16).collect();
    limited.cpus[3].is_isolated = true;
    limited.cpus[4].is_online = false;
    let partition = divide(&limited, &Goal::of(Role::Server)).unwrap();
    assert_eq!(partition.left_alone, set("3,16-127"));
    assert_eq!(
        partition.server.union(&partition.interrupts),
        set("0-2,5-15")
    );

    let mut remote = kunpeng(16);
    remote.nodes[1].memory_bytes = 0;
    let notes = divide(&remote, &Goal::of(Role::Server)).unwrap().notes;
    assert_eq!(
        notes,
        ["node 1 has no memory: its CPUs use that of other nodes"]
    );
}

#[test]
fn impossible_goals_are_refused() {
    let goal = Goal {
        server_cores: Some(129),
        ..Goal::of(Role::Server)
    };
    let too_many = PartitionError::TooMany {
        role: "server",
        wanted: 129,
        available: 128,
    };
    assert_eq!(divide(&kunpeng(16), &goal), Err(too_many));
    let both = Goal {
        server_cores: Some(120),
        interrupt_cores: Some(12),
        ..Goal::of(Role::Server)
    };
    assert!(matches!(
        divide(&kunpeng(16), &both),
        Err(PartitionError::TooMany { available: 29, .. })
    ));
    let goal = Goal {
        devices: vec!["eth7".to_owned()],
        ..Goal::of(Role::Server)
    };
    let error = divide(&kunpeng(16), &goal).unwrap_err().to_string();
    assert_eq!(
        error,
        "there is no network device eth7; this host has enp3s0"
    );
    let goal = Goal {
        interrupt_cores: Some(3),
        ..Goal::of(Role::Server)
    };
    assert!(divide(&kunpeng(16), &goal).is_err());
}

proptest! {
    /// Sets are disjoint and complete, cores are whole, and every interrupt is placed once.
    #[test]
    fn every_division_is_one(
        (packages, nodes, cores, cluster, threads) in (1..3u32, 1..4u32, 1..33u32, 0..5u32, 1..3u32),
        order in prop_oneof![Just(Order::Nodes), Just(Order::Siblings), Just(Order::InTurn)],
        queues in proptest::collection::vec(0..70u32, 0..3),
        role in prop_oneof![Just(Role::Server), Just(Role::Client), Just(Role::Both)],
        near in any::<bool>(),
        offline in proptest::collection::vec(0..200u32, 0..6),
        server_cores in proptest::option::of(1..128usize),
        interrupt_cores in proptest::option::of(1..32usize),
    ) {
        let shape = Shape { packages, nodes, cores, cluster, threads };
        let mut machine = shape.numbered(order);
        for (at, queues) in queues.iter().enumerate() {
            let node = u32::try_from(at).unwrap() % (packages * nodes);
            machine = with_nic(machine, &format!("eth{at}"), node, *queues);
        }
        for id in offline {
            if let Some(cpu) = machine.cpus.iter_mut().find(|cpu| cpu.id == id && id != 0) {
                cpu.is_online = false;
            }
        }
        let spread = if near { Spread::NearDevice } else { Spread::AllNodes };
        let goal = Goal { spread, server_cores, interrupt_cores, ..Goal::of(role) };
        let Ok(partition) = divide(&machine, &goal) else { return Ok(()) };
        let sets = [&partition.server, &partition.client, &partition.interrupts, &partition.free];
        let online: BTreeSet<u32> =
            machine.cpus.iter().filter(|cpu| cpu.is_online).map(|cpu| cpu.id).collect();
        let all: Vec<u32> = sets.iter().flat_map(|set| set.iter()).collect();
        prop_assert_eq!(all.len(), online.len());
        prop_assert_eq!(&all.iter().copied().collect::<BTreeSet<_>>(), &online);
        for core in machine.cores().values() {
            let core: CpuSet = core.iter().copied().collect();
            prop_assert!(sets.iter().any(|set| core.is_subset(set)), "{}", core);
        }
        let placed = place(&machine, &goal, &partition).unwrap();
        let irqs: BTreeSet<u32> = placed.iter().map(|placed| placed.irq).collect();
        let movable: BTreeSet<u32> = machine.irqs.iter().map(|irq| irq.number).collect();
        prop_assert_eq!(placed.len(), irqs.len());
        if !partition.targets.is_empty() {
            prop_assert_eq!(irqs, movable);
        }
        prop_assert!(placed.iter().all(|placed| online.contains(&placed.cpu)));
    }
}

/// Two packages of four nodes; the device is in the second package, whose nodes are nearer.
#[test]
fn few_queues_stay_in_the_package_of_the_device() {
    let shape = Shape {
        packages: 2,
        nodes: 4,
        cores: 16,
        cluster: 0,
        threads: 1,
    };
    let machine = with_nic(shape.machine(), "eth0", 5, 4);
    let partition = divide(&machine, &Goal::of(Role::Server)).unwrap();
    assert_eq!(partition.interrupts, set("79,95,111,127"));
}

/// A core of each of eight small nodes would be a quarter of the machine, and a device with one
/// interrupt needs one core, whatever number of queues it shows.
#[test]
fn interrupts_get_no_more_than_their_share_and_their_need() {
    let shape = Shape {
        packages: 8,
        nodes: 1,
        cores: 4,
        cluster: 0,
        threads: 2,
    };
    let mut machine = with_nic(shape.numbered(Order::Siblings), "eth0", 3, 8);
    let cpus = |machine: &Machine| {
        let partition = divide(machine, &Goal::of(Role::Server)).unwrap();
        partition.interrupts.len()
    };
    assert_eq!(cpus(&machine), 8, "4 of 32 cores");
    machine.nics[0].irqs.truncate(1);
    assert_eq!(cpus(&machine), 2, "one core of two CPUs");

    // Two clusters of 10: no role gets a whole one for the sake of it.
    let shape = Shape {
        packages: 1,
        nodes: 1,
        cores: 20,
        cluster: 10,
        threads: 1,
    };
    let machine = with_nic(shape.machine(), "eth0", 0, 16);
    let partition = divide(&machine, &Goal::of(Role::Client)).unwrap();
    assert_eq!(partition.interrupts.len(), 8);
    assert!(partition.notes.is_empty());
}

#[test]
fn limits_of_a_cgroup_are_noted() {
    let mut machine = kunpeng(16);
    machine.limits.nodes = vec![0, 1, 2];
    machine.limits.cpu_quota = Some("6.5".to_owned());
    let notes = divide(&machine, &Goal::of(Role::Server)).unwrap().notes;
    assert_eq!(
        notes,
        [
            "the CPU quota of this cgroup is 6.5 CPUs: more threads only wait",
            "memory of node 3 is outside of the cpuset: its CPUs use that of other nodes"
        ]
    );
}

fn commands(machine: &Machine, engine: Engine, count: usize) -> Vec<String> {
    let partition = divide(machine, &Goal::of(Role::Server)).unwrap();
    let starts = starts(machine, &partition, engine, count).unwrap();
    starts.into_iter().map(|start| start.numactl).collect()
}

#[test]
fn memory_is_bound_to_nodes_that_have_some() {
    let mut machine = kunpeng(16);
    let two = |machine: &Machine, engine| commands(machine, engine, 2);
    let server = ["numactl -C 0-27,32-59", "numactl -C 64-91,96-123"];
    assert_eq!(
        two(&machine, Engine::Mysql),
        [
            format!("{} -i 0-1", server[0]),
            format!("{} -i 2-3", server[1])
        ]
    );
    // numactl fails for a node without memory.
    machine.nodes[1].memory_bytes = 0;
    assert_eq!(
        two(&machine, Engine::Mysql)[0],
        format!("{} -m 0", server[0])
    );
    machine.nodes[0].memory_bytes = 0;
    assert_eq!(two(&machine, Engine::Mysql)[0], server[0]);

    // A node of memory only stays open to a server on all CPUs.
    let mut machine = kunpeng(16);
    let mut memory = machine.nodes[3].clone();
    (memory.id, memory.cpus) = (4, Vec::new());
    machine.nodes.push(memory);
    machine.limits.nodes.push(4);
    let one = commands(&machine, Engine::Postgres, 1);
    assert_eq!(one, ["numactl -C 0-27,32-59,64-91,96-123"]);
}

#[test]
fn a_redis_instance_is_on_one_node_near_the_device() {
    let machine = with_nic(KUNPENG_128.machine(), "eth0", 2, 16);
    assert_eq!(commands(&machine, Engine::Redis, 1), ["numactl -C 64-91"]);
    let two = commands(&machine, Engine::Redis, 2);
    assert_eq!(two[1], "numactl -C 96-123");
    assert_eq!(commands(&machine, Engine::Redis, 8).len(), 8);
}

#[test]
fn a_server_on_all_cpus_is_started_as_before() {
    let small = Shape {
        packages: 1,
        nodes: 1,
        cores: 2,
        cluster: 0,
        threads: 1,
    };
    let machine = with_nic(small.machine(), "eth0", 0, 1);
    assert!(commands(&machine, Engine::Mysql, 1).is_empty());
    assert_eq!(commands(&machine, Engine::Mysql, 2).len(), 2);
}

#[test]
fn a_running_server_on_cpus_of_interrupts_is_a_fault() {
    let partition = divide(&kunpeng(16), &Goal::of(Role::Server)).unwrap();
    let found = faults::of_server("mysqld", &set("0-127"), &partition);
    let found: Vec<String> = found.iter().map(ToString::to_string).collect();
    assert_eq!(
        found,
        ["CPUs 28-31,60-63,92-95,124-127 (16 of them) are given to mysqld and to interrupts"]
    );
    assert!(faults::of_server("mysqld", &set("0-27,32-59"), &partition).is_empty());
    let both = divide(&kunpeng(16), &Goal::of(Role::Both)).unwrap();
    assert_eq!(faults::of_server("mysqld", &set("20-31"), &both).len(), 2);
}
