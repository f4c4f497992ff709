//! Machines built in code. Their facts are from public descriptions of such machines.

use saiga_topology::machine::{Disk, Irq, Machine};

use crate::shapes::{KUNPENG_96, Order, Shape, with_nic};

pub(crate) const GIB: u64 = 1 << 30;

/// A machine without devices.
pub(crate) fn plain(
    [packages, nodes, cores, threads]: [u32; 4],
    product: &str,
    kernel: &str,
) -> Machine {
    let shape = Shape {
        packages,
        nodes,
        cores,
        cluster: 0,
        threads,
    };
    let mut machine = shape.numbered(Order::Nodes);
    name(&mut machine, product, kernel);
    machine
}

/// Sets the product and the release of the kernel, which ends with the architecture on Arm.
pub(crate) fn name(machine: &mut Machine, product: &str, kernel: &str) {
    let system = &mut machine.system;
    let is_arm = kernel.ends_with("aarch64");
    system.architecture = if is_arm { "aarch64" } else { "x86_64" }.to_owned();
    system.product = (!product.is_empty()).then(|| product.to_owned());
    kernel.clone_into(&mut system.kernel);
}

/// Adds a network device on a node.
pub(crate) fn nic(machine: Machine, name: &str, driver: &str, node: u32, queues: u32) -> Machine {
    let mut machine = with_nic(machine, name, node, queues);
    let nic = machine.nics.last_mut().unwrap();
    nic.driver = Some(driver.to_owned());
    machine
}

/// Adds a disk with one interrupt on node 0.
pub(crate) fn disk(
    machine: &mut Machine,
    disk: &str,
    irq: u32,
    mount: &str,
    scheduler: Option<&str>,
) {
    let driver = if disk.starts_with("nvme") {
        "nvme"
    } else {
        "sd"
    };
    machine.irqs.push(Irq {
        number: irq,
        actions: vec![format!("{}q1", disk.trim_end_matches("n1"))],
        affinity: Some(vec![0]),
        effective: None,
        node: Some(0),
        count: 0,
    });
    machine.disks.push(Disk {
        name: disk.to_owned(),
        model: None,
        driver: Some(driver.to_owned()),
        device: Some("0000:81:00.0".to_owned()),
        node: Some(0),
        bytes: 3_000 * GIB,
        is_rotational: driver == "sd",
        queues: 1,
        scheduler: scheduler.map(str::to_owned),
        requests: Some(128),
        irqs: vec![irq],
        mounts: vec![mount.to_owned()],
    });
}

/// Kunpeng 920 with two packages of two nodes each, and a device of 4 queues.
pub(crate) fn kunpeng(cpus: u32) -> Machine {
    kunpeng_with(cpus, 4)
}

pub(crate) fn kunpeng_with(cpus: u32, queues: u32) -> Machine {
    let shape = Shape {
        cores: cpus / 4,
        ..KUNPENG_96
    };
    let mut machine = nic(shape.machine(), "enp3s0", "hinic", 0, queues);
    name(
        &mut machine,
        "TaiShan 200 (Model 2280)",
        "4.19.90-2112.8.0.0131.oe1.aarch64",
    );
    // Kernels for Arm are built with either size.
    machine.system.page_bytes = if cpus == 96 { 65_536 } else { 4096 };
    machine.system.iommu = true;
    disk(&mut machine, "nvme0n1", 200, "/data", Some("mq-deadline"));
    disk(&mut machine, "nvme1n1", 201, "/data1", Some("mq-deadline"));
    machine
}

/// Two sockets with four nodes each; the network device is on the second one.
pub(crate) fn epyc_nps4() -> Machine {
    let machine = plain([2, 4, 16, 1], "PowerEdge R7525", "6.12.9-100.fc40.x86_64");
    let mut machine = nic(machine, "ens1f0np0", "mlx5_core", 5, 4);
    disk(&mut machine, "nvme0n1", 90, "/var/lib/pgsql", Some("none"));
    machine
}

pub(crate) fn xeon_smt() -> Machine {
    let machine = plain(
        [2, 1, 20, 2],
        "ProLiant DL380 Gen10",
        "5.14.0-427.el9.x86_64",
    );
    let mut machine = nic(machine, "eno1", "i40e", 0, 16);
    disk(&mut machine, "nvme0n1", 60, "/var/lib/mysql", Some("none"));
    machine
}

pub(crate) fn graviton() -> Machine {
    let machine = plain(
        [1, 1, 64, 1],
        "c7g.16xlarge",
        "6.1.109-118.189.amzn2023.aarch64",
    );
    let mut machine = nic(machine, "ens5", "ena", 0, 8);
    machine.system.virtualisation = Some("virtual machine (Amazon)".to_owned());
    machine
}

pub(crate) fn small_vm() -> Machine {
    let mut machine = plain([1, 1, 2, 1], "", "6.1.0-56-amd64");
    machine.system.virtualisation = Some("virtual machine (KVM)".to_owned());
    machine
}

/// A container on a virtual machine of 64 CPUs, with a cpuset of version 2 and a quota.
pub(crate) fn container() -> Machine {
    let mut machine = plain([2, 1, 32, 1], "", "5.14.0-427.el9.x86_64");
    machine.system.virtualisation = Some("Docker container, virtual machine (KVM)".to_owned());
    machine.limits.cpus = vec![0, 1, 2, 3];
    machine.limits.nodes = vec![0];
    machine.limits.cpu_quota = Some("4".to_owned());
    machine.limits.memory_bytes = Some(8 * GIB);
    machine
}

/// Two nodes whose firmware reports all memory on the first one.
pub(crate) fn memoryless() -> Machine {
    let machine = plain([2, 1, 16, 1], "PowerEdge R740", "5.14.0-427.el9.x86_64");
    let mut machine = nic(machine, "eno1", "i40e", 0, 4);
    (machine.nodes[0].memory_bytes, machine.nodes[1].memory_bytes) = (128 * GIB, 0);
    machine.nodes[1].free_bytes = 0;
    machine.limits.nodes = vec![0];
    machine
}

/// Two nodes, and a third one of memory only (CXL).
pub(crate) fn memory_only() -> Machine {
    let machine = plain([2, 1, 16, 1], "PowerEdge R760", "6.12.9-100.fc40.x86_64");
    let mut machine = nic(machine, "eno1", "ice", 1, 4);
    let mut third = machine.nodes[1].clone();
    (third.id, third.cpus) = (2, Vec::new());
    machine.nodes.push(third);
    for (node, distances) in
        machine
            .nodes
            .iter_mut()
            .zip([[10, 21, 24], [21, 10, 14], [24, 14, 10]])
    {
        node.distances = distances.to_vec();
    }
    machine.limits.nodes = vec![0, 1, 2];
    machine
}

/// A slice of systemd with `AllowedCPUs=0-63` (cpuset of version 2) on a Kunpeng of 128 cores.
pub(crate) fn slice() -> Machine {
    let mut machine = kunpeng_with(128, 16);
    machine.limits.cpus = (0..64).collect();
    machine.limits.nodes = vec![0, 1];
    machine
}
