//! How Redis servers are joined, and what each of them is.

use std::fmt;

/// How the servers of one run are joined.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Topology {
    /// One server.
    Standalone,
    /// A master and two replicas: one by its configuration file, one by REPLICAOF.
    Replica,
    /// The same, watched by three sentinels.
    Sentinel,
    /// Six nodes: three masters with a replica each.
    Cluster,
}

/// What one process of a topology is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// Takes writes.
    Master,
    /// Follows the master because its configuration file says so.
    ReplicaByFile,
    /// Begins as a master of its own, and is told to follow.
    ReplicaByCommand,
    /// Watches the master.
    Sentinel,
    /// Becomes a master or a replica when the cluster is made.
    Node,
}

const REPLICATION: [Role; 3] = [Role::Master, Role::ReplicaByFile, Role::ReplicaByCommand];
const WATCHED: [Role; 6] = [
    Role::Master,
    Role::ReplicaByFile,
    Role::ReplicaByCommand,
    Role::Sentinel,
    Role::Sentinel,
    Role::Sentinel,
];

impl Topology {
    /// Every topology, the simplest first.
    pub const ALL: [Self; 4] = [
        Self::Standalone,
        Self::Replica,
        Self::Sentinel,
        Self::Cluster,
    ];

    /// As on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Standalone => "standalone",
            Self::Replica => "replica",
            Self::Sentinel => "sentinel",
            Self::Cluster => "cluster",
        }
    }

    /// What a reader of its figures must know, and what to do about it.
    pub(crate) fn caveat(self) -> Option<[&'static str; 2]> {
        match self {
            Self::Standalone => None,
            Self::Replica => Some([
                "Master, replicas and client share the cores of this machine, and the server's CPU \
                 is that of all three.",
                "With more cores than processes the ratio is another one: measure there.",
            ]),
            Self::Sentinel => Some([
                "Sentinels call a master down after 1 s here (down-after-milliseconds); the time \
                 without service contains that second.",
                "With the usual 30 s a fail-over takes 29 s more on every arm.",
            ]),
            Self::Cluster => Some([
                "Six nodes and the client share the cores of this machine, and the server's CPU is \
                 that of all six. Before Redis 7.4 redis-benchmark --cluster uses one slot of each \
                 master.",
                "With more cores than processes the ratio is another one: measure there.",
            ]),
        }
    }

    /// Its processes in the order in which they start; sentinels come last.
    pub(crate) fn roles(self) -> &'static [Role] {
        match self {
            Self::Standalone => &[Role::Master],
            Self::Replica => &REPLICATION,
            Self::Sentinel => &WATCHED,
            Self::Cluster => &[Role::Node; 6],
        }
    }
}

impl fmt::Display for Topology {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl Role {
    /// Whether it follows the first server of its topology.
    pub(crate) fn follows(self) -> bool {
        match self {
            Self::ReplicaByFile | Self::ReplicaByCommand => true,
            Self::Master | Self::Sentinel | Self::Node => false,
        }
    }

    /// For folders and messages.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Master => "master",
            Self::ReplicaByFile | Self::ReplicaByCommand => "replica",
            Self::Sentinel => "sentinel",
            Self::Node => "node",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentinels_start_behind_what_they_watch() {
        let count = |topology: Topology| topology.roles().len();
        assert_eq!(Topology::ALL.map(count), [1, 3, 6, 6]);
        let roles = Topology::Sentinel.roles();
        assert_eq!(roles[..3], REPLICATION);
        assert!(roles[3..].iter().all(|role| *role == Role::Sentinel));
    }
}
