//! The keys of `lstack.conf`, and what becomes of each.
//!
//! Source: the table of parsers in Gazelle's `lstack_cfg.c`, 39 keys; keys of other versions are in
//! [`OTHERS`].

/// What becomes of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    /// It is translated.
    Translated,
    /// It has no meaning here, for this reason.
    Without(&'static str),
}

use Fate::{Translated, Without};

const PROCESSES: &str = "one gateway serves any number of processes";
const BATCHES: &str = "each worker takes what has arrived, in batches of its own size";
const MEMORY: &str = "buffers of connections are rings; tcp.buffer and tcp.memory limit them";
const BONDS: &str = "write a bond of DPDK in place of mac: vdev = \
                     \"net_bonding0,mode=MODE,member=PCI,member=PCI\"";

/// The 39 keys.
pub(super) const KEYS: [(&str, Fate); 39] = [
    ("dpdk_args", Translated),
    (
        "use_ltran",
        Without("ltran is not needed: one gateway serves any number of processes"),
    ),
    (
        "stack_thread_mode",
        Without("workers are threads of the gateway, not of the application"),
    ),
    ("num_cpus", Translated),
    (
        "stack_num",
        Without("workers.cpus sets the number of workers and their CPUs"),
    ),
    ("host_addr", Translated),
    ("mask_addr", Translated),
    ("gateway_addr", Translated),
    ("host_addr6", Translated),
    ("devices", Translated),
    (
        "xdp_eth_name",
        Without("Gazelle takes the interface from --vdev in dpdk_args, as here"),
    ),
    ("tcp_conn_count", Translated),
    ("mbuf_count_per_conn", Without(MEMORY)),
    ("mem_cache_num", Without(MEMORY)),
    ("mem_async_mode", Without(MEMORY)),
    ("nic_rxqueue_size", Translated),
    ("nic_txqueue_size", Translated),
    ("nic_read_number", Without(BATCHES)),
    (
        "rpc_number",
        Without("applications and workers share rings and make no calls to each other"),
    ),
    (
        "app_bind_numa",
        Without("threads of applications stay where they are; see saiga tune plan"),
    ),
    (
        "app_exclude_cpus",
        Without("threads of applications stay where they are; see saiga tune plan"),
    ),
    (
        "main_thread_affinity",
        Without("no thread of an application is moved"),
    ),
    (
        "listen_shadow",
        Without("every worker serves every port of [[serve]]"),
    ),
    (
        "low_power_mode",
        Without("workers sleep when there is no work; workers.spin sets how soon"),
    ),
    ("stack_interrupt", Translated),
    ("send_cache_mode", Without(BATCHES)),
    ("udp_enable", Without("UDP always stays with the kernel")),
    (
        "use_sockmap",
        Without("connections within the host move to shared memory under saiga run"),
    ),
    (
        "flow_bifurcation",
        Without("everything that is not served always goes to the kernel"),
    ),
    (
        "kni_switch",
        Without("everything that is not served always goes to the kernel"),
    ),
    ("nic_vlan_mode", Translated),
    ("bond_mode", Without(BONDS)),
    ("bond_miimon", Without(BONDS)),
    ("bond_slave_mac", Without(BONDS)),
    (
        "unix_prefix",
        Without("runtime.control sets the path of the gateway's socket"),
    ),
    (
        "tuple_filter",
        Without("only the ports of [[serve]] are served"),
    ),
    ("num_process", Without(PROCESSES)),
    ("process_numa", Without(PROCESSES)),
    ("process_idx", Without(PROCESSES)),
];

/// Keys of older and newer versions, which Gazelle ignores if it does not know them.
pub(super) const OTHERS: [(&str, &str); 11] = [
    ("mbuf_pool_size", MEMORY),
    ("send_ring_size", MEMORY),
    ("recv_ring_size", MEMORY),
    ("nic_read_num", BATCHES),
    ("read_connect_number", BATCHES),
    ("send_connect_number", BATCHES),
    (
        "rpc_msg_max",
        "applications and workers share rings and make no calls to each other",
    ),
    ("num_wakeup", "workers wake applications themselves"),
    ("seperate_send_recv", "a worker sends and receives"),
    (
        "nonblock_mode",
        "blocking and non-blocking calls are always supported",
    ),
    (
        "numa_bind",
        "threads of applications stay where they are; see saiga tune plan",
    ),
];

/// Why a key has no meaning here; `None` if it is translated.
pub(super) fn reason(key: &str) -> Option<&'static str> {
    if let Some((_, fate)) = KEYS.iter().find(|(known, _)| *known == key) {
        return match fate {
            Translated => None,
            Without(reason) => Some(*reason),
        };
    }
    let other = OTHERS.iter().find(|(known, _)| *known == key);
    Some(
        other.map_or("Gazelle does not know this key either", |(_, reason)| {
            *reason
        }),
    )
}
