//! The keys of `gateway.toml` with their defaults. `docs/gateway.md` has the same rows.
//!
//! Deliberately absent: meanings, which are in the document and at the fields of the types.

/// A key of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Key {
    /// The table, such as `device`; empty for the root of the file.
    pub table: &'static str,
    /// The name in the table.
    pub name: &'static str,
    /// The default in the syntax of the file, or in words.
    pub default: &'static str,
}

const fn key(table: &'static str, name: &'static str, default: &'static str) -> Key {
    Key {
        table,
        name,
        default,
    }
}

/// All keys in the order of the documentation. Those of the root are tables.
pub const KEYS: [Key; 54] = [
    key("", "device", "at least one"),
    key("", "serve", "at least one, or `outgoing.prefixes`"),
    key("", "workers", "see below"),
    key("", "tcp", "see below"),
    key("", "dpdk", "see below"),
    key("", "outgoing", "see below"),
    key("", "metrics", "see below"),
    key("", "capture", "see below"),
    key("", "runtime", "see below"),
    key(
        "device",
        "kind",
        "`\"dpdk\"` with `pci`, `mac` or `vdev`, else `\"xdp\"`",
    ),
    key("device", "interface", "required; DPDK, memif: `\"saiga0\"`"),
    key("device", "pci", "none"),
    key("device", "mac", "none"),
    key("device", "vdev", "none"),
    key("device", "socket", "memif: required"),
    key("device", "role", "memif: required"),
    key("device", "id", "memif: `0`"),
    key("device", "mode", "`\"auto\"`"),
    key("device", "copy", "`\"auto\"`"),
    key(
        "device",
        "queues",
        "AF_XDP: all of the interface; memif: 1; else one for each worker of the device",
    ),
    key("device", "cpus", "those of all workers"),
    key("device", "ring", "`2048`"),
    key("device", "frames", "twice `ring`"),
    key("device", "addresses", "AF_XDP: `\"kernel\"`; else required"),
    key("device", "routes", "none"),
    key("device", "vlan", "none"),
    key("device", "mtu", "AF_XDP: that of the interface; else 1500"),
    key("serve", "address", "`\"any\"`"),
    key("serve", "port", "required"),
    key("serve", "backlog", "`64`"),
    key("serve", "connections", "`tcp.connections`"),
    key("serve", "connections_per_client", "`serve.connections`"),
    key("serve", "allow", "`[]`, all clients"),
    key("serve", "deny", "`[]`"),
    key("workers", "cpus", "one worker on any CPU"),
    key("workers", "spin", "`\"50us\"`"),
    key("workers", "memory_bind", "the node of each worker's CPU"),
    key("tcp", "congestion", "`\"cubic\"`"),
    key("tcp", "keep_alive", "`\"5m\"`"),
    key("tcp", "keep_alive_interval", "`\"1m\"`"),
    key("tcp", "keep_alive_probes", "`5`"),
    key("tcp", "user_timeout", "`\"off\"`"),
    key("tcp", "connections", "`65536`"),
    key("tcp", "buffer", "`\"4MiB\"`"),
    key("tcp", "memory", "a sixteenth of the memory of the host"),
    key(
        "dpdk",
        "memory",
        "as much of the free huge pages as is needed",
    ),
    key("dpdk", "huge_dir", "the mounted one"),
    key("dpdk", "eal", "`[]`"),
    key("outgoing", "prefixes", "`[]`"),
    key("metrics", "listen", "no listener"),
    key("capture", "snap_length", "`262144`"),
    key("capture", "file_size", "`\"256MiB\"`"),
    key("runtime", "user", "`\"saiga\"`"),
    key(
        "runtime",
        "control",
        "`\"/run/saiga-gateway/gateway.sock\"`",
    ),
];

/// The names of the keys of a table.
pub(super) fn names(table: &str) -> Vec<&'static str> {
    let own = KEYS.iter().filter(|key| key.table == table);
    own.map(|key| key.name).collect()
}
