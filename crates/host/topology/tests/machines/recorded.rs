//! Machines with the facts of recorded ones (test data of hwloc), and added devices.

use crate::tree::{Layout, Tree, list};

fn of(size: u32, cpu: u32) -> String {
    let first = cpu / size * size;
    format!("{first}-{}", first + size - 1)
}

/// Huawei XA320 V2: Kunpeng 920, 2 packages of 2 nodes of 8 clusters of 4 cores. Added: a NIC of 16
/// queues whose interrupts are on the last four CPUs of each node, and an NVMe drive on node 2.
pub(crate) fn kunpeng() -> Tree {
    let tree = Tree::new();
    tree.layout(&Layout {
        cpus: 128,
        nodes: &[
            (131_732_940, 130_167_340, "10 16 32 33"),
            (132_117_940, 131_884_112, "16 10 25 32"),
            (132_117_936, 77_430_888, "32 25 10 16"),
            (131_062_408, 125_844_388, "33 32 16 10"),
        ],
        node: |cpu| cpu as usize / 32,
        topology: &[
            ("physical_package_id", |cpu| {
                if cpu < 64 { "36" } else { "8442" }.to_owned()
            }),
            ("die_id", |_| "-1".to_owned()),
            ("cluster_id", |cpu| (10 + cpu / 4 * 130).to_string()),
            ("core_id", |cpu| cpu.to_string()),
            ("thread_siblings_list", |cpu| cpu.to_string()),
        ],
        caches: &[
            (1, "Data", "64K", |cpu| cpu.to_string()),
            (1, "Instruction", "64K", |cpu| cpu.to_string()),
            (2, "Unified", "512K", |cpu| cpu.to_string()),
            (3, "Unified", "32768K", |cpu| of(32, cpu)),
        ],
    });
    for cpu in 0..128 {
        tree.write(
            &format!("/sys/devices/system/cpu/cpu{cpu}/cpu_capacity"),
            "1024",
        );
    }
    tree.files(
        "/proc",
        &[
            (
                "version",
                "Linux version 5.15.0-rc1 (root@ceph1) (gcc 9.3.1) #313 SMP",
            ),
            (
                "cpuinfo",
                "processor\t: 0\nCPU implementer\t: 0x48\nCPU part\t: 0xd01\n",
            ),
            ("cmdline", "iommu.passthrough=1 root=/dev/sda1 rw ip=dhcp"),
        ],
    );
    tree.files(
        "/sys/class/dmi/id",
        &[("sys_vendor", "Huawei"), ("product_name", "XA320 V2 ")],
    );
    tree.files(
        "/sys/devices/system/node/node2/hugepages/hugepages-2048kB",
        &[("nr_hugepages", "4096"), ("free_hugepages", "1024")],
    );
    devices(&tree);
    tree
}

fn devices(tree: &Tree) {
    let (nic, disk) = ("0000:7d:00.0", "0000:a1:00.0");
    tree.nic("eth0", "hns3", nic, 0, 16);
    let of_nic = |queue: u32| {
        let cpu = queue % 4 * 32 + 28 + queue / 4;
        (
            300 + queue,
            format!("hns3-{nic}-TxRx-{queue}"),
            cpu.to_string(),
        )
    };
    let of_nic: Vec<_> = (0..16).map(of_nic).collect();
    let of_disk = |queue: u32| {
        let cpus = list(queue * 32..queue * 32 + 32);
        (400 + queue, format!("nvme0q{}", queue + 1), cpus)
    };
    let of_disk: Vec<_> = (0..4).map(of_disk).collect();
    tree.irqs(nic, &of_nic);
    nvme(tree, disk, 2, 4);
    tree.irqs(disk, &of_disk);
    tree.interrupts(128, &[of_nic, of_disk].concat());
}

/// An NVMe drive with two partitions, of which the second one is mounted through LVM.
fn nvme(tree: &Tree, address: &str, node: u32, queues: u32) {
    let device = format!("/sys/devices/pci0000:00/{address}");
    tree.write(&format!("{device}/numa_node"), &node.to_string());
    tree.link(&format!("{device}/driver"), "../../../bus/pci/drivers/nvme");
    let disk = format!("{device}/nvme/nvme0/nvme0n1");
    tree.write(&format!("{device}/nvme/nvme0/model"), "HWE56P443T2M005N   ");
    tree.link(&format!("{disk}/device"), "../../nvme0");
    tree.files(
        &disk,
        &[("dev", "259:0"), ("size", "6251233968"), ("hidden", "0")],
    );
    tree.files(
        &format!("{disk}/queue"),
        &[
            ("rotational", "0"),
            ("scheduler", "[none] mq-deadline"),
            ("nr_requests", "1023"),
        ],
    );
    for queue in 0..queues {
        tree.write(&format!("{disk}/mq/{queue}/cpu_list"), "0");
    }
    for (part, holder) in [("1", None), ("2", Some("dm-0"))] {
        let part = format!("nvme0n1p{part}");
        let number = if holder.is_some() { "259:2" } else { "259:1" };
        tree.files(
            &format!("{disk}/{part}"),
            &[("dev", number), ("partition", "1")],
        );
        let target = format!("../../devices/pci0000:00/{address}/nvme/nvme0/nvme0n1/{part}");
        tree.link(&format!("/sys/class/block/{part}"), &target);
        if let Some(holder) = holder {
            let target = format!("../../../../virtual/block/{holder}");
            tree.link(&format!("{disk}/{part}/holders/{holder}"), &target);
        }
    }
    tree.files(
        "/sys/devices/virtual/block/dm-0",
        &[("dev", "253:0"), ("size", "100")],
    );
    tree.link("/sys/class/block/dm-0", "../../devices/virtual/block/dm-0");
    let target = format!("../../devices/pci0000:00/{address}/nvme/nvme0/nvme0n1");
    tree.link("/sys/class/block/nvme0n1", &target);
    tree.write(
        "/proc/self/mountinfo",
        "22 1 259:1 / /boot rw - ext4 /dev/nvme0n1p1 rw\n\
         23 1 253:0 / /data\\040sets rw - xfs /dev/mapper/vg-data rw",
    );
}

/// Dell R910: four Xeon E7-4870 of 10 cores, one node each, CPUs dealt out in turn; NICs without a
/// node whose only interrupt is in the file `irq`.
pub(crate) fn r910() -> Tree {
    let tree = Tree::new();
    let memory = 134_217_728;
    let nodes = [
        (134_204_252, 100_000_000, "10 20 20 20"),
        (memory, 100_000_000, "20 10 20 20"),
        (memory, 100_000_000, "20 20 10 20"),
        (memory, 100_000_000, "20 20 20 10"),
    ];
    tree.layout(&Layout {
        cpus: 40,
        nodes: &nodes,
        node: |cpu| cpu as usize % 4,
        topology: &[
            ("physical_package_id", |cpu| (cpu % 4).to_string()),
            ("core_id", |cpu| (cpu / 4).to_string()),
            ("thread_siblings_list", |cpu| cpu.to_string()),
        ],
        caches: &[
            (1, "Data", "32K", |cpu| cpu.to_string()),
            (2, "Unified", "256K", |cpu| cpu.to_string()),
            (3, "Unified", "30720K", |cpu| {
                list((0..10).map(|step| cpu % 4 + step * 4))
            }),
        ],
    });
    tree.write(
        "/proc/cpuinfo",
        "model name\t: Intel(R) Xeon(R) CPU E7- 4870  @ 2.40GHz\nflags : lm",
    );
    let id = [
        ("sys_vendor", "Dell Inc."),
        ("product_name", "PowerEdge R910"),
    ];
    tree.files("/sys/class/dmi/id", &id);
    for (name, address, irq) in [
        ("eth0", "0000:02:00.0", "34"),
        ("eth1", "0000:02:00.1", "44"),
        ("eth2", "0000:03:00.0", "35"),
        ("eth3", "0000:03:00.1", "46"),
    ] {
        tree.nic(name, "bnx2", address, -1, 8);
        tree.write(&format!("/sys/devices/pci0000:00/{address}/irq"), irq);
    }
    tree.write("/sys/devices/virtual/net/lo/mtu", "65536");
    tree.link("/sys/class/net/lo", "../../devices/virtual/net/lo");
    tree
}

/// An i7-1370P: 6 performance cores of 2 threads and 8 efficiency cores in clusters of 4.
pub(crate) fn hybrid() -> Tree {
    let tree = Tree::new();
    tree.layout(&Layout {
        cpus: 20,
        nodes: &[(31_457_280, 20_971_520, "10")],
        node: |_| 0,
        topology: &[
            ("physical_package_id", |_| "0".to_owned()),
            ("cluster_id", |cpu| {
                if cpu < 12 {
                    cpu / 2 * 8
                } else {
                    48 + (cpu - 12) / 4 * 8
                }
                .to_string()
            }),
            ("thread_siblings_list", |cpu| {
                if cpu < 12 {
                    of(2, cpu)
                } else {
                    cpu.to_string()
                }
            }),
        ],
        caches: &[
            (1, "Data", "48K", |cpu| {
                if cpu < 12 {
                    of(2, cpu)
                } else {
                    cpu.to_string()
                }
            }),
            (2, "Unified", "2048K", |cpu| {
                if cpu < 12 { of(2, cpu) } else { of(4, cpu) }
            }),
            (3, "Unified", "24576K", |_| "0-19".to_owned()),
        ],
    });
    for cpu in 0..20 {
        let khz = if cpu < 12 { "5000000" } else { "3900000" };
        tree.write(
            &format!("/sys/devices/system/cpu/cpu{cpu}/cpufreq/cpuinfo_max_freq"),
            khz,
        );
    }
    tree
}

/// Four packages of two cores of two threads, recorded by an old kernel: no lists, and CPUs 2, 5,
/// 13 and 14 are offline.
pub(crate) fn offline() -> Tree {
    let tree = Tree::new();
    for cpu in 0..16_u32 {
        let dir = format!("/sys/devices/system/cpu/cpu{cpu}");
        if [2, 5, 13, 14].contains(&cpu) {
            tree.write(&format!("{dir}/online"), "0");
            continue;
        }
        let sibling = 1_u32 << (cpu % 8) | 1 << (cpu % 8 + 8);
        tree.write(
            &format!("{dir}/topology/thread_siblings"),
            &format!("00000000,{sibling:08x}"),
        );
        tree.write(
            &format!("{dir}/topology/physical_package_id"),
            &(cpu % 4).to_string(),
        );
    }
    let node = "/sys/devices/system/node/node0";
    tree.files(
        node,
        &[
            ("cpumap", "0000ffff"),
            ("distance", "10"),
            ("meminfo", "Node 0 MemTotal: 16 kB"),
        ],
    );
    tree
}

/// Two nodes, and a third one of memory only; a fourth one has CPUs but no memory.
pub(crate) fn memory_only() -> Tree {
    let tree = Tree::new();
    let distances = ["10 20 30 20", "20 10 30 20", "30 30 10 30", "20 20 30 10"];
    tree.layout(&Layout {
        cpus: 6,
        nodes: &[
            (1000, 500, distances[0]),
            (1000, 500, distances[1]),
            (8000, 8000, distances[2]),
            (0, 0, distances[3]),
        ],
        node: |cpu| if cpu < 4 { cpu as usize / 2 } else { 3 },
        topology: &[("physical_package_id", |cpu| (cpu / 2).to_string())],
        caches: &[],
    });
    tree.write("/sys/devices/system/node/online", "0-3");
    tree
}

/// A virtual machine with one CPU, a kernel without NUMA, and virtio devices.
pub(crate) fn small_vm() -> Tree {
    let tree = Tree::new();
    let cpus = "/sys/devices/system/cpu";
    tree.files(cpus, &[("present", "0"), ("online", "0"), ("isolated", "")]);
    let topology = [
        ("physical_package_id", "-1"),
        ("cluster_id", "65535"),
        ("core_id", "0"),
    ];
    tree.files(&format!("{cpus}/cpu0/topology"), &topology);
    tree.files(
        "/proc",
        &[
            ("cpuinfo", "model name\t: Some CPU\nflags\t: lm hypervisor"),
            ("meminfo", "MemTotal:  1024 kB\nMemFree:  512 kB"),
            ("sys/kernel/osrelease", "6.1.0"),
            ("sys/kernel/arch", "x86_64"),
            (
                "interrupts",
                "   CPU0\n 37:  5  PCI-MSIX 0-edge  virtio2-input.0\nERR:  0",
            ),
        ],
    );
    let device = "/sys/devices/pci0000:00/0000:00:03.0";
    tree.write(&format!("{device}/numa_node"), "-1");
    tree.write(&format!("{device}/msi_irqs/37"), "msix");
    let net = format!("{device}/virtio2/net/eth0");
    tree.files(
        &net,
        &[
            ("operstate", "unknown"),
            ("flags", "0x1003"),
            ("speed", "-1"),
        ],
    );
    tree.link(&format!("{net}/device"), "../../../virtio2");
    tree.link(
        &format!("{device}/virtio2/driver"),
        "../../../../bus/virtio/drivers/virtio_net",
    );
    tree.link(
        "/sys/class/net/eth0",
        "../../devices/pci0000:00/0000:00:03.0/virtio2/net/eth0",
    );
    tree
}
