//! Why AF_XDP cannot be used.

use std::io;
use std::net::{IpAddr, SocketAddr};

use saiga_bpf::LoadError;

/// Why an interface or one of its queues cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The network namespace has no such interface.
    #[error("there is no network interface {name} in this network namespace")]
    NoInterface {
        /// Name of the network interface.
        name: String,
    },
    /// Frames of the interface do not begin with an Ethernet header.
    #[error("{name} is not an Ethernet interface; use a TAP device or a NIC")]
    NotEthernet {
        /// Name of the network interface.
        name: String,
    },
    /// A right is missing.
    #[error(
        "no permission to {action}: AF_XDP needs CAP_NET_ADMIN, CAP_NET_RAW and CAP_BPF, and \
         before Linux 5.11 a larger RLIMIT_MEMLOCK"
    )]
    NotPermitted {
        /// What was refused.
        action: &'static str,
    },
    /// The kernel does not have what AF_XDP needs.
    #[error(
        "this kernel cannot {action}: AF_XDP needs Linux 5.9 with CONFIG_BPF_SYSCALL and \
         CONFIG_XDP_SOCKETS; use a TAP device instead"
    )]
    NotSupported {
        /// What the kernel does not know.
        action: &'static str,
    },
    /// The verifier refused the program.
    #[error(transparent)]
    Program(LoadError),
    /// Another program has the interface.
    #[error(
        "another XDP program is attached to {name}: end the process that attached it (bpftool net \
         shows the program), or detach it (ip link set dev {name} xdp off)"
    )]
    Occupied {
        /// Name of the network interface.
        name: String,
    },
    /// Neither mode works.
    #[error(
        "cannot attach an XDP program to {name}: in the driver, {native}; in the core, {generic}"
    )]
    Attach {
        /// Name of the network interface.
        name: String,
        /// The error in native mode.
        native: io::Error,
        /// The error in generic mode.
        generic: io::Error,
    },
    /// Packets of the interface do not fit in a frame.
    #[error(
        "{name} has an MTU of {mtu} bytes, but a frame of {frame_bytes} bytes holds a packet of at \
         most {most}: lower the MTU (ip link set dev {name} mtu {most}) or use larger frames; a \
         packet in several frames is not supported"
    )]
    Mtu {
        /// Name of the network interface.
        name: String,
        /// Its MTU in bytes.
        mtu: u32,
        /// Size of a frame in bytes.
        frame_bytes: usize,
        /// The largest MTU for this size of frames, in bytes.
        most: usize,
    },
    /// The program cannot see the tags of the VLAN.
    #[error(
        "{name} takes VLAN tags out of the frames, so that the frames of VLAN {vlan} cannot be told \
         from others: turn that off (ethtool -K {name} rxvlan off)"
    )]
    TagsTakenOut {
        /// Name of the network interface.
        name: String,
        /// The VLAN.
        vlan: u16,
    },
    /// The interface does not have the queue.
    #[error("{name} has no receive queue {queue}: it has {queues}, which are counted from 0")]
    NoQueue {
        /// Name of the network interface.
        name: String,
        /// The queue that was asked for.
        queue: u16,
        /// The number of receive queues.
        queues: u32,
    },
    /// Another socket has the queue.
    #[error("queue {queue} of {name} is in use by another AF_XDP socket")]
    QueueInUse {
        /// Name of the network interface.
        name: String,
        /// The queue.
        queue: u16,
    },
    /// The driver cannot do without copies.
    #[error("the driver of {name} has no zero-copy mode in its present settings; allow copies")]
    NoZeroCopy {
        /// Name of the network interface.
        name: String,
    },
    /// The memory for frames exceeds RLIMIT_MEMLOCK.
    #[error(
        "the limit of locked memory (RLIMIT_MEMLOCK, LimitMEMLOCK=) is below the {bytes} bytes of \
         one queue: raise it, or give CAP_IPC_LOCK"
    )]
    Memlock {
        /// Memory of one queue.
        bytes: usize,
    },
    /// The number of slots is not valid.
    #[error("{0} slots for each ring are not possible: give a power of two from 64 to 32768")]
    Slots(u32),
    /// The number of frames is not valid.
    #[error("{0} frames are not possible: give at least two for each slot, at most 1048576")]
    FrameCount(u32),
    /// A system call failed for another reason.
    #[error("network interface {name}: cannot {action}")]
    System {
        /// Name of the network interface.
        name: String,
        /// What was attempted.
        action: &'static str,
        /// The error of the system call.
        source: io::Error,
    },
}

/// Why the program cannot be told what to redirect.
#[derive(Debug, thiserror::Error)]
pub enum SteerError {
    /// The map of endpoints is full.
    #[error("cannot serve {endpoint}: the limit of {limit} endpoints is reached")]
    TooManyEndpoints {
        /// The endpoint that found no room.
        endpoint: SocketAddr,
        /// Most endpoints.
        limit: u32,
    },
    /// The map of hosts is full.
    #[error("cannot leave {host} to the kernel: the limit of {limit} hosts is reached")]
    TooManyHosts {
        /// The host that found no room.
        host: IpAddr,
        /// Most hosts.
        limit: u32,
    },
    /// bpf(2) failed for another reason.
    #[error("cannot change a map of the XDP program")]
    Map(#[source] io::Error),
}
