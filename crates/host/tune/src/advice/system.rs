//! Command line of the kernel, drivers, file systems, and habits of benchmarks.

use super::{Entry, has_nvme, is_bare};
use crate::about::Risk;
use crate::goal::Engine;
use crate::knob::Context;

pub(super) const ENTRIES: &[Entry] = &[
    Entry {
        id: "kernel.command_line",
        text: "On openEuler kernels, sched.steal needs sched_steal_node_limit=4 on the command \
               line: run grubby --update-kernel=ALL --args=sched_steal_node_limit=4 and restart. \
               GRUB of openEuler reads no drop-ins, so that a plan cannot set it.",
        check: "/proc/cmdline.",
        source: "procedures 000 and 001",
        risk: Risk::Reboot,
        applies: |context| {
            let system = &context.machine.system;
            let has_limit = system.command_line.contains("sched_steal_node_limit");
            context.serves_any(&[Engine::Mysql]) && system.kernel.contains("oe") && !has_limit
        },
    },
    Entry {
        id: "irqbalance.ban",
        text: "Instead of stopping irqbalance, exclude the placed interrupts: add --banirq=N for \
               each to IRQBALANCE_ARGS in /etc/sysconfig/irqbalance or /etc/default/irqbalance. \
               Some versions moved banned interrupts all the same (irqbalance issues 297, 202).",
        check: "/proc/irq/N/smp_affinity_list after a minute.",
        source: "man 1 irqbalance",
        risk: Risk::Safe,
        applies: |context| {
            let runs = context.readings.processes.contains("irqbalance");
            runs && !context.goal.placement.irqs.is_empty()
        },
    },
    Entry {
        id: "drop_caches",
        text: "Writing 3 to /proc/sys/vm/drop_caches makes runs of a benchmark comparable. In \
               production, it only makes the caches cold: it is not part of a plan.",
        check: "Cached in /proc/meminfo.",
        source: "procedures 001 and 004",
        risk: Risk::Safe,
        applies: |_| false,
    },
    Entry {
        id: "vfio",
        text: "Gazelle needs a device bound to vfio-pci (ip link set DEVICE down; \
               dpdk-devbind -b vfio-pci ADDRESS). The kernel loses this device: use a device that \
               carries no login session. Saiga itself does not need vfio.",
        check: "readlink /sys/bus/pci/devices/ADDRESS/driver.",
        source: "procedures 000 and 002",
        risk: Risk::TradesSafety,
        applies: |_| false,
    },
    Entry {
        id: "fs.noatime",
        text: "Mount file systems of databases with noatime, or at least relatime (the default).",
        check: "/proc/mounts.",
        source: "man 8 mount",
        risk: Risk::Restart,
        applies: |context| context.serves() && has_mounts(context),
    },
    Entry {
        id: "fs.xfs_block",
        text: "Blocks of 8192 bytes suit openGauss pages (mkfs.xfs -b size=8192). Making a file \
               system destroys its data: only for new disks.",
        check: "xfs_info shows bsize.",
        source: "procedure 004; measured: does not mount on 4 KiB pages before Linux 6.12",
        risk: Risk::DestroysData,
        applies: |context| context.serves_any(&[Engine::OpenGauss]) && mounts_large_blocks(context),
    },
    Entry {
        id: "fs.split",
        text: "With several disks, put data, pg_xlog and tablespaces on a disk each \
               (gs_initdb -X, CREATE TABLESPACE ... LOCATION). Moving them under a running server \
               crashes it.",
        check: "readlink of the directories.",
        source: "procedure 004",
        risk: Risk::Restart,
        applies: |context| {
            let engines = [Engine::OpenGauss, Engine::Postgres];
            context.machine.disks.len() > 1 && context.serves_any(&engines)
        },
    },
    Entry {
        id: "fs.data_disk",
        text: "Give the data directory a disk of its own, mounted at boot by UUID.",
        check: "findmnt of the data directory.",
        source: "procedures 000 and 001",
        risk: Risk::DestroysData,
        applies: |context| {
            let is_free = context
                .machine
                .disks
                .iter()
                .any(|disk| disk.mounts.is_empty());
            context.serves() && is_free && has_nvme(context)
        },
    },
    Entry {
        id: "sysctl.dead_keys",
        text: "Lists of other tools name keys that this kernel does not have \
               (net.ipv4.tcp_tw_recycle until 4.12, kernel.sched_* until 5.13): a plan sets only \
               files that exist.",
        check: "ls /proc/sys.",
        source: "gs_checkos check_list.conf; A-Tune profiles",
        risk: Risk::Safe,
        applies: |_| false,
    },
    Entry {
        id: "disk.io_poll",
        text: "Polled queues of NVMe are set when the driver is loaded (nvme.poll_queues=N); \
               queue/io_poll cannot be written then.",
        check: "/sys/block/DISK/queue/io_poll.",
        source: "Linux block/queue-sysfs.rst; measured: EINVAL",
        risk: Risk::Reboot,
        applies: |_| false,
    },
    Entry {
        id: "cpu.smt",
        text: "SMT siblings share the units of a core. Measure with and without the siblings in \
               the CPU list of the database before turning SMT off.",
        check: "/sys/devices/system/cpu/smt/active.",
        source: "Linux networking/scaling.rst; admin-guide/hw-vuln",
        risk: Risk::Reboot,
        applies: |context| {
            let mut cores = context.machine.cores().into_values();
            context.serves() && is_bare(context) && cores.any(|core| core.len() > 1)
        },
    },
];

fn has_mounts(context: &Context) -> bool {
    let mut disks = context.machine.disks.iter();
    disks.any(|disk| !disk.mounts.is_empty())
}

/// Whether XFS can mount blocks of 8 KiB: pages are as large, or Linux is 6.12 or newer.
pub(super) fn mounts_large_blocks(context: &Context) -> bool {
    let system = &context.machine.system;
    system.page_bytes >= 8192 || is_from(&system.kernel, 6, 12)
}

pub(super) fn is_from(kernel: &str, major: u32, minor: u32) -> bool {
    let mut numbers = kernel
        .split(['.', '-'])
        .map_while(|part| part.parse::<u32>().ok());
    let (found_major, found_minor) = (numbers.next(), numbers.next());
    (found_major, found_minor) >= (Some(major), Some(minor))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_of_kernels_are_compared_by_number() {
        for (kernel, expected) in [
            ("6.12.0", true),
            ("6.18.44-fc", true),
            ("7.0-rc1", true),
            ("6.1.0-56-amd64", false),
            ("5.10.0-216.oe2203", false),
            ("", false),
        ] {
            assert_eq!(is_from(kernel, 6, 12), expected, "{kernel}");
        }
    }
}
