//! `gateway.toml`: the settings of the gateway. `docs/gateway.md` explains each key.
//!
//! [`Settings::read`] reports all mistakes of a file at once, each with line, key, value and what
//! to write instead. [`Settings::to_toml`] is the way back: parsing its result gives equal
//! settings. [`Settings::needs`] lists what only the machine can tell.
//!
//! Deliberately absent: looking at the machine, and layers as `saiga.toml` has them. The gateway is
//! one service of a host with one file.

mod address;
mod conflict;
mod device;
mod dpdk;
mod keys;
mod need;
mod output;
mod reader;
mod serve;
mod service;
mod tcp;
mod value;
mod workers;

use std::path::Path;

pub use address::Route;
pub use device::{Addresses, Copying, Device, Kind, Mode, Port, Role};
pub use dpdk::{Dpdk, Memory};
pub use keys::{KEYS, Key};
pub use need::{Capability, Feature, Need, Requirement};
pub use serve::{Clients, Serve};
pub use service::{Capture, Metrics, Outgoing, Runtime};
pub use tcp::Tcp;
pub use value::{Bytes, InterfaceName, PciAddress};
pub use workers::{Polling, Workers};

pub(crate) use address::{everything, host, own};
pub(crate) use device::{plain as plain_device, vdev};
pub(crate) use dpdk::{eal, option};
pub(crate) use service::absolute;
pub(crate) use tcp::CONNECTIONS;
pub(crate) use value::{mac, plain as plain_text};
pub(crate) use workers::CPU_MAX;

use crate::file::{self, FileError, Problem};
use output::Output;
use reader::{Source, Table};

/// The usual place of the file.
pub const FILE: &str = "/etc/saiga/gateway.toml";

/// The settings of a gateway.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// The devices: at least one.
    pub devices: Vec<Device>,
    /// What is served; may be empty only if there are outgoing prefixes.
    pub serve: Vec<Serve>,
    /// CPUs and memory.
    pub workers: Workers,
    /// TCP.
    pub tcp: Tcp,
    /// What all DPDK devices have in common.
    pub dpdk: Dpdk,
    /// Connections to other hosts.
    pub outgoing: Outgoing,
    /// Metrics for Prometheus.
    pub metrics: Metrics,
    /// Defaults of captures.
    pub capture: Capture,
    /// The process.
    pub runtime: Runtime,
}

impl Settings {
    /// Reads a file.
    ///
    /// # Errors
    /// Returns [`FileError::Invalid`] with all mistakes of the file, [`FileError::Unreadable`] or
    /// [`FileError::NotSettings`].
    pub fn read(path: &Path) -> Result<Self, FileError> {
        file::read(path, Self::parse)
    }

    /// Parses the contents of a file.
    ///
    /// # Errors
    /// Returns all mistakes in the order of the lines, or only those of syntax if there are any.
    pub fn parse(text: &str) -> Result<Self, Vec<Problem>> {
        let (source, entries) = Source::new(text)?;
        let settings = read(&Table::root(&source, entries.get_ref()));
        let problems = source.into_problems();
        if problems.is_empty() {
            Ok(settings)
        } else {
            Err(problems)
        }
    }

    /// The settings as a file that has only the keys without their defaults.
    #[must_use]
    pub fn to_toml(&self) -> String {
        let Self {
            devices,
            serve,
            workers,
            tcp,
            dpdk,
            outgoing,
            metrics,
            capture,
            runtime,
        } = self;
        let mut out = Output::default();
        for one in devices {
            device::write(one, &mut out);
        }
        for one in serve {
            one.write(&mut out);
        }
        workers.write(&mut out);
        tcp.write(&mut out);
        dpdk.write(&mut out);
        outgoing.write(&mut out);
        metrics.write(&mut out);
        capture.write(&mut out);
        runtime.write(&mut out);
        out.finish()
    }

    /// What the machine must have for these settings, each thing once.
    #[must_use]
    pub fn needs(&self) -> Vec<Need> {
        need::needs(self)
    }
}

/// Reads and checks all tables. The value counts only if no problem was reported.
fn read(root: &Table<'_>) -> Settings {
    root.check_names();
    let [workers, tcp, dpdk, outgoing, metrics, capture, runtime] = [
        "workers", "tcp", "dpdk", "outgoing", "metrics", "capture", "runtime",
    ]
    .map(|name| root.table(name));
    let devices = root.tables("device").into_iter();
    let devices: Vec<_> = devices
        .filter_map(|table| device::read(&table).map(|device| (table, device)))
        .collect();
    let serve = root.tables("serve").into_iter();
    let serve: Vec<_> = serve.map(|table| (table, Serve::read(&table))).collect();
    let mut settings = Settings {
        devices: Vec::new(),
        serve: Vec::new(),
        workers: Workers::read(&workers),
        tcp: Tcp::read(&tcp),
        dpdk: Dpdk::read(&dpdk),
        outgoing: Outgoing::read(&outgoing),
        metrics: Metrics::read(&metrics),
        capture: Capture::read(&capture),
        runtime: Runtime::read(&runtime),
    };
    conflict::check(root, &devices, &serve, &settings);
    settings.devices = devices.into_iter().map(|(_, device)| device).collect();
    settings.serve = serve.into_iter().map(|(_, serve)| serve).collect();
    settings
}
