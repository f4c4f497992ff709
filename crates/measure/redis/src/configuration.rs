//! Configuration files of the servers of a topology.
//!
//! A standalone server takes its options on the command line (`arm`). The servers of a topology
//! need files, because sentinels rewrite theirs, and a fail-over rewrites those of servers.

use crate::load::RedisLoad;
use crate::topology::{Role, Topology};

/// Name of the master in the configuration of sentinels.
pub(crate) const MASTER_NAME: &str = "saiga";
/// A server that does not answer for this long counts as down.
pub(crate) const DOWN_AFTER_MS: u32 = 1000;
/// Timeout of a fail-over; a new attempt begins after twice this time.
const FAILOVER_TIMEOUT_MS: u32 = 3000;
/// Number of sentinels that must agree that a master is down.
const QUORUM: u32 = 2;
/// `cluster-node-timeout`; nodes ping each other at least twice in this time.
const NODE_TIMEOUT_MS: u32 = 5000;

/// The lines of the file of a process that listens on `port` of 127.0.0.1 and uses the directory
/// `dir`; `master` is the port of the first process.
pub(crate) fn lines(
    topology: Topology,
    role: Role,
    port: &str,
    master: &str,
    dir: &str,
    load: &RedisLoad,
) -> Vec<String> {
    let mut lines = vec![
        format!("port {port}"),
        "bind 127.0.0.1".to_owned(),
        "protected-mode yes".to_owned(),
        "daemonize no".to_owned(),
        format!("dir {dir}"),
    ];
    if role == Role::Sentinel {
        let rule = |words: String| format!("sentinel {words}");
        lines.push(rule(format!(
            "monitor {MASTER_NAME} 127.0.0.1 {master} {QUORUM}"
        )));
        lines.push(rule(format!(
            "down-after-milliseconds {MASTER_NAME} {DOWN_AFTER_MS}"
        )));
        lines.push(rule(format!(
            "failover-timeout {MASTER_NAME} {FAILOVER_TIMEOUT_MS}"
        )));
        return lines;
    }
    lines.extend(["save \"\"", "appendonly no"].map(str::to_owned));
    // Replicas get the data immediately, without waiting for further replicas.
    lines.push("repl-diskless-sync-delay 0".to_owned());
    if let Some(most) = load.max_clients(0) {
        lines.push(format!("maxclients {most}"));
    }
    if load.io_threads != 1 {
        lines.push(format!("io-threads {}", load.io_threads));
        lines.push("io-threads-do-reads yes".to_owned());
    }
    if role == Role::ReplicaByFile {
        lines.push(format!("replicaof 127.0.0.1 {master}"));
    }
    if topology == Topology::Cluster {
        lines.push("cluster-enabled yes".to_owned());
        lines.push("cluster-config-file nodes.conf".to_owned());
        lines.push(format!("cluster-node-timeout {NODE_TIMEOUT_MS}"));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Test;

    fn of(topology: Topology, role: Role) -> Vec<String> {
        let load = RedisLoad::new(Test::Set, 50);
        lines(topology, role, "7001", "7000", "/d", &load)
    }

    #[test]
    fn only_the_replica_by_file_has_its_master_in_its_file() {
        let has_master =
            |role| of(Topology::Replica, role).contains(&"replicaof 127.0.0.1 7000".into());
        assert!(has_master(Role::ReplicaByFile));
        assert!(!has_master(Role::Master) && !has_master(Role::ReplicaByCommand));
    }

    #[test]
    fn a_sentinel_has_its_master_and_no_data_options() {
        let lines = of(Topology::Sentinel, Role::Sentinel);
        assert!(lines.contains(&"sentinel monitor saiga 127.0.0.1 7000 2".to_owned()));
        assert!(!lines.iter().any(|line| line.starts_with("appendonly")));
    }

    #[test]
    fn only_nodes_have_cluster_options() {
        let has = |topology, role| of(topology, role).contains(&"cluster-enabled yes".to_owned());
        assert!(has(Topology::Cluster, Role::Node));
        assert!(!has(Topology::Sentinel, Role::Master));
    }
}
