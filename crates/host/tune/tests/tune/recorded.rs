//! Machines with facts read off recorded ones (test data of hwloc). Interrupts are added.

use saiga_topology::machine::{Machine, Nic};

use crate::machines::{GIB, disk, name, nic, plain};
use crate::shapes::{KUNPENG_128, Order, Shape};

fn set_distances<const N: usize>(machine: &mut Machine, distances: [[u32; N]; N]) {
    for (node, distances) in machine.nodes.iter_mut().zip(distances) {
        node.distances = distances.to_vec();
    }
}

fn set_memory(machine: &mut Machine, bytes: u64) {
    for node in &mut machine.nodes {
        (node.memory_bytes, node.free_bytes) = (bytes, bytes / 10 * 9);
    }
}

/// The speed of a device; `None` means that it is down.
fn set_speed(nic: &mut Nic, mbit_s: Option<u64>) {
    (nic.is_up, nic.speed_mbit_s) = (mbit_s.is_some(), mbit_s);
}

/// Huawei XA320 V2: Kunpeng 920. Added: a device of 16 queues and an NVMe disk.
pub(crate) fn kunpeng_xa320() -> Machine {
    let mut machine = nic(KUNPENG_128.machine(), "enp3s0", "hinic", 0, 16);
    name(&mut machine, "Huawei XA320 V2", "5.15.0-rc1.aarch64");
    machine.system.cpu_model = Some("HiSilicon TaiShan v110 (Kunpeng 920)".to_owned());
    "iommu.passthrough=1 root=/dev/sda1 rw".clone_into(&mut machine.system.command_line);
    set_memory(&mut machine, 126 * GIB);
    let distances = [
        [10, 16, 32, 33],
        [16, 10, 25, 32],
        [32, 25, 10, 16],
        [33, 32, 16, 10],
    ];
    set_distances(&mut machine, distances);
    disk(&mut machine, "nvme0n1", 200, "/data", Some("mq-deadline"));
    machine
}

/// Dell PowerEdge R910: four Xeon E7-4870, CPUs numbered in turn. Each of its Ethernet devices
/// has one interrupt for 8 queues, and their node is unknown; `InfiniBand` is on node 2.
pub(crate) fn r910() -> Machine {
    let shape = Shape {
        packages: 4,
        nodes: 1,
        cores: 10,
        cluster: 0,
        threads: 1,
    };
    let mut machine = shape.numbered(Order::InTurn);
    for (at, name) in ["eth0", "eth1", "eth2", "eth3"].into_iter().enumerate() {
        machine = nic(machine, name, "bnx2", 0, 1);
        let nic = &mut machine.nics[at];
        (nic.node, nic.rx_queues, nic.tx_queues) = (None, 8, 0);
        set_speed(nic, (at == 0).then_some(1000));
    }
    machine = nic(machine, "ib0", "ib_qib", 2, 1);
    let ib = &mut machine.nics[4];
    (ib.tx_queues, ib.speed_mbit_s) = (0, None);
    name(
        &mut machine,
        "Dell Inc. PowerEdge R910",
        "2.6.32-431.el6.x86_64",
    );
    set_memory(&mut machine, 128 * GIB);
    set_distances(
        &mut machine,
        [
            [10, 20, 20, 20],
            [20, 10, 20, 20],
            [20, 20, 10, 20],
            [20, 20, 20, 10],
        ],
    );
    disk(&mut machine, "sda", 32, "/", Some("cfq"));
    machine
}

/// Dell C6145: four Opteron 6276, eight nodes of four modules, each with two CPUs. Node 5 has half
/// of the memory of the others. Added: a device of 8 queues on node 6.
pub(crate) fn opteron_c6145() -> Machine {
    let shape = Shape {
        packages: 4,
        nodes: 2,
        cores: 4,
        cluster: 0,
        threads: 2,
    };
    let mut machine = nic(shape.numbered(Order::Siblings), "eth0", "ixgbe", 6, 8);
    name(
        &mut machine,
        "Dell PowerEdge C6145",
        "3.10.0-1160.el7.x86_64",
    );
    set_memory(&mut machine, 16 * GIB);
    machine.nodes[5].memory_bytes = 8 * GIB;
    let distances = [
        [10, 16, 16, 22, 16, 22, 16, 22],
        [16, 10, 22, 16, 16, 22, 22, 16],
        [16, 22, 10, 16, 16, 16, 16, 16],
        [22, 16, 16, 10, 16, 16, 22, 22],
        [16, 16, 16, 16, 10, 16, 16, 22],
        [22, 22, 16, 16, 16, 10, 22, 16],
        [16, 22, 16, 22, 16, 22, 10, 16],
        [22, 16, 16, 22, 22, 16, 16, 10],
    ];
    set_distances(&mut machine, distances);
    machine
}

/// Two Xeon E5-2680: an Ethernet device of 8 queues and 9 interrupts at 1 Gbit/s, one that is down,
/// and an `InfiniBand` device of one queue and many interrupts on node 1.
pub(crate) fn xeon_e5() -> Machine {
    let machine = plain([2, 1, 8, 1], "Dell DCS8000Z", "2.6.32-431.el6.x86_64");
    let machine = nic(machine, "eth0", "igb", 0, 9);
    let machine = nic(machine, "eth1", "igb", 0, 9);
    let mut machine = nic(machine, "ib0", "mlx4_core", 1, 32);
    for nic in &mut machine.nics[..2] {
        (nic.rx_queues, nic.tx_queues) = (8, 8);
    }
    set_speed(&mut machine.nics[0], Some(1000));
    set_speed(&mut machine.nics[1], None);
    let ib = &mut machine.nics[2];
    (ib.rx_queues, ib.tx_queues, ib.speed_mbit_s) = (1, 1, None);
    set_memory(&mut machine, 16 * GIB);
    set_distances(&mut machine, [[10, 21], [21, 10]]);
    disk(&mut machine, "sda", 84, "/", Some("cfq"));
    machine
}

/// Eight Opteron 865 of two cores. The cpuset (version 1) has 10 CPUs, and the memory of nodes 1
/// to 4. CPU 4 is offline.
pub(crate) fn opteron_cpuset() -> Machine {
    let machine = plain([8, 1, 2, 1], "", "2.6.32-431.el6.x86_64");
    let mut machine = nic(machine, "eth0", "tg3", 0, 1);
    set_speed(&mut machine.nics[0], Some(1000));
    set_memory(&mut machine, 8 * GIB);
    machine.cpus[4].is_online = false;
    machine.nodes[2].cpus = vec![5];
    machine.limits.cpus = vec![0, 1, 2, 3, 5, 6, 12, 13, 14, 15];
    machine.limits.nodes = vec![1, 2, 3, 4];
    machine.limits.cgroup_version = Some(1);
    machine
}

/// Four Xeon of two cores with two threads, of which CPUs 2, 5, 13 and 14 are offline. The kernel
/// shows one node.
pub(crate) fn offline() -> Machine {
    let mut machine = plain([1, 1, 8, 2], "", "2.6.18-398.el5.x86_64");
    for cpu in [2, 5, 13, 14] {
        machine.cpus[cpu].is_online = false;
    }
    for cpu in &mut machine.cpus {
        cpu.package = Some(cpu.id % 4);
    }
    // Their siblings are offline.
    machine.cpus[10].core = 10;
    machine.cpus[6].core = 6;
    machine.nodes[0]
        .cpus
        .retain(|cpu| ![2, 5, 13, 14].contains(cpu));
    machine.limits.cpus = machine.nodes[0].cpus.clone();
    set_memory(&mut machine, 16 * GIB);
    machine
}

/// i7-1370P: 6 fast cores of two CPUs and 8 slow ones in clusters of 4. Added: a device of 4
/// queues.
pub(crate) fn hybrid() -> Machine {
    let machine = plain([1, 1, 20, 1], "HP EliteBook 840 G10", "6.1.0-13-amd64");
    let mut machine = nic(machine, "enp0s31f6", "igc", 0, 4);
    set_speed(&mut machine.nics[0], Some(2500));
    for cpu in &mut machine.cpus {
        let (id, is_fast) = (cpu.id, cpu.id < 12);
        cpu.core = if is_fast { id / 2 * 2 } else { id };
        cpu.cluster = Some(if is_fast { id / 2 } else { 6 + (id - 12) / 4 });
        cpu.performance = Some(if is_fast { 5_000_000 } else { 3_900_000 });
    }
    set_memory(&mut machine, 31 * GIB);
    machine
}

/// NVIDIA DGX Spark (GB10): Cortex-X925 and A725 with four capacities in two clusters. Added: a
/// device of 8 queues.
pub(crate) fn gb10() -> Machine {
    let machine = plain(
        [1, 1, 20, 1],
        "NVIDIA_DGX_Spark",
        "6.17.0-1014-nvidia.aarch64",
    );
    let mut machine = nic(machine, "enp1s0f0np0", "mlx5_core", 0, 8);
    machine.system.cpu_model = Some("Arm Cortex-A725, Arm Cortex-X925".to_owned());
    for cpu in &mut machine.cpus {
        let capacity = match cpu.id {
            0..5 => 718,
            5..10 => 997,
            10..15 => 731,
            15..19 => 1017,
            _ => 1024,
        };
        cpu.performance = Some(capacity);
        cpu.cluster = Some(cpu.id / 10);
    }
    set_memory(&mut machine, 119 * GIB);
    machine.system.hugepages.clear();
    machine.nodes[0].hugepages.clear();
    machine
}
