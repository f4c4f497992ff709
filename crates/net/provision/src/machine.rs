//! The machine whose values are read and changed.

use std::ffi::OsStr;
use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::process::{Command, Stdio};

use saiga_interface::{Route, RouteKind, Snapshot};
use saiga_process::root::Root;

/// The kernel's own default (`/proc/sys/kernel/modprobe`).
const MODPROBE: &str = "/sbin/modprobe";
/// Part of kmod, like modprobe(8). `modprobe -r` would also unload modules that the named one
/// needed, even those that were loaded before.
const RMMOD: &str = "/sbin/rmmod";

/// A machine. Tests have one in a directory.
pub trait Machine {
    /// The directory that holds `proc` and `sys`.
    fn root(&self) -> &Root;

    /// Writes a value to an existing file of the kernel, such as `/sys/bus/pci/drivers_probe`.
    ///
    /// # Errors
    /// The file does not exist, or the kernel refuses the value.
    fn write(&mut self, file: &str, value: &str) -> io::Result<()>;

    /// Loads a module of the kernel with those that it needs.
    ///
    /// # Errors
    /// The message of modprobe(8).
    fn load(&mut self, module: &str) -> io::Result<()>;

    /// Unloads this module of the kernel, and no other.
    ///
    /// # Errors
    /// The message of rmmod(8).
    fn unload(&mut self, module: &str) -> io::Result<()>;

    /// What the interface would lose with its driver: addresses, routes and VLANs, in words.
    ///
    /// # Errors
    /// The errors of netlink.
    fn network(&self, interface: &str) -> io::Result<Vec<String>>;
}

/// This machine, with the network namespace of the calling thread.
#[derive(Debug)]
pub struct Host(Root);

impl Host {
    /// This machine, with `/proc` and `/sys` of the kernel.
    #[must_use]
    pub fn new() -> Self {
        Self(Root::host())
    }
}

impl Default for Host {
    fn default() -> Self {
        Self::new()
    }
}

impl Machine for Host {
    fn root(&self) -> &Root {
        &self.0
    }

    fn write(&mut self, file: &str, value: &str) -> io::Result<()> {
        let mut options = OpenOptions::new();
        let mut file = options.write(true).truncate(true).open(self.0.path(file))?;
        // One system call: the kernel takes each as a value.
        match file.write(value.as_bytes())? {
            written if written == value.len() => Ok(()),
            _ => Err(io::ErrorKind::WriteZero.into()),
        }
    }

    fn load(&mut self, module: &str) -> io::Result<()> {
        run(MODPROBE, module)
    }

    fn unload(&mut self, module: &str) -> io::Result<()> {
        run(RMMOD, module)
    }

    fn network(&self, interface: &str) -> io::Result<Vec<String>> {
        // An interface that sysfs shows can be absent here: sysfs has the network namespace of the
        // process that mounted it.
        let snapshot = Snapshot::take(OsStr::new(interface)).map_err(io::Error::other)?;
        let vlans = snapshot.vlans.iter();
        let vlans = vlans.map(|vlan| format!("VLAN {}", vlan.link.name.to_string_lossy()));
        let addresses = snapshot.device.addresses.iter();
        let addresses = addresses.map(|one| one.address.to_string());
        // The others follow from the addresses.
        let is_own = |one: &&Route| one.kind == RouteKind::Unicast;
        let routes = snapshot.device.routes.iter().filter(is_own);
        let routes = routes.map(|one| format!("route {}", one.destination));
        Ok(vlans.chain(addresses).chain(routes).collect())
    }
}

fn run(program: &str, module: &str) -> io::Result<()> {
    let mut command = Command::new(program);
    let output = command.arg(module).stdin(Stdio::null()).output()?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(io::Error::other(said.trim().to_owned()))
}
