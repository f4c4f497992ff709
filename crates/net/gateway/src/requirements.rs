//! Whether this machine has what the settings need. Changes nothing.
//!
//! Each [`Need`] is looked up by itself, so all that is missing is found at once. What only a try
//! would show, such as XDP in a driver, is left to the start of the gateway.

mod dpdk;
pub(crate) mod network;
mod networkd;
mod process;

use saiga_anchor::firewall;
use saiga_process::root::Root;

use crate::settings::{Kind, Need, Requirement, Settings};

/// The result of looking for one need.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Found {
    /// The machine has it.
    There,
    /// The machine lacks it; what is wrong, and what to do.
    Lacks(String),
    /// Only the start of the gateway tells.
    Untried,
}

impl Found {
    /// What an error says is missing.
    fn lacks(error: &impl std::error::Error) -> Self {
        let mut text = error.to_string();
        let mut source = error.source();
        while let Some(cause) = source {
            let cause_text = cause.to_string();
            if !text.contains(&cause_text) {
                text = format!("{text}: {cause_text}");
            }
            source = cause.source();
        }
        Self::Lacks(text)
    }

    fn when(is_there: bool, otherwise: impl FnOnce() -> String) -> Self {
        if is_there {
            Self::There
        } else {
            Self::Lacks(otherwise())
        }
    }
}

impl<T, E: std::error::Error> From<Result<T, E>> for Found {
    fn from(result: Result<T, E>) -> Self {
        match result {
            Ok(_) => Self::There,
            Err(error) => Self::lacks(&error),
        }
    }
}

/// Checks whether the machine meets one need of these settings.
#[must_use]
pub fn look(settings: &Settings, need: &Need) -> Found {
    match &need.requirement {
        Requirement::Interface(name) => network::interface(name),
        Requirement::Queues { interface, least } => network::queues(interface, *least),
        Requirement::NativeXdp(_) | Requirement::ZeroCopy(_) => Found::Untried,
        Requirement::Mtu { interface, least } => network::mtu(interface, *least),
        Requirement::Vlan { interface, vlan } => network::vlan(interface, *vlan),
        Requirement::InterfaceAddress { interface, vlan } => {
            network::interface_address(interface, *vlan)
        }
        Requirement::TapName(name) => network::tap_name(name),
        Requirement::Address(address) => network::address(*address),
        Requirement::FreePort(address) => network::free_port(*address),
        Requirement::Kernel(feature) => network::feature(*feature),
        Requirement::DpdkPlugin => dpdk::plugin(settings),
        Requirement::PciDevice(card) => dpdk::card(settings, *card),
        Requirement::Card(mac) => dpdk::card_with(settings, *mac),
        Requirement::HugePages { node, .. } => dpdk::huge_pages(settings, *node),
        Requirement::HugeDir(path) => dpdk::huge_dir(path),
        Requirement::Cpu(cpu) => process::cpu(*cpu),
        Requirement::Node(node) => process::node(*node),
        Requirement::Descriptors(count) => process::descriptors(*count),
        Requirement::Memory(bytes) => process::memory(*bytes),
        Requirement::User(user) => process::user(user),
        Requirement::Capability(capability) => process::capability(*capability),
        Requirement::Folder(path) => process::folder(path),
    }
}

/// What can go wrong on this host while a gateway serves, with what to do against it.
#[must_use]
pub fn warnings(settings: &Settings) -> Vec<String> {
    let devices = settings.devices.iter();
    let devices = devices.flat_map(|device| match &device.kind {
        Kind::Xdp { interface, .. } => network::warnings(interface, device.vlan),
        Kind::Tap { .. } | Kind::Dpdk { .. } | Kind::Memif { .. } => Vec::new(),
    });
    devices.chain(networkd::warning(&Root::host())).collect()
}

/// Lines about packet filters: rules that do not apply to clients of the gateway, and programs
/// whose rules cannot be read.
#[must_use]
pub fn packet_filters(settings: &Settings) -> Vec<String> {
    let mut ports: Vec<u16> = settings
        .serve
        .iter()
        .flat_map(|one| one.ports.clone())
        .collect();
    ports.sort_unstable();
    ports.dedup();
    let firewall::Report { bypassed, not_read } = firewall::look(&ports);
    let bypassed = bypassed.iter().map(ToString::to_string);
    let not_read = not_read.iter().map(|one| {
        let firewall::NotRead { program, reason } = one;
        format!("rules of {program} are unknown: {reason}")
    });
    bypassed.chain(not_read).collect()
}
