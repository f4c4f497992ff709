//! The configuration files of servers that belong together.
//!
//! A standalone server takes its options on the command line (`arm`); these have files,
//! as an operator's have: sentinels rewrite theirs, and a fail-over rewrites the others'.

use crate::load::RedisLoad;
use crate::topology::{Role, Topology};

/// The name under which sentinels know the master.
pub(crate) const MASTER_NAME: &str = "saiga";
/// After so long without an answer a sentinel or a node calls another one down.
pub(crate) const DOWN_AFTER_MS: u32 = 1000;
/// A fail-over that is not done by then is begun again, after twice that time.
const FAILOVER_TIMEOUT_MS: u32 = 3000;
/// Sentinels that must agree that a master is down.
const QUORUM: u32 = 2;
/// Nodes ping each other at least twice in this time.
const NODE_TIMEOUT_MS: u32 = 5000;

/// The lines for one process that listens on `port` of 127.0.0.1 and lives in `dir`;
/// `master` is the port of the first process.
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
    // A replica is sent the data at once, not together with others that might come.
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
    fn only_the_replica_by_file_is_told_its_master_by_file() {
        let told = |role| of(Topology::Replica, role).contains(&"replicaof 127.0.0.1 7000".into());
        assert!(told(Role::ReplicaByFile));
        assert!(!told(Role::Master) && !told(Role::ReplicaByCommand));
    }

    #[test]
    fn a_sentinel_is_told_what_to_watch_and_nothing_of_data() {
        let lines = of(Topology::Sentinel, Role::Sentinel);
        assert!(lines.contains(&"sentinel monitor saiga 127.0.0.1 7000 2".to_owned()));
        assert!(!lines.iter().any(|line| line.starts_with("appendonly")));
    }

    #[test]
    fn only_nodes_have_a_cluster() {
        let has = |topology, role| of(topology, role).contains(&"cluster-enabled yes".to_owned());
        assert!(has(Topology::Cluster, Role::Node));
        assert!(!has(Topology::Sentinel, Role::Master));
    }
}
