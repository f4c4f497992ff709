//! What is read of each machine.

use std::fs;

use saiga_topology::machine::HugePages;
use saiga_topology::process::{Process, ProcessError};
use saiga_topology::read::read;

use crate::recorded;
use crate::tree::Tree;

#[test]
fn cpus_and_nodes_of_kunpeng() {
    let machine = recorded::kunpeng().read();
    let system = &machine.system;
    assert_eq!(system.architecture, "aarch64");
    assert_eq!(system.kernel, "5.15.0-rc1");
    assert_eq!(
        system.cpu_model.as_deref(),
        Some("HiSilicon TaiShan v110 (Kunpeng 920)")
    );
    assert_eq!(system.product.as_deref(), Some("Huawei XA320 V2"));
    assert_eq!((system.page_bytes, system.iommu), (4096, false));
    assert_eq!((machine.cpus.len(), machine.cores().len()), (128, 128));
    let cpu = machine.cpu(37).unwrap();
    assert_eq!(
        (cpu.node, cpu.package, cpu.die, cpu.core),
        (1, Some(36), None, 37)
    );
    assert_eq!(cpu.cluster, machine.cpu(36).unwrap().cluster);
    assert_ne!(cpu.cluster, machine.cpu(40).unwrap().cluster);
    let distances: Vec<_> = machine
        .nodes
        .iter()
        .map(|node| node.distances.clone())
        .collect();
    assert_eq!(distances[0], [10, 16, 32, 33]);
    assert_eq!(distances[1], [16, 10, 25, 32]);
    assert_eq!(machine.nodes[2].cpus, (64..96).collect::<Vec<_>>());
    assert_eq!(machine.nodes[3].memory_bytes, 131_062_408 * 1024);
    let pool = HugePages {
        page_bytes: 2 << 20,
        total: 4096,
        free: 1024,
    };
    assert_eq!(machine.nodes[2].hugepages, [pool]);
    let shared: Vec<_> = machine
        .caches
        .iter()
        .filter(|cache| cache.level == 3)
        .collect();
    assert_eq!(
        (shared.len(), shared[1].bytes, shared[1].cpus[0]),
        (4, 32 << 20, 32)
    );
}

/// As on a virtual machine for Arm, whose firmware does not describe them.
#[test]
fn caches_without_a_size_are_left_out() {
    let tree = recorded::kunpeng();
    for cpu in 0..128 {
        let size = format!("/sys/devices/system/cpu/cpu{cpu}/cache/index3/size");
        fs::remove_file(tree.root().path(size)).unwrap();
    }
    let machine = tree.read();
    assert_eq!(machine.caches.len(), 3 * 128);
    assert!(machine.caches.iter().all(|cache| cache.level < 3));
}

#[test]
fn nic_and_nvme_of_kunpeng() {
    let machine = recorded::kunpeng().read();
    let [nic] = machine.nics.as_slice() else {
        panic!("{:?}", machine.nics)
    };
    assert_eq!((nic.driver.as_deref(), nic.node), (Some("hns3"), Some(0)));
    assert_eq!(
        (nic.rx_queues, nic.tx_queues, nic.speed_mbit_s),
        (16, 16, Some(25_000))
    );
    assert_eq!(nic.irqs, (300..316).collect::<Vec<_>>());
    let irq = machine.irq(305).unwrap();
    assert_eq!(irq.actions, ["hns3-0000:7d:00.0-TxRx-5"]);
    assert_eq!(
        (irq.effective.as_deref(), irq.node, irq.count),
        (Some([61].as_slice()), None, 10)
    );

    let [disk] = machine.disks.as_slice() else {
        panic!("{:?}", machine.disks)
    };
    assert_eq!(
        (disk.name.as_str(), disk.node, disk.queues),
        ("nvme0n1", Some(2), 4)
    );
    assert_eq!(disk.device.as_deref(), Some("0000:a1:00.0"));
    assert_eq!(disk.driver.as_deref(), Some("nvme"));
    assert_eq!(disk.model.as_deref(), Some("HWE56P443T2M005N"));
    assert_eq!(
        (disk.scheduler.as_deref(), disk.requests),
        (Some("none"), Some(1023))
    );
    assert_eq!(disk.irqs, [400, 401, 402, 403]);
    assert_eq!(
        disk.mounts,
        ["/boot", "/data sets"],
        "the second one through LVM"
    );
    assert_eq!(disk.bytes, 6_251_233_968 * 512);
    assert_eq!(machine.limits.cgroup_version, None);
    assert_eq!(machine.limits.nodes, [0, 1, 2, 3]);
}

#[test]
fn r910_with_nics_of_unknown_node() {
    let machine = recorded::r910().read();
    assert_eq!((machine.cpus.len(), machine.nodes.len()), (40, 4));
    assert_eq!(machine.nodes[1].cpus, [1, 5, 9, 13, 17, 21, 25, 29, 33, 37]);
    let names: Vec<_> = machine.nics.iter().map(|nic| nic.name.as_str()).collect();
    assert_eq!(
        names,
        ["eth0", "eth1", "eth2", "eth3"],
        "lo has no hardware"
    );
    assert_eq!(
        (machine.nics[3].node, machine.nics[3].irqs.as_slice()),
        (None, [46].as_slice())
    );
    let model = machine.system.cpu_model.as_deref();
    assert_eq!(model, Some("Intel(R) Xeon(R) CPU E7- 4870 @ 2.40GHz"));
}

#[test]
fn hybrid_cores_differ_in_performance_and_threads() {
    let machine = recorded::hybrid().read();
    let cores = machine.cores();
    assert_eq!(
        (cores.len(), &cores[&2], &cores[&15]),
        (14, &vec![2, 3], &vec![15])
    );
    let performance = |cpu| machine.cpu(cpu).unwrap().performance;
    assert_eq!(
        (performance(0), performance(19)),
        (Some(5_000_000), Some(3_900_000))
    );
}

#[test]
fn offline_cpus_are_present_without_a_core() {
    let machine = recorded::offline().read();
    let offline: Vec<_> = machine.cpus.iter().filter(|cpu| !cpu.is_online).collect();
    assert_eq!(
        offline.iter().map(|cpu| cpu.id).collect::<Vec<_>>(),
        [2, 5, 13, 14]
    );
    assert_eq!((offline[0].package, offline[0].core), (None, 2));
    let cores = machine.cores();
    assert_eq!((&cores[&1], &cores[&6]), (&vec![1, 9], &vec![6]));
    assert_eq!(machine.nodes[0].cpus.len(), 12);
    assert_eq!(machine.limits.cpus.len(), 12);
}

#[test]
fn nodes_of_memory_only_and_of_cpus_only() {
    let machine = recorded::memory_only().read();
    let of = |id: usize| {
        (
            machine.nodes[id].cpus.as_slice(),
            machine.nodes[id].memory_bytes,
        )
    };
    assert_eq!(of(2), ([].as_slice(), 8000 * 1024));
    assert_eq!(of(3), ([4, 5].as_slice(), 0));
    assert_eq!(machine.limits.nodes, [0, 1, 2]);
}

#[test]
fn a_vm_without_nodes_is_node_0() {
    let machine = recorded::small_vm().read();
    let [node] = machine.nodes.as_slice() else {
        panic!("{:?}", machine.nodes)
    };
    assert_eq!(
        (node.id, node.cpus.as_slice(), node.memory_bytes),
        (0, [0].as_slice(), 1 << 20)
    );
    assert_eq!(node.distances, [10]);
    let cpu = machine.cpu(0).unwrap();
    assert_eq!(
        (cpu.package, cpu.cluster, cpu.is_isolated),
        (None, None, false)
    );
    assert_eq!(
        machine.system.virtualisation.as_deref(),
        Some("virtual machine")
    );
    let [nic] = machine.nics.as_slice() else {
        panic!("{:?}", machine.nics)
    };
    assert_eq!(
        nic.device.as_deref(),
        Some("0000:00:03.0"),
        "one level above virtio2"
    );
    assert_eq!(nic.driver.as_deref(), Some("virtio_net"));
    assert_eq!(
        (nic.irqs.as_slice(), nic.is_up, nic.speed_mbit_s),
        ([37].as_slice(), true, None)
    );
    assert_eq!(machine.irq(37).unwrap().actions, ["virtio2-input.0"]);
}

#[test]
fn a_guest_without_acpi_is_a_virtual_machine() {
    let tree = recorded::kunpeng();
    tree.write("/proc/device-tree/compatible", "linux,dummy-virt\0");
    let virtualisation = tree.read().system.virtualisation;
    assert_eq!(virtualisation.as_deref(), Some("virtual machine"));
}

#[test]
fn limits_of_a_cgroup_of_version_2_include_those_of_its_parents() {
    let tree = recorded::hybrid();
    tree.write("/proc/self/cgroup", "0::/kubepods/pod1/db");
    tree.write(
        "/proc/self/mountinfo",
        "29 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw",
    );
    tree.write(
        "/proc/self/status",
        "Name:\tsaiga\nCpus_allowed_list:\t0-9\nMems_allowed_list:\t0",
    );
    let top = "/sys/fs/cgroup/kubepods";
    tree.files(
        top,
        &[("cpu.max", "250000 100000"), ("memory.max", "8589934592")],
    );
    tree.files(
        &format!("{top}/pod1"),
        &[("cpu.max", "400000 100000"), ("memory.max", "max")],
    );
    tree.files(
        &format!("{top}/pod1/db"),
        &[("cpuset.cpus.effective", "8-12"), ("cpu.max", "max 100000")],
    );
    let limits = tree.read().limits;
    assert_eq!(limits.cpus, [8, 9], "both the cpuset and the affinity");
    assert_eq!(
        (limits.cpu_quota.as_deref(), limits.memory_bytes),
        (Some("2.5"), Some(8 << 30))
    );
    assert_eq!(limits.cgroup_version, Some(2));
    let virtualisation = tree.read().system.virtualisation;
    assert_eq!(virtualisation.as_deref(), Some("Kubernetes container"));
}

#[test]
fn limits_of_cgroups_of_version_1_in_a_container() {
    let tree = recorded::memory_only();
    tree.write(
        "/proc/self/cgroup",
        "3:cpuset:/docker/7\n2:memory:/docker/7\n1:cpu,cpuacct:/docker/7\n0::/",
    );
    tree.write(
        "/proc/self/mountinfo",
        "1 1 0:1 /docker/7 /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset\n\
         2 1 0:2 /docker/7 /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n\
         3 1 0:3 /docker/7 /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n\
         4 1 0:4 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw",
    );
    let dir = "/sys/fs/cgroup";
    tree.write(
        &format!("{dir}/memory/memory.limit_in_bytes"),
        "9223372036854771712",
    );
    let files = [
        ("cpuset.effective_cpus", "1,3"),
        ("cpuset.effective_mems", "1"),
    ];
    tree.files(&format!("{dir}/cpuset"), &files);
    let files = [
        ("cpu.cfs_quota_us", "150000"),
        ("cpu.cfs_period_us", "100000"),
    ];
    tree.files(&format!("{dir}/cpu,cpuacct"), &files);
    let limits = tree.read().limits;
    assert_eq!((limits.cpus, limits.nodes), (vec![1, 3], vec![1]));
    assert_eq!(
        (limits.cpu_quota.as_deref(), limits.memory_bytes),
        (Some("1.5"), None)
    );
    assert_eq!(limits.cgroup_version, Some(1));
}

/// As on a recorded machine of eight Opterons.
#[test]
fn limits_of_a_cpuset_without_cgroups() {
    let tree = recorded::r910();
    tree.write("/proc/mounts", "none /dev/cpuset cpuset rw 0 0");
    tree.write("/proc/self/cpuset", "/dummy");
    tree.files(
        "/dev/cpuset/dummy",
        &[("cpus", "0-6,12-15"), ("mems", "1-2")],
    );
    let limits = tree.read().limits;
    assert_eq!((limits.cpus.len(), limits.nodes), (11, vec![1, 2]));
    assert_eq!(limits.cgroup_version, None);
}

/// A namespace with several paths belongs to a subsystem, not to a PCI function.
#[test]
fn multipath_nvme_is_found_through_its_controller() {
    let tree = recorded::memory_only();
    let controller = "/sys/devices/pci0000:00/0000:05:00.0";
    tree.write(&format!("{controller}/numa_node"), "1");
    tree.write(&format!("{controller}/msi_irqs/60"), "msix");
    tree.write(&format!("{controller}/nvme/nvme0/state"), "live");
    let subsystem = "/sys/devices/virtual/nvme-subsystem/nvme-subsys0";
    tree.link(
        &format!("{subsystem}/nvme0"),
        "../../../pci0000:00/0000:05:00.0/nvme/nvme0",
    );
    let disk = format!("{subsystem}/nvme0n1");
    tree.files(
        &disk,
        &[("size", "2048"), ("dev", "259:0"), ("hidden", "0")],
    );
    tree.link(&format!("{disk}/device"), "../../nvme-subsys0");
    tree.link(
        "/sys/class/block/nvme0n1",
        "../../devices/virtual/nvme-subsystem/nvme-subsys0/nvme0n1",
    );
    let path = format!("{controller}/nvme/nvme0/nvme0c0n1");
    tree.files(&path, &[("size", "2048"), ("hidden", "1")]);
    tree.link(
        "/sys/class/block/nvme0c0n1",
        "../../devices/pci0000:00/0000:05:00.0/nvme/nvme0/nvme0c0n1",
    );
    let machine = tree.read();
    let [disk] = machine.disks.as_slice() else {
        panic!("{:?}", machine.disks)
    };
    assert_eq!(disk.device.as_deref(), Some("0000:05:00.0"));
    assert_eq!(
        (disk.node, disk.irqs.as_slice()),
        (Some(1), [60].as_slice())
    );
}

#[test]
fn errors_name_the_file() {
    let empty = Tree::new();
    let error = read(&empty.root()).unwrap_err().to_string();
    assert!(
        error.ends_with("/sys/devices/system/cpu is missing: not the root of a machine"),
        "{error}"
    );

    for (name, text, message) in [
        (
            "/sys/devices/system/node/node1/distance",
            "16 10 25",
            "one distance for each node",
        ),
        (
            "/sys/devices/system/cpu/online",
            "0-x",
            "a list such as 0-3,8",
        ),
        (
            "/proc/interrupts",
            "  CPU0 CPU1\n 5: 1 x IO-APIC",
            "one number for each CPU",
        ),
        ("/proc/self/mountinfo", "22 1", "a mount"),
    ] {
        let tree = recorded::memory_only();
        tree.write(name, text);
        let error = read(&tree.root()).unwrap_err().to_string();
        let path = tree.root().path(name);
        let expected = format!("{} is damaged: ", path.display());
        assert!(
            error.starts_with(&expected) && error.ends_with(message),
            "{error}"
        );
    }
    let tree = recorded::memory_only();
    let file = tree.root().path("/proc/cpuinfo");
    fs::create_dir_all(&file).unwrap();
    let error = read(&tree.root()).unwrap_err().to_string();
    assert!(
        error.starts_with(&format!("cannot read {}: ", file.display())),
        "{error}"
    );
}

/// A process of two threads on a machine of four nodes; its library is on node 3 only.
pub(crate) fn with_process(tree: &Tree) {
    let dir = "/proc/4242";
    tree.files(
        dir,
        &[
            ("status", "Name:\tmysqld\nVmRSS:\t 20480 kB"),
            ("comm", "mysqld"),
            (
                "maps",
                "00400000-00500000 r-xp 00000000 08:01 1 /usr/sbin/mysqld\n\
                 00600000-00700000 rw-p 00100000 08:01 1 /usr/sbin/mysqld\n\
                 7f0000000000-7f0000100000 r-xp 00000000 08:01 2 /lib/lib a.so\n\
                 7f1000000000-7f1000200000 rw-p 00000000 00:00 0",
            ),
            (
                "numa_maps",
                "00400000 default file=/usr/sbin/mysqld mapped=20 N0=10 N2=10 kernelpagesize_kB=4\n\
                 00600000 default file=/usr/sbin/mysqld anon=4 dirty=4 N0=4 kernelpagesize_kB=4\n\
                 7f0000000000 default file=/lib/lib\\040a.so mapped=30 mapmax=9 N3=30 \
                 kernelpagesize_kB=4\n\
                 7f1000000000 interleave:0-3 file=/anon_hugepage\\040(deleted) huge anon=2 dirty=2 \
                 N1=2 kernelpagesize_kB=2048",
            ),
        ],
    );
    for (tid, name, cpus, last) in [
        (4242, "mysqld", "0-27,32-59", 5),
        (4243, "ib_io (rd)", "0-27,32-59", 40),
    ] {
        let rest = "0 ".repeat(35);
        let stat = format!("{tid} ({name}) S {rest}{last} 0 0");
        let status = format!("Name:\t{name}\nCpus_allowed_list:\t{cpus}");
        tree.files(
            &format!("{dir}/task/{tid}"),
            &[("status", &status), ("stat", &stat)],
        );
    }
}

#[test]
fn memory_and_text_of_a_process_by_node() {
    let tree = recorded::kunpeng();
    with_process(&tree);
    let process = Process::read(&tree.root(), 4242).unwrap();
    assert_eq!(
        (process.name.as_str(), process.resident_bytes),
        ("mysqld", 20 << 20)
    );
    let last: Vec<_> = process
        .threads
        .iter()
        .map(|thread| thread.last_cpu)
        .collect();
    assert_eq!(last, [5, 40]);
    assert_eq!(process.threads[1].name, "ib_io (rd)");
    assert_eq!(process.allowed().len(), 56);
    let memory = process.memory.unwrap();
    let expected = [
        (0, 14 * 4096),
        (1, 2 * 2048 * 1024),
        (2, 10 * 4096),
        (3, 30 * 4096),
    ];
    assert_eq!(memory, expected.into());
    let texts: Vec<_> = process
        .texts
        .iter()
        .map(|text| text.path.as_str())
        .collect();
    assert_eq!(texts, ["/lib/lib a.so", "/usr/sbin/mysqld"]);
    assert_eq!(
        process.texts[1].bytes,
        [(0, 10 * 4096), (2, 10 * 4096)].into()
    );
}

#[test]
fn a_process_on_a_kernel_without_numa_has_a_total_only() {
    let tree = recorded::small_vm();
    with_process(&tree);
    fs::remove_file(tree.root().path("/proc/4242/numa_maps")).unwrap();
    let process = Process::read(&tree.root(), 4242).unwrap();
    assert_eq!((process.memory, process.texts.len()), (None, 0));
    let error = Process::read(&tree.root(), 7).unwrap_err();
    assert_eq!(error.to_string(), "process 7 does not exist");
    tree.write("/proc/9/status", "Name:\tkworker");
    let error = Process::read(&tree.root(), 9).unwrap_err();
    assert!(
        matches!(error, ProcessError::NoMemory { pid: 9 }),
        "{error}"
    );
}
