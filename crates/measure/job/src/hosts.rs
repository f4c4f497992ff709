//! The two hosts of a run, for files with `[hosts]`.
//!
//! In: a file and an arm. Out: the hosts of `saiga_hosts` for the one server that such an arm has.
//! Deliberately absent: the file's checks, which `saiga_experiment::file` makes.

use std::path::{Path, PathBuf};

use saiga_experiment::arm::ArmKind;
use saiga_experiment::file::{Arm, Experiment};
use saiga_hosts::{Layout, Over};

/// The address of a server on this host.
const LOOPBACK: &str = "127.0.0.1";

/// The hosts of `arm`; `None` if server and client are on this host. `tool` is the path of this
/// program.
pub(crate) fn layout(file: &Experiment, arm: &Arm, tool: &Path) -> Option<Layout> {
    let over = Over {
        wire: file.wire?,
        tool: tool.to_owned(),
    };
    let server = arm.servers.first()?;
    // Only the kind counts here; `saiga run` finds the library.
    let kind = if arm.gateway {
        ArmKind::Gateway(PathBuf::new())
    } else {
        ArmKind::Kernel
    };
    let cpus = [server.launch.cpus.clone(), Vec::new()];
    Some(over.layout(&kind, server.port?, &cpus))
}

/// The address of the servers: that of the server's host if they have a network of their own.
pub(crate) fn address(network: Option<&Path>) -> &'static str {
    match network {
        Some(_) => saiga_hosts::SERVER,
        None => LOOPBACK,
    }
}
