//! Machines of tests, described by their shape. The integration tests include this file too.

use saiga_topology::machine::{Cpu, HugePages, Irq, Limits, Machine, Nic, Node, System};

/// A symmetric machine.
pub(crate) struct Shape {
    pub(crate) packages: u32,
    /// Nodes of each package.
    pub(crate) nodes: u32,
    /// Cores of each node.
    pub(crate) cores: u32,
    /// Cores of each cluster; 0 without clusters.
    pub(crate) cluster: u32,
    /// CPUs of each core.
    pub(crate) threads: u32,
}

/// How CPUs are numbered.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Order {
    /// Node by node; the second siblings have numbers behind all first ones.
    Nodes,
    /// Node by node, siblings side by side.
    Siblings,
    /// A CPU of each node in turn; the second siblings have numbers behind all first ones.
    InTurn,
}

/// Kunpeng 920 of 128 cores, as in `128arm-2pa2n8cluster4co`.
pub(crate) const KUNPENG_128: Shape = Shape {
    packages: 2,
    nodes: 2,
    cores: 32,
    cluster: 4,
    threads: 1,
};
/// Kunpeng 920-4826 of 96 cores.
pub(crate) const KUNPENG_96: Shape = Shape {
    cores: 24,
    ..KUNPENG_128
};

impl Shape {
    pub(crate) fn machine(&self) -> Machine {
        self.numbered(Order::Nodes)
    }

    pub(crate) fn numbered(&self, order: Order) -> Machine {
        let nodes = self.packages * self.nodes;
        let cores = nodes * self.cores;
        let cpu = |id: u32| {
            let first = id % cores;
            let (core, node) = match order {
                Order::Nodes => (first, first / self.cores),
                Order::Siblings => (id - id % self.threads, id / self.threads / self.cores),
                Order::InTurn => (first, first % nodes),
            };
            let package = node / self.nodes;
            let in_package = core % (self.nodes * self.cores);
            Cpu {
                id,
                is_online: true,
                is_isolated: false,
                node,
                package: Some(package),
                die: None,
                cluster: in_package.checked_div(self.cluster),
                core,
                performance: None,
            }
        };
        self.with_cpus((0..cores * self.threads).map(cpu).collect())
    }

    fn with_cpus(&self, cpus: Vec<Cpu>) -> Machine {
        let nodes = self.packages * self.nodes;
        let hugepages = vec![HugePages {
            page_bytes: 2 << 20,
            total: 0,
            free: 0,
        }];
        let node = |id: u32| Node {
            id,
            cpus: cpus
                .iter()
                .filter(|cpu| cpu.node == id)
                .map(|cpu| cpu.id)
                .collect(),
            memory_bytes: 64 << 30,
            free_bytes: 48 << 30,
            distances: (0..nodes)
                .map(
                    |other| match (other == id, other / self.nodes == id / self.nodes) {
                        (true, _) => 10,
                        (_, true) => 16,
                        (_, false) => 32,
                    },
                )
                .collect(),
            hugepages: hugepages.clone(),
        };
        Machine {
            system: System {
                architecture: "aarch64".to_owned(),
                kernel: "6.6.0".to_owned(),
                cpu_model: None,
                page_bytes: 4096,
                command_line: String::new(),
                product: None,
                virtualisation: None,
                iommu: false,
                hugepages: hugepages.clone(),
                transparent_hugepages: Some("always".to_owned()),
            },
            caches: Vec::new(),
            nodes: (0..nodes).map(node).collect(),
            nics: Vec::new(),
            disks: Vec::new(),
            irqs: Vec::new(),
            limits: Limits {
                cpus: cpus.iter().map(|cpu| cpu.id).collect(),
                nodes: (0..nodes).collect(),
                cpu_quota: None,
                memory_bytes: None,
                cgroup_version: Some(2),
            },
            cpus,
        }
    }
}

/// Adds a device of `queues` queues with one interrupt each. Interrupts may go to every CPU.
pub(crate) fn with_nic(mut machine: Machine, name: &str, node: u32, queues: u32) -> Machine {
    let first = 100 * (1 + u32::try_from(machine.nics.len()).unwrap());
    let irqs: Vec<u32> = (first..first + queues).collect();
    machine.irqs.extend(irqs.iter().map(|number| Irq {
        number: *number,
        actions: vec![format!("{name}-{number}")],
        affinity: Some(machine.limits.cpus.clone()),
        effective: None,
        node: Some(node),
        count: 0,
    }));
    machine.nics.push(Nic {
        name: name.to_owned(),
        driver: Some("hinic".to_owned()),
        device: None,
        node: Some(node),
        is_up: true,
        speed_mbit_s: Some(25_000),
        mtu: Some(1500),
        rx_queues: queues,
        tx_queues: queues,
        irqs,
    });
    machine
}
