//! A tree of files in a temporary directory, from a short description.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use saiga_process::root::Root;
use saiga_topology::machine::Machine;
use saiga_topology::read::read;

/// A root with `/proc` and `/sys`.
pub(crate) struct Tree(tempfile::TempDir);

/// The value of a CPU.
pub(crate) type OfCpu = fn(u32) -> String;

/// CPUs, nodes and caches of a machine.
pub(crate) struct Layout<'a> {
    pub(crate) cpus: u32,
    /// Total and free KiB, and the distances, of each node.
    pub(crate) nodes: &'a [(u64, u64, &'a str)],
    pub(crate) node: fn(u32) -> usize,
    /// Files of `topology/`, such as `physical_package_id`.
    pub(crate) topology: &'a [(&'a str, OfCpu)],
    /// Level, type, size, and the list of CPUs that share it.
    pub(crate) caches: &'a [(u32, &'a str, &'a str, OfCpu)],
}

impl Tree {
    pub(crate) fn new() -> Self {
        // Thousands of small files are created faster in memory.
        let in_memory = tempfile::tempdir_in("/dev/shm");
        Self(in_memory.unwrap_or_else(|_| tempfile::tempdir().unwrap()))
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    pub(crate) fn root(&self) -> Root {
        Root::at(self.path())
    }

    pub(crate) fn read(&self) -> Machine {
        read(&self.root()).unwrap()
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        let path = self.root().path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, format!("{text}\n")).unwrap();
    }

    /// Files of one directory.
    pub(crate) fn files(&self, dir: &str, files: &[(&str, &str)]) {
        for (name, text) in files {
            self.write(&format!("{dir}/{name}"), text);
        }
    }

    pub(crate) fn link(&self, name: &str, target: &str) {
        let path = self.root().path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        symlink(target, path).unwrap();
    }

    pub(crate) fn layout(&self, layout: &Layout) {
        let all = list(0..layout.cpus);
        self.files(
            "/sys/devices/system/cpu",
            &[("present", &all), ("online", &all)],
        );
        for cpu in 0..layout.cpus {
            let dir = format!("/sys/devices/system/cpu/cpu{cpu}");
            for (name, value) in layout.topology {
                self.write(&format!("{dir}/topology/{name}"), &value(cpu));
            }
            for (index, (level, kind, size, shared)) in layout.caches.iter().enumerate() {
                let level = level.to_string();
                let files = [("level", level.as_str()), ("type", kind), ("size", size)];
                self.files(&format!("{dir}/cache/index{index}"), &files);
                let shared = shared(cpu);
                self.write(
                    &format!("{dir}/cache/index{index}/shared_cpu_list"),
                    &shared,
                );
            }
        }
        for (id, (total, free, distances)) in layout.nodes.iter().enumerate() {
            let dir = format!("/sys/devices/system/node/node{id}");
            let cpus = list((0..layout.cpus).filter(|cpu| (layout.node)(*cpu) == id));
            let meminfo = format!("Node {id} MemTotal:  {total} kB\nNode {id} MemFree:  {free} kB");
            self.files(
                &dir,
                &[
                    ("cpulist", &cpus),
                    ("meminfo", &meminfo),
                    ("distance", distances),
                ],
            );
        }
    }

    /// A PCI network device with as many queues in each direction, and its interrupts.
    pub(crate) fn nic(&self, name: &str, driver: &str, address: &str, node: i32, queues: u32) {
        let device = format!("/sys/devices/pci0000:00/{address}");
        self.write(&format!("{device}/numa_node"), &node.to_string());
        self.link(
            &format!("{device}/driver"),
            &format!("../../../bus/pci/drivers/{driver}"),
        );
        let net = format!("{device}/net/{name}");
        self.files(
            &net,
            &[("operstate", "up"), ("speed", "25000"), ("mtu", "1500")],
        );
        self.link(&format!("{net}/device"), &format!("../../../{address}"));
        for queue in 0..queues {
            self.write(&format!("{net}/queues/rx-{queue}/rps_cpus"), "0");
            self.write(&format!("{net}/queues/tx-{queue}/xps_cpus"), "0");
        }
        let target = format!("../../devices/pci0000:00/{address}/net/{name}");
        self.link(&format!("/sys/class/net/{name}"), &target);
    }

    /// Interrupts of a PCI device: number, handler and CPU of each.
    pub(crate) fn irqs(&self, address: &str, irqs: &[(u32, String, String)]) {
        for (number, handler, cpu) in irqs {
            self.write(
                &format!("/sys/devices/pci0000:00/{address}/msi_irqs/{number}"),
                "msix",
            );
            let dir = format!("/proc/irq/{number}");
            let files = [
                ("smp_affinity_list", cpu.as_str()),
                ("effective_affinity_list", cpu),
            ];
            self.files(&dir, &files);
            self.write(&format!("{dir}/node"), "-1");
            fs::create_dir(self.root().path(format!("{dir}/{handler}"))).unwrap();
        }
    }

    /// `/proc/interrupts` with one line for each of `irqs`, each delivered 10 times.
    pub(crate) fn interrupts(&self, cpus: u32, irqs: &[(u32, String, String)]) {
        let header: String = (0..cpus).map(|cpu| format!("  CPU{cpu}")).collect();
        let mut text = format!("     {header}\n");
        for (number, handler, _) in irqs {
            let zeros = " 0".repeat(cpus as usize - 1);
            text.push_str(&format!("{number}: 10{zeros}  ITS-MSI 0 Edge  {handler}\n"));
        }
        text.push_str("NMI: 0 Non-maskable interrupts");
        self.write("/proc/interrupts", &text);
    }
}

/// CPUs separated by commas.
pub(crate) fn list(cpus: impl IntoIterator<Item = u32>) -> String {
    cpus.into_iter()
        .map(|cpu| cpu.to_string())
        .collect::<Vec<_>>()
        .join(",")
}
