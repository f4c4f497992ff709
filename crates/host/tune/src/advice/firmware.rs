//! BIOS, and firmware of devices. None of it can be read from the running system.

use super::system::is_from;
use super::{Entry, has_driver, has_nvme, is_bare, is_kunpeng_server};
use crate::about::Risk;

const BIOS: &str = "procedure 004";

pub(super) const ENTRIES: &[Entry] = &[
    Entry {
        id: "bios.defaults",
        text: "Before the other BIOS settings, load the factory defaults (F9). Note RAID and boot \
               order first: they are lost.",
        check: "compare with the notes from before.",
        source: BIOS,
        risk: Risk::Reboot,
        applies: is_kunpeng_server,
    },
    Entry {
        id: "bios.smmu",
        text: "Disable Support Smmu (Advanced, MISC Config), or boot with iommu.passthrough=1. Do \
               not if devices are passed through to guests or Gazelle uses vfio with an IOMMU.",
        check: "/sys/class/iommu/ is empty.",
        source: "procedures 000 and 004; A-Tune",
        risk: Risk::TradesSafety,
        applies: |context| is_kunpeng_server(context) && context.machine.system.iommu,
    },
    Entry {
        id: "bios.prefetching",
        text: "Disable CPU Prefetching for random OLTP. Scans and analytical queries get slower.",
        check: "Redfish /redfish/v1/Systems/ID/Bios of the iBMC.",
        source: BIOS,
        risk: Risk::Reboot,
        applies: is_kunpeng_server,
    },
    Entry {
        id: "bios.die_interleaving",
        text: "Disable Die Interleaving, so that each die is a NUMA node.",
        check: "2 sockets of Kunpeng 920 have 4 nodes (lscpu).",
        source: BIOS,
        risk: Risk::Reboot,
        applies: |context| is_kunpeng_server(context) && context.machine.nodes.len() < 4,
    },
    Entry {
        id: "bios.power",
        text: "Choose the power policy Performance.",
        check: "the frequency of idle CPUs, or the governor in /sys/devices/system/cpu/cpufreq.",
        source: "A-Tune; gs_perfconfig",
        risk: Risk::Reboot,
        applies: |context| context.serves() && is_bare(context),
    },
    Entry {
        id: "nic.queue_template",
        text: "For more than 16 queues, load the template std_sh_4x25ge_dpdk_cfg_template0.ini \
               (64 queues) with ./hinicconfig hinic0 -f FILE and restart; the other direction \
               with std_sh_4x25ge_nic_cfg_template0.ini. IN500 5.1.0.SPC401 or newer is needed.",
        check: "ethtool -l shows the maximum.",
        source: BIOS,
        risk: Risk::Reboot,
        applies: |context| {
            let mut nics = context.machine.nics.iter();
            nics.any(|nic| nic.driver.as_deref() == Some("hinic") && nic.rx_queues <= 16)
        },
    },
    Entry {
        id: "nic.firmware",
        text: "Firmware 2.4.1.0 was faster than 2.5.0.0 with driver hinic 2.3.2.11: \
               hinicadm updatefw -i hinic0 -f Hi1822_nic_prd_1h_4x25G.bin, then restart. A \
               failure during the update can leave the device unusable.",
        check: "ethtool -i shows firmware-version.",
        source: BIOS,
        risk: Risk::Reboot,
        applies: |context| has_driver(context, "hinic"),
    },
    Entry {
        id: "nvme.streams",
        text: "Load nvme-core with streams=1 to use NVMe streams. Kernels from about 5.18 on have \
               no streams. A reload unloads the driver of the root disk: set it for the next boot.",
        check: "nvme dir-receive DEVICE -D 0 -O 1 -H.",
        source: "procedure 001 (write amplification -12 % with astream)",
        risk: Risk::Reboot,
        applies: |context| {
            let has_streams = !is_from(&context.machine.system.kernel, 5, 18);
            context.serves() && has_nvme(context) && has_streams
        },
    },
    Entry {
        id: "nvme.fill",
        text: "Measure with a disk that is filled to 60-70 % at the start; above 90 %, write \
               amplification dominates.",
        check: "df, and saiga waf or nvme get-log -i 0xc0.",
        source: "procedure 001",
        risk: Risk::Safe,
        applies: |context| context.serves() && has_nvme(context),
    },
];
