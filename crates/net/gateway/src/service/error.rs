//! Why a gateway does not serve.

use std::io;

use ipnet::IpNet;
use saiga_anchor::{Fault, RoutesError};
use saiga_interface::{NetlinkError, SnapshotError};
use saiga_netdev::dpdk::DpdkError;
use saiga_netdev::memif::MemifError;
use saiga_netdev::{DeviceError, tap, xdp};

use crate::confine::ConfineError;
use crate::inspection::InspectionError;
use crate::socket::OpenError;
use crate::worker::WorkerError;

/// Why a gateway does not serve.
#[derive(Debug, thiserror::Error)]
pub enum ServiceError {
    /// The settings ask for something that this version does not have.
    #[error("{0}")]
    Absent(&'static str),
    /// The settings have a key that this version does not follow.
    #[error("`{0}` has no effect in this version: remove the key")]
    NoEffect(&'static str),
    /// The device has too few queues.
    #[error(
        "{interface} has {queues} receive queues for {workers} workers: give it more \
         (ethtool -L {interface} combined {workers}), or name fewer CPUs in `workers.cpus`"
    )]
    Queues {
        /// Name of the network interface.
        interface: String,
        /// The number of receive queues.
        queues: usize,
        /// The number of workers.
        workers: usize,
    },
    /// The device does not keep the frames of a connection on one queue.
    #[error(
        "{interface} is a veth device, where the frames of a connection can come on any queue: \
         serve it with one worker (one CPU in `workers.cpus`)"
    )]
    Spreads {
        /// Name of the network interface.
        interface: String,
    },
    /// The interface has another number of queues than the settings.
    #[error(
        "{interface} has {queues} receive queues, and `device.queues` is {wanted}: the gateway \
         serves all queues, because the replies to clients on others would be lost; change the \
         interface (ethtool -L {interface} combined {wanted}) or the key"
    )]
    OtherQueues {
        /// Name of the network interface.
        interface: String,
        /// The number of receive queues.
        queues: u32,
        /// The number in the settings.
        wanted: u16,
    },
    /// The kernel does not have the VLAN.
    #[error(
        "{interface} has no VLAN {vlan} in the kernel, which resolves the neighbours there: make \
         its interface (ip link add link {interface} name {interface}.{vlan} type vlan id {vlan}; \
         ip link set {interface}.{vlan} up)"
    )]
    NoVlan {
        /// Name of the network interface.
        interface: String,
        /// The VLAN.
        vlan: u16,
    },
    /// Memory cannot be taken from a node.
    #[error(
        "no memory from NUMA node {node} of `workers.memory_bind`: {source}; \
         /sys/devices/system/node/has_memory lists the nodes with memory"
    )]
    Node {
        /// The node.
        node: usize,
        /// The error of set_mempolicy(2).
        source: io::Error,
    },
    /// The process lacks rights, or cannot give them up.
    #[error(transparent)]
    Confine(#[from] ConfineError),
    /// The TAP device cannot be opened.
    #[error(transparent)]
    Tap(#[from] tap::OpenError),
    /// The interface cannot be used with AF_XDP.
    #[error(transparent)]
    Xdp(#[from] xdp::OpenError),
    /// AF_XDP cannot serve the interface.
    #[error("network interface {interface}: {reason}")]
    Unfit {
        /// Name of the network interface.
        interface: String,
        /// Why, and what to do.
        reason: String,
    },
    /// The program cannot be told what to redirect.
    #[error(transparent)]
    Steer(#[from] xdp::SteerError),
    /// The socket of a memif device cannot be made.
    #[error(transparent)]
    Socket(#[from] OpenError),
    /// A memif device cannot be opened.
    #[error(transparent)]
    Memif(#[from] MemifError),
    /// DPDK does not begin, or a port of it cannot be opened.
    #[error(transparent)]
    Dpdk(#[from] DpdkError),
    /// The device does not work.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// The kernel's network configuration cannot be read.
    #[error(transparent)]
    Snapshot(#[from] SnapshotError),
    /// Changes of the kernel's network configuration cannot be read.
    #[error(transparent)]
    Netlink(#[from] NetlinkError),
    /// The interface was removed.
    #[error("network interface {interface} was removed")]
    Gone {
        /// Name of the network interface.
        interface: String,
    },
    /// The replies of servers cannot be brought to the gateway.
    #[error(transparent)]
    Routes(#[from] RoutesError),
    /// Connections of local programs cannot be opened.
    #[error(transparent)]
    Outgoing(#[from] saiga_outgoing::OutgoingError),
    /// No device has an address for connections to a network.
    #[error(
        "`outgoing.prefixes`: no device has an address of the same version of IP as {network}: \
         add one, or remove the prefix"
    )]
    NoSource {
        /// The network.
        network: IpNet,
    },
    /// Something on this host prevents anchors.
    #[error(transparent)]
    Fault(#[from] Fault),
    /// The addresses or routes contradict each other.
    #[error("{interface}: {source}")]
    Network {
        /// Name of the network interface.
        interface: String,
        /// What is wrong.
        source: saiga_stack::NetworkError,
    },
    /// Two `[[serve]]` ask for the same port.
    #[error(transparent)]
    Listen(#[from] saiga_stack::ListenError),
    /// Operators cannot reach the gateway.
    #[error(transparent)]
    Inspection(#[from] InspectionError),
    /// The worker cannot begin, or has ended.
    #[error(transparent)]
    Worker(#[from] WorkerError),
    /// A thread has ended by a fault of the program.
    #[error("a thread has ended by a fault of the program; its message is above")]
    Panicked,
    /// A system call failed.
    #[error("{what}: {source}")]
    System {
        /// What failed.
        what: &'static str,
        /// Its error.
        source: io::Error,
    },
}
