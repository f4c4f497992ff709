//! `[[device]]`: the devices whose queues the gateway owns.
//!
//! A kernel's interface (AF_XDP), a TAP device of the gateway's own, a port of DPDK, or memory that
//! is shared with another process (memif). The value holds only what is valid for its kind.
//! Deliberately absent: whether the device exists.

mod read;
mod write;

use std::path::PathBuf;

use ipnet::IpNet;
use saiga_wire::ethernet::Mac;

use super::address::Route;
use super::value::{InterfaceName, PciAddress};

pub(super) use read::read;
pub(crate) use read::vdev;
pub(super) use write::write;

/// The default of `ring`.
const RING: u32 = 2048;
/// Frames for each descriptor of a ring, at least, and unless `frames` says otherwise: one for each
/// direction.
const FRAMES_PER_DESCRIPTOR: u32 = 2;

/// A device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Device {
    /// The kind, with what only this kind has.
    pub kind: Kind,
    /// CPUs of the workers that serve the device, ascending; empty for all workers. Queue `n` of
    /// the device belongs to worker `n` modulo their number.
    pub cpus: Vec<usize>,
    /// Descriptors of each ring of a queue: a power of two. A TAP device has no rings.
    pub ring: u32,
    /// Frames of each queue, at least two for each descriptor.
    pub frames: u32,
    /// The VLAN of the served addresses, 1 to 4094; `None` for untagged frames.
    pub vlan: Option<u16>,
    /// Largest IP packet in bytes; `None` for that of the kernel's interface, or 1500.
    pub mtu: Option<u16>,
    /// The served addresses.
    pub addresses: Addresses,
}

/// The kind of a device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kind {
    /// An interface that stays with the kernel. The gateway gets the served flows by AF_XDP.
    Xdp {
        /// The kernel's interface.
        interface: InterfaceName,
        /// The number of queues that the interface must have; `None` for any. All are served.
        queues: Option<u16>,
        /// Where the XDP program runs.
        mode: Mode,
        /// Whether the kernel copies frames.
        copy: Copying,
    },
    /// A TAP device; the kernel's end is another host.
    Tap {
        /// The kernel's interface.
        interface: InterfaceName,
        /// The number of queues; `None` for one for each worker of the device.
        queues: Option<u16>,
    },
    /// A port of DPDK.
    Dpdk {
        /// The port.
        port: Port,
        /// Name of the kernel's interface through which everything goes that the gateway does not
        /// serve; `None` for `saiga0`.
        interface: Option<InterfaceName>,
        /// The number of queues; `None` for one for each worker of the device.
        queues: Option<u16>,
    },
    /// Memory that is shared with another process. It has one queue.
    Memif {
        /// The socket by which the ends agree.
        socket: PathBuf,
        /// The end that the gateway is.
        role: Role,
        /// Number of the interface, of which a server can have several.
        id: u32,
        /// As for DPDK.
        interface: Option<InterfaceName>,
    },
}

/// The end of a memif.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// It listens on the socket.
    Server,
    /// It connects, and owns the memory.
    Client,
}

/// Where an XDP program runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// In the driver if the driver can, else behind it.
    Auto,
    /// In the driver.
    Native,
    /// Behind the driver.
    Generic,
}

/// Whether the kernel copies frames of an AF_XDP socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Copying {
    /// If the driver needs it.
    Auto,
    /// Always.
    Copy,
    /// Never.
    ZeroCopy,
}

/// How a port of DPDK is found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Port {
    /// By its PCI address.
    Pci(PciAddress),
    /// By its MAC address, among all ports that DPDK finds.
    Mac(Mac),
    /// A virtual device with its arguments, such as `net_memif0,role=server`.
    Vdev(String),
}

/// The served addresses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Addresses {
    /// Addresses and routes of the kernel's interface, as they change.
    Kernel,
    /// Those of the file.
    Own {
        /// Addresses with the lengths of their networks' prefixes.
        addresses: Vec<IpNet>,
        /// Routes beyond these networks.
        routes: Vec<Route>,
    },
}

impl Addresses {
    /// The addresses of the file; none if those of the kernel are served.
    #[must_use]
    pub fn own(&self) -> &[IpNet] {
        match self {
            Self::Kernel => &[],
            Self::Own { addresses, .. } => addresses,
        }
    }
}

impl Device {
    /// The kernel's interface, if the file names one.
    #[must_use]
    pub fn interface(&self) -> Option<&InterfaceName> {
        match &self.kind {
            Kind::Xdp { interface, .. } | Kind::Tap { interface, .. } => Some(interface),
            Kind::Dpdk { interface, .. } | Kind::Memif { interface, .. } => interface.as_ref(),
        }
    }

    /// Whether DPDK owns the device.
    #[must_use]
    pub fn is_dpdk(&self) -> bool {
        matches!(self.kind, Kind::Dpdk { .. })
    }

    /// Whether the kernel's frames pass a TAP device that the gateway makes beside the device.
    #[must_use]
    pub fn has_tap_beside(&self) -> bool {
        matches!(self.kind, Kind::Dpdk { .. } | Kind::Memif { .. })
    }

    /// The number of queues, if the file says so.
    pub(super) fn queues(&self) -> Option<usize> {
        match &self.kind {
            Kind::Xdp { queues, .. } | Kind::Tap { queues, .. } | Kind::Dpdk { queues, .. } => {
                queues.map(usize::from)
            }
            Kind::Memif { .. } => Some(1),
        }
    }
}

/// A device with everything else at its default.
pub(crate) fn plain(kind: Kind, addresses: Addresses, ring: Option<u32>) -> Device {
    let ring = ring.unwrap_or(RING);
    Device {
        kind,
        cpus: Vec::new(),
        ring,
        frames: ring * FRAMES_PER_DESCRIPTOR,
        vlan: None,
        mtu: None,
        addresses,
    }
}

/// The words of `kind`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Driver {
    Xdp,
    Tap,
    Dpdk,
    Memif,
}

const DRIVERS: [(&str, Driver); 4] = [
    ("xdp", Driver::Xdp),
    ("tap", Driver::Tap),
    ("dpdk", Driver::Dpdk),
    ("memif", Driver::Memif),
];
const ROLES: [(&str, Role); 2] = [("server", Role::Server), ("client", Role::Client)];
const MODES: [(&str, Mode); 3] = [
    ("auto", Mode::Auto),
    ("native", Mode::Native),
    ("generic", Mode::Generic),
];
const COPYING: [(&str, Copying); 3] = [
    ("auto", Copying::Auto),
    ("copy", Copying::Copy),
    ("zero-copy", Copying::ZeroCopy),
];

/// The word of a choice.
fn word<T: Copy + PartialEq>(choices: &[(&'static str, T)], choice: T) -> &'static str {
    let found = choices.iter().find(|(_, known)| *known == choice);
    found.map_or("", |(word, _)| word)
}
