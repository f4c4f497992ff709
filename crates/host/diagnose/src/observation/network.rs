//! Sockets and limits of the network namespace of the server or of this host.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

/// States and limits at the end of the observation, and rates during it.
#[derive(Debug, Clone, Default)]
pub struct Network {
    /// Number of ephemeral ports: `net.ipv4.ip_local_port_range` without
    /// `ip_local_reserved_ports`.
    pub ports: u32,
    /// Whether a port in TIME_WAIT can be reused after a second: `net.ipv4.tcp_tw_reuse` is 1 and
    /// TCP timestamps are on. A value of 2 holds for loopback only.
    pub reuses_time_wait: bool,
    /// Sockets by remote address, of connections that this host opened.
    pub outgoing: BTreeMap<SocketAddr, Sockets>,
    /// Connections to the observed server, by address of the client and of the server.
    pub clients: BTreeMap<(IpAddr, SocketAddr), Clients>,
    /// Entries of the connection tracking table, and their limit, if it is loaded.
    pub tracked: Option<(u64, u64)>,
}

/// Numbers of sockets by state.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Sockets {
    pub established: u32,
    pub time_wait: u32,
    /// SYN-SENT.
    pub opening: u32,
}

/// Established connections of one client over the samples of the observation.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Clients {
    /// Largest number of connections.
    pub most: u64,
    /// Share of the samples with this number of connections.
    pub at_most: f64,
    /// Mean share of the connections on which the server has received more recently than it has
    /// sent: a request is in progress.
    pub active: f64,
    /// Mean number of connections.
    pub mean: f64,
    /// Mean share of the connections that the sample a second before did not have.
    pub renewed: f64,
    /// Mean share of the connections on which the kernel holds back less than a segment until the
    /// segment before is acknowledged (Nagle's algorithm, RFC 896). An end on another host is not
    /// seen.
    pub held_back: f64,
    /// Smallest segment size of the server's sends in bytes, without headers; 0 if unknown.
    pub segment_bytes: u32,
}
