//! The facts about one machine, as plain data.
//!
//! Numbers are those of the kernel. CPUs, nodes, devices and interrupts are sorted by number or
//! name. An unknown value is `None`, not zero.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// A machine at one moment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Machine {
    pub system: System,
    /// All present CPUs, offline ones included.
    pub cpus: Vec<Cpu>,
    /// One cache for each set of CPUs that share it.
    pub caches: Vec<Cache>,
    /// NUMA nodes that are online; at least one.
    pub nodes: Vec<Node>,
    pub nics: Vec<Nic>,
    pub disks: Vec<Disk>,
    /// Every line of `/proc/interrupts` with a number.
    pub irqs: Vec<Irq>,
    pub limits: Limits,
}

/// Hardware and kernel as a whole.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct System {
    /// As in `uname -m`: `x86_64`, `aarch64`.
    pub architecture: String,
    /// As in `uname -r`.
    pub kernel: String,
    /// Model of the CPUs; on Arm, implementer and part if there is no name.
    pub cpu_model: Option<String>,
    pub page_bytes: u64,
    pub command_line: String,
    /// Manufacturer and product, from DMI.
    pub product: Option<String>,
    /// The kind of virtual machine or container, if there is one.
    pub virtualisation: Option<String>,
    /// Whether any IOMMU translates addresses of devices.
    pub iommu: bool,
    pub hugepages: Vec<HugePages>,
    /// The selected word of `/sys/kernel/mm/transparent_hugepage/enabled`.
    pub transparent_hugepages: Option<String>,
}

/// Huge pages of one size.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct HugePages {
    pub page_bytes: u64,
    pub total: u64,
    pub free: u64,
}

/// A logical CPU.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cpu {
    pub id: u32,
    pub is_online: bool,
    /// In the kernel's list of isolated CPUs (`isolcpus=`).
    pub is_isolated: bool,
    /// An offline CPU counts to the first node if the kernel does not tell its node.
    pub node: u32,
    pub package: Option<u32>,
    pub die: Option<u32>,
    /// Number of the cluster; unique only in a package, as the kernel gives it.
    pub cluster: Option<u32>,
    /// The lowest CPU of the same core: CPUs with equal values are SMT siblings.
    pub core: u32,
    /// Relative performance (`cpu_capacity` on Arm, 1024 is the fastest), or the maximum frequency
    /// in kHz; differs on hybrid machines.
    pub performance: Option<u64>,
}

/// A cache.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cache {
    pub level: u32,
    /// `Data`, `Instruction` or `Unified`.
    pub kind: String,
    pub bytes: u64,
    pub cpus: Vec<u32>,
}

/// A NUMA node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Node {
    pub id: u32,
    /// Online CPUs; none for a node of memory only.
    pub cpus: Vec<u32>,
    /// 0 for a node without memory.
    pub memory_bytes: u64,
    pub free_bytes: u64,
    /// The firmware's distances (ACPI SLIT) to each node in [`Machine::nodes`], in their order; 10
    /// is local.
    pub distances: Vec<u32>,
    pub hugepages: Vec<HugePages>,
}

/// A network device with hardware behind it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Nic {
    pub name: String,
    pub driver: Option<String>,
    /// PCI address, or the name of another bus's device.
    pub device: Option<String>,
    pub node: Option<u32>,
    pub is_up: bool,
    pub speed_mbit_s: Option<u64>,
    pub mtu: Option<u32>,
    pub rx_queues: u32,
    pub tx_queues: u32,
    /// Interrupts of its device, by `msi_irqs`.
    pub irqs: Vec<u32>,
}

/// A disk, without partitions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Disk {
    pub name: String,
    pub model: Option<String>,
    pub driver: Option<String>,
    pub device: Option<String>,
    pub node: Option<u32>,
    pub bytes: u64,
    pub is_rotational: bool,
    /// Hardware queues.
    pub queues: u32,
    /// The selected scheduler.
    pub scheduler: Option<String>,
    pub requests: Option<u32>,
    pub irqs: Vec<u32>,
    /// Directories of its mounted file systems, partitions included.
    pub mounts: Vec<String>,
}

/// An interrupt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Irq {
    pub number: u32,
    /// Handler names, from `/proc/irq/N` or the end of the line in `/proc/interrupts`.
    pub actions: Vec<String>,
    /// CPUs to which it may be delivered (`smp_affinity_list`).
    pub affinity: Option<Vec<u32>>,
    /// CPUs to which it is delivered (`effective_affinity_list`).
    pub effective: Option<Vec<u32>>,
    pub node: Option<u32>,
    /// Total of all CPUs since boot.
    pub count: u64,
}

/// What this process may use.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// CPUs of its cpuset; all online CPUs without one.
    pub cpus: Vec<u32>,
    /// Nodes from which it may allocate memory.
    pub nodes: Vec<u32>,
    /// CPUs that its cgroup may use at the same time, from the CPU quota.
    pub cpu_quota: Option<String>,
    pub memory_bytes: Option<u64>,
    /// 1 or 2; `None` without cgroups.
    pub cgroup_version: Option<u32>,
}

impl Machine {
    #[must_use]
    pub fn cpu(&self, id: u32) -> Option<&Cpu> {
        self.cpus.iter().find(|cpu| cpu.id == id)
    }

    #[must_use]
    pub fn irq(&self, number: u32) -> Option<&Irq> {
        self.irqs.iter().find(|irq| irq.number == number)
    }

    /// The online CPUs of each core, keyed by the lowest CPU of the core.
    #[must_use]
    pub fn cores(&self) -> BTreeMap<u32, Vec<u32>> {
        let mut cores: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        for cpu in self.cpus.iter().filter(|cpu| cpu.is_online) {
            cores.entry(cpu.core).or_default().push(cpu.id);
        }
        cores
    }
}
