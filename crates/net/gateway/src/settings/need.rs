//! What the machine must have for the settings. [`requirements`](crate::requirements) checks each
//! need.
//!
//! Deliberately absent: how that is done, and what only exists while the gateway runs.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use saiga_wire::ethernet::Mac;

use super::Settings;
use super::device::{Addresses, Copying, Device, Kind, Mode, Port, Role};
use super::dpdk::Memory;
use super::value::{Bytes, InterfaceName, PciAddress};

/// Descriptors that are not those of connections: devices, listeners, doorbells, logs.
const FURTHER_DESCRIPTORS: u64 = 1024;

/// A requirement with the key that it follows from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Need {
    /// The key of `gateway.toml`, such as `device.interface`. The file may leave it out, and the
    /// requirement then follows from the default.
    pub key: &'static str,
    /// What must be there.
    pub requirement: Requirement,
}

/// Something that the machine must have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Requirement {
    /// A network interface of Ethernet.
    Interface(InterfaceName),
    /// An interface with at least so many receive queues.
    Queues {
        /// The interface.
        interface: InterfaceName,
        /// The number of queues.
        least: usize,
    },
    /// A driver that runs XDP programs.
    NativeXdp(InterfaceName),
    /// A driver that shares frames with AF_XDP sockets.
    ZeroCopy(InterfaceName),
    /// An interface that takes packets of this size.
    Mtu {
        /// The interface.
        interface: InterfaceName,
        /// Bytes of the largest packet.
        least: u16,
    },
    /// A VLAN of an interface that has an interface in the kernel, with its tags in the frames.
    Vlan {
        /// The interface.
        interface: InterfaceName,
        /// The VLAN.
        vlan: u16,
    },
    /// An interface, or its VLAN, with at least one address that is not link-local.
    InterfaceAddress {
        /// The interface.
        interface: InterfaceName,
        /// The VLAN, if there is one.
        vlan: Option<u16>,
    },
    /// A name of an interface that is free, or that of a TAP device.
    TapName(InterfaceName),
    /// An address of any interface of the kernel, so that a server can have a socket with it.
    Address(IpAddr),
    /// The plug-in for DPDK, and the library that it was built for.
    DpdkPlugin,
    /// A network card at a PCI address, bound to vfio-pci or shared with its driver.
    PciDevice(PciAddress),
    /// A network card with a MAC address that DPDK finds.
    Card(Mac),
    /// Free huge pages.
    HugePages {
        /// The NUMA node; `None` for any.
        node: Option<usize>,
        /// Bytes; `None` for what the frames of the devices take.
        bytes: Option<u64>,
    },
    /// A mounted hugetlbfs.
    HugeDir(PathBuf),
    /// A CPU that is online and that this process may use.
    Cpu(usize),
    /// A NUMA node with memory.
    Node(usize),
    /// So many descriptors for a process (RLIMIT_NOFILE).
    Descriptors(u64),
    /// Bytes of memory.
    Memory(u64),
    /// An address of this host and a port without a listener.
    FreePort(SocketAddr),
    /// A user.
    User(String),
    /// A right of the process that starts the gateway; root has all.
    Capability(Capability),
    /// A folder in which root can create a socket.
    Folder(PathBuf),
    /// Something that the kernel must know.
    Kernel(Feature),
}

/// Something that not every kernel knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Feature {
    /// TUN and TAP devices (`CONFIG_TUN`).
    Tun,
    /// AF_XDP sockets (`CONFIG_XDP_SOCKETS`).
    Xdp,
    /// The socket option IP_LOCAL_PORT_RANGE (Linux 6.3).
    LocalPortRange,
    /// BPF programs for connect(2), received packets and listeners (`CONFIG_CGROUP_BPF`,
    /// `CONFIG_NET_XGRESS`; Linux 6.6).
    OutgoingPrograms,
}

/// A right of a process (`man 7 capabilities`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Capability {
    /// CAP_NET_ADMIN.
    NetAdmin,
    /// CAP_NET_BIND_SERVICE.
    NetBindService,
    /// CAP_NET_RAW.
    NetRaw,
    /// CAP_BPF.
    Bpf,
    /// CAP_SETUID.
    SetUid,
    /// CAP_SETGID.
    SetGid,
}

/// The needs so far, each only once.
#[derive(Debug, Default)]
struct Needs(Vec<Need>);

impl Needs {
    fn add(&mut self, key: &'static str, requirement: Requirement) {
        let is_same = |need: &Need| need.requirement == requirement;
        if !self.0.iter().any(is_same) {
            self.0.push(Need { key, requirement });
        }
    }
}

/// What the machine must have for these settings.
pub(super) fn needs(settings: &Settings) -> Vec<Need> {
    let Settings {
        devices,
        serve,
        workers,
        tcp,
        dpdk,
        outgoing,
        metrics,
        capture: _,
        runtime,
    } = settings;
    let mut needs = Needs::default();
    needs.add("device", Requirement::Kernel(Feature::Tun));
    needs.add("serve.port", Requirement::Kernel(Feature::LocalPortRange));
    for capability in [Capability::NetAdmin, Capability::NetBindService] {
        needs.add("serve.port", Requirement::Capability(capability));
    }
    for device in devices {
        let served_by = match device.cpus.len() {
            0 => workers.count(),
            count => count,
        };
        of_device(device, served_by, &mut needs);
        of_network(device, &mut needs);
    }
    if devices.iter().any(Device::is_dpdk) {
        of_dpdk(&dpdk.memory, dpdk.huge_dir.as_ref(), &mut needs);
    }
    for address in serve.iter().filter_map(|serve| serve.address) {
        // The gateway itself gives the kernel the addresses of such a device.
        let has_it = |device: &&Device| {
            device
                .addresses
                .own()
                .iter()
                .any(|own| own.addr() == address)
        };
        let holder = devices.iter().find(has_it);
        if !holder.is_some_and(Device::has_tap_beside) {
            needs.add("serve.address", Requirement::Address(address));
        }
    }
    for cpu in &workers.cpus {
        needs.add("workers.cpus", Requirement::Cpu(*cpu));
    }
    for node in &workers.memory_bind {
        needs.add("workers.memory_bind", Requirement::Node(*node));
    }
    let descriptors = u64::from(tcp.connections) + FURTHER_DESCRIPTORS;
    needs.add("tcp.connections", Requirement::Descriptors(descriptors));
    if let Some(memory) = tcp.memory {
        needs.add("tcp.memory", Requirement::Memory(memory.0));
    }
    if !outgoing.prefixes.is_empty() {
        let programs = Requirement::Kernel(Feature::OutgoingPrograms);
        needs.add("outgoing.prefixes", programs);
        for capability in [Capability::NetRaw, Capability::Bpf] {
            needs.add("outgoing.prefixes", Requirement::Capability(capability));
        }
    }
    if let Some(listen) = metrics.listen {
        needs.add("metrics.listen", Requirement::FreePort(listen));
    }
    needs.add("runtime.user", Requirement::User(runtime.user.clone()));
    if let Some(folder) = runtime.control.parent() {
        needs.add("runtime.control", Requirement::Folder(folder.to_owned()));
    }
    needs.0
}

/// The needs of a device that `workers` workers serve.
fn of_device(device: &Device, workers: usize, needs: &mut Needs) {
    match &device.kind {
        Kind::Xdp {
            interface,
            queues,
            mode,
            copy,
        } => {
            let least = queues.map_or(workers, usize::from);
            needs.add("device.kind", Requirement::Kernel(Feature::Xdp));
            for capability in [Capability::NetRaw, Capability::Bpf] {
                needs.add("device.kind", Requirement::Capability(capability));
            }
            needs.add(
                "device.interface",
                Requirement::Interface(interface.clone()),
            );
            if least > 1 {
                let interface = interface.clone();
                needs.add("device.queues", Requirement::Queues { interface, least });
            }
            if *mode == Mode::Native {
                needs.add("device.mode", Requirement::NativeXdp(interface.clone()));
            }
            if *copy == Copying::ZeroCopy {
                needs.add("device.copy", Requirement::ZeroCopy(interface.clone()));
            }
        }
        Kind::Tap { interface, .. } => {
            needs.add("device.interface", Requirement::TapName(interface.clone()));
        }
        // The interface of a card has its name until the gateway takes the card.
        Kind::Dpdk { port, .. } => {
            needs.add("device.kind", Requirement::DpdkPlugin);
            match port {
                Port::Pci(address) => needs.add("device.pci", Requirement::PciDevice(*address)),
                Port::Mac(address) => needs.add("device.mac", Requirement::Card(*address)),
                Port::Vdev(_) => {}
            }
        }
        Kind::Memif {
            role: Role::Client, ..
        } => {}
        Kind::Memif {
            socket,
            role: Role::Server,
            ..
        } => {
            if let Some(folder) = socket.parent() {
                needs.add("device.socket", Requirement::Folder(folder.to_owned()));
            }
        }
    }
}

/// The needs of a device's addresses.
fn of_network(device: &Device, needs: &mut Needs) {
    if let Kind::Xdp { interface, .. } = &device.kind {
        if let Some(vlan) = device.vlan {
            let interface = interface.clone();
            needs.add("device.vlan", Requirement::Vlan { interface, vlan });
        }
        if device.addresses == Addresses::Kernel {
            let addresses = Requirement::InterfaceAddress {
                interface: interface.clone(),
                vlan: device.vlan,
            };
            needs.add("device.addresses", addresses);
        }
        if let Some(least) = device.mtu {
            let interface = interface.clone();
            needs.add("device.mtu", Requirement::Mtu { interface, least });
        }
    }
    if !device.has_tap_beside() {
        for own in device.addresses.own() {
            needs.add("device.addresses", Requirement::Address(own.addr()));
        }
    }
}

fn of_dpdk(memory: &Memory, huge_dir: Option<&PathBuf>, needs: &mut Needs) {
    match memory {
        Memory::Needed => needs.add(
            "dpdk.memory",
            Requirement::HugePages {
                node: None,
                bytes: None,
            },
        ),
        Memory::PerNode(nodes) => {
            for (node, size) in nodes.iter().enumerate().filter(|(_, size)| size.0 > 0) {
                let pages = Requirement::HugePages {
                    node: Some(node),
                    bytes: Some(size.0),
                };
                needs.add("dpdk.memory", pages);
            }
        }
        Memory::Ordinary => {}
    }
    if let Some(folder) = huge_dir {
        needs.add("dpdk.huge_dir", Requirement::HugeDir(folder.clone()));
    }
}

impl fmt::Display for Requirement {
    /// A noun, such as `network interface enp4s0`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Interface(name) => write!(f, "network interface {name}"),
            Self::Queues { interface, least } => write!(f, "{least} receive queues of {interface}"),
            Self::NativeXdp(name) => write!(f, "XDP in the driver of {name}"),
            Self::ZeroCopy(name) => write!(f, "AF_XDP without copies in the driver of {name}"),
            Self::Mtu { interface, least } => write!(f, "MTU of {interface} of at least {least}"),
            Self::Vlan { interface, vlan } => write!(
                f,
                "interface for VLAN {vlan} on {interface}, and tags in the frames (ethtool -K \
                 {interface} rxvlan off)"
            ),
            Self::InterfaceAddress { interface, vlan } => match vlan {
                Some(vlan) => write!(f, "address of VLAN {vlan} on {interface}"),
                None => write!(f, "address of {interface}"),
            },
            Self::TapName(name) => write!(f, "free name {name} for a TAP device"),
            Self::Address(address) => write!(f, "address {address} on an interface of the kernel"),
            Self::DpdkPlugin => f.write_str("DPDK and Saiga's plug-in for it"),
            Self::PciDevice(address) => write!(f, "network card at {address}"),
            Self::Card(mac) => write!(f, "network card with MAC address {mac}"),
            Self::HugePages { node, bytes } => {
                f.write_str("free huge pages")?;
                if let Some(bytes) = bytes {
                    write!(f, " of {} in total", Bytes(*bytes))?;
                }
                node.map_or(Ok(()), |node| write!(f, " on node {node}"))
            }
            Self::HugeDir(path) => write!(f, "hugetlbfs at {}", path.display()),
            Self::Cpu(cpu) => write!(f, "CPU {cpu}"),
            Self::Node(node) => write!(f, "NUMA node {node} with memory"),
            Self::Descriptors(count) => write!(f, "{count} descriptors (RLIMIT_NOFILE)"),
            Self::Memory(bytes) => write!(f, "{} of memory", Bytes(*bytes)),
            Self::FreePort(address) => write!(f, "free address and port {address}"),
            Self::User(name) => write!(f, "user {name}"),
            Self::Capability(capability) => fmt::Display::fmt(capability, f),
            Self::Folder(path) => write!(f, "folder {}", path.display()),
            Self::Kernel(feature) => fmt::Display::fmt(feature, f),
        }
    }
}

impl fmt::Display for Capability {
    /// The name, and what it is for.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NetAdmin => "CAP_NET_ADMIN, for rules, routes, devices and anchors",
            Self::NetBindService => "CAP_NET_BIND_SERVICE, for clients with ports below 1024",
            Self::NetRaw => "CAP_NET_RAW, for AF_XDP sockets",
            Self::Bpf => "CAP_BPF, for BPF programs",
            Self::SetUid => "CAP_SETUID, for the user of `runtime.user`",
            Self::SetGid => "CAP_SETGID, for the user of `runtime.user`",
        })
    }
}

impl fmt::Display for Feature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Tun => "TUN and TAP devices (CONFIG_TUN)",
            Self::Xdp => "AF_XDP (CONFIG_XDP_SOCKETS)",
            Self::LocalPortRange => "IP_LOCAL_PORT_RANGE (Linux 6.3)",
            Self::OutgoingPrograms => {
                "BPF programs for connect(2) and received packets (Linux 6.6)"
            }
        })
    }
}
