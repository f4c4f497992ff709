//! Which knob, advice or refusal stands for each setting of the procedures.

/// What covers a setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cover {
    Knob(&'static str),
    Advice(&'static str),
    Refused(&'static str),
}

use Cover::{Advice, Knob, Refused};

/// Every setting of host and placement, in the order of the procedures' summary: BIOS, kernel and
/// services, network, disks, placement.
pub const COVERAGE: &[(&str, &[Cover])] = &[
    ("factory defaults first", &[Advice("bios.defaults")]),
    ("Support Smmu", &[Advice("bios.smmu")]),
    ("CPU Prefetching", &[Advice("bios.prefetching")]),
    ("Die Interleaving", &[Advice("bios.die_interleaving")]),
    (
        "Power policy",
        &[Advice("bios.power"), Knob("cpu.governor")],
    ),
    ("sched_steal_node_limit", &[Advice("kernel.command_line")]),
    ("STEAL", &[Knob("sched.steal")]),
    (
        "irqbalance",
        &[
            Knob("irqbalance.active"),
            Knob("irqbalance.enabled"),
            Advice("irqbalance.ban"),
        ],
    ),
    ("numa_balancing", &[Knob("kernel.numa_balancing")]),
    (
        "THP enabled / defrag",
        &[Knob("thp.enabled"), Knob("thp.defrag")],
    ),
    ("firewalld, iptables", &[Refused("firewall")]),
    ("drop_caches", &[Advice("drop_caches")]),
    ("ipcrm all segments", &[Refused("ipcrm")]),
    (
        "hugepages 2M",
        &[Knob("hugepages.total"), Knob("hugepages.node")],
    ),
    ("vfio", &[Advice("vfio")]),
    (
        "port range",
        &[
            Knob("net.ipv4.ip_local_port_range"),
            Knob("net.ipv4.ip_local_reserved_ports"),
        ],
    ),
    ("TIME_WAIT", &[Knob("net.ipv4.tcp_tw_reuse")]),
    (
        "sysctl sets of rivals",
        &[
            Advice("sysctl.dead_keys"),
            Knob("net.core.somaxconn"),
            Knob("net.core.rmem_max"),
            Knob("kernel.sem"),
            Knob("vm.min_free_kbytes"),
            Knob("sched.migration_cost_ns"),
        ],
    ),
    ("queue count fw", &[Advice("nic.queue_template")]),
    ("queues in use", &[Knob("nic.queues")]),
    ("MySQL seeds queues", &[Knob("nic.queues")]),
    ("IRQ cores, generic", &[Knob("irq.affinity")]),
    ("IRQ cores, 128 cores, 16 queues", &[Knob("irq.affinity")]),
    ("IRQ cores, 96 cores, 16 queues", &[Knob("irq.affinity")]),
    ("IRQ cores, client 128, 48 queues", &[Knob("irq.affinity")]),
    ("IRQ cores MySQL 000", &[Knob("irq.affinity")]),
    ("IRQ cores MySQL 001", &[Knob("irq.affinity")]),
    (
        "offloads",
        &[
            Knob("nic.tso"),
            Knob("nic.lro"),
            Knob("nic.gro"),
            Knob("nic.gso"),
        ],
    ),
    ("coalesce", &[Knob("nic.rx_usecs"), Knob("nic.tx_usecs")]),
    ("NIC firmware", &[Advice("nic.firmware")]),
    (
        "rx/tx ring, MTU",
        &[Knob("nic.rx_ring"), Knob("nic.tx_ring"), Knob("nic.mtu")],
    ),
    (
        "rule from users: queues for each core",
        &[
            Knob("nic.queues"),
            Knob("nic.rps_cpus"),
            Knob("nic.xps_cpus"),
        ],
    ),
    ("nvme scheduler", &[Knob("disk.scheduler")]),
    ("XFS block", &[Advice("fs.xfs_block"), Refused("mkfs")]),
    ("4-disk split", &[Advice("fs.split")]),
    ("data mount", &[Advice("fs.data_disk"), Refused("mkfs")]),
    ("NVMe streams", &[Advice("nvme.streams")]),
    ("drive fill", &[Advice("nvme.fill")]),
    ("openGauss cores", &[Advice("place.opengauss")]),
    ("alternatives", &[Advice("place.alternatives")]),
    ("client box", &[Advice("place.client")]),
    ("or interleave", &[Advice("place.interleave")]),
    ("thread pool", &[Advice("place.thread_pool")]),
    ("official variant", &[Advice("place.wal_writer")]),
    ("2 MySQL", &[Advice("place.two_mysql")]),
    ("MySQL 003", &[Advice("place.one_node")]),
    ("binary page cache", &[Advice("place.binary")]),
    ("KVM guests", &[Advice("place.guests")]),
    ("Gazelle cores", &[Advice("place.gazelle")]),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{advice, knobs, refused};

    #[test]
    fn every_setting_has_a_knob_an_advice_or_a_refusal() {
        for (setting, covers) in COVERAGE {
            assert!(!covers.is_empty(), "{setting}");
            for cover in *covers {
                let exists = match cover {
                    Cover::Knob(id) => knobs::knob(id).is_some(),
                    Cover::Advice(id) => advice::entries().any(|entry| entry.id == *id),
                    Cover::Refused(id) => refused::find(id).is_some_and(|found| found.id == *id),
                };
                assert!(exists, "{setting}: {cover:?}");
            }
        }
    }

    #[test]
    fn every_refusal_has_an_alternative() {
        for asked in [
            "ipcrm",
            "mkfs.xfs",
            "firewalld",
            "root@%",
            "skip_grant_tables",
            "SSL",
        ] {
            let refused = refused::find(asked).unwrap();
            assert!(
                !refused.reason.is_empty() && !refused.instead.is_empty(),
                "{asked}"
            );
        }
        assert!(refused::find("vm.swappiness").is_none());
    }
}
