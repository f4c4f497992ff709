//! [`Topology`] and [`Role`]: the arrangement of Redis servers, and the role of each process.

use std::fmt;

/// The arrangement of the servers of one run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Topology {
    Standalone,
    /// A master and two replicas, one by its configuration file and one by REPLICAOF.
    Replica,
    /// A master, two replicas and three sentinels.
    Sentinel,
    /// Six nodes: three masters, each with a replica.
    Cluster,
}

/// The role of a process in a topology.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    Master,
    /// A replica by `replicaof` in its configuration file.
    ReplicaByFile,
    /// A replica that starts as a master and gets the command REPLICAOF.
    ReplicaByCommand,
    Sentinel,
    /// A node that becomes a master or replica when the cluster is created.
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
    /// All topologies, the simplest first.
    pub const ALL: [Self; 4] = [
        Self::Standalone,
        Self::Replica,
        Self::Sentinel,
        Self::Cluster,
    ];

    /// The name on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Standalone => "standalone",
            Self::Replica => "replica",
            Self::Sentinel => "sentinel",
            Self::Cluster => "cluster",
        }
    }

    /// A warning about the figures of the topology, with advice.
    pub(crate) fn caveat(self) -> Option<[&'static str; 2]> {
        match self {
            Self::Standalone => None,
            Self::Replica => Some([
                "Master, replicas and client share the cores of this machine, and the server's CPU \
                 is that of all three.",
                "With more cores than processes the ratio differs; measure on such a machine.",
            ]),
            Self::Sentinel => Some([
                "Sentinels consider a master down after 1 s here (down-after-milliseconds); the \
                 time without service includes this second.",
                "With the default of 30 s a fail-over takes 29 s longer on every arm.",
            ]),
            Self::Cluster => Some([
                "Six nodes and the client share the cores of this machine, and the server's CPU is \
                 that of all six. Before Redis 7.4 redis-benchmark --cluster uses one slot of each \
                 master.",
                "With more cores than processes the ratio differs; measure on such a machine.",
            ]),
        }
    }

    /// The roles of all processes in start order; sentinels are last.
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
    /// Whether the process is a replica of the first server.
    pub(crate) fn follows(self) -> bool {
        match self {
            Self::ReplicaByFile | Self::ReplicaByCommand => true,
            Self::Master | Self::Sentinel | Self::Node => false,
        }
    }

    /// The name in messages.
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
    fn sentinels_start_after_their_master() {
        let count = |topology: Topology| topology.roles().len();
        assert_eq!(Topology::ALL.map(count), [1, 3, 6, 6]);
        let roles = Topology::Sentinel.roles();
        assert_eq!(roles[..3], REPLICATION);
        assert!(roles[3..].iter().all(|role| *role == Role::Sentinel));
    }
}
