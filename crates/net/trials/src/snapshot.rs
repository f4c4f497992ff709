//! The network settings of the host in the namespace of the calling thread, as text: a service that
//! ends must leave them as they were.
//!
//! Source: ip(8), proc_sys_net(5). Deliberately absent: hugepages, and settings of a NIC that only
//! ethtool(8) shows.

use std::{
    collections::BTreeMap,
    ffi::OsStr,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

/// The device of anchors, which exists only while a gateway runs.
const ANCHORS: &str = "saigal";

/// Links, addresses, rules and routes as ip(8) prints them.
///
/// # Panics
/// If ip(8) fails.
#[track_caller]
pub fn network() -> String {
    let mut text = String::new();
    for arguments in [
        "-o link",
        "-o address",
        "-4 rule",
        "-6 rule",
        "-4 route show table all",
        "-6 route show table all",
    ] {
        text += &format!("# ip {arguments}\n{}", ip(arguments));
    }
    text
}

/// Every sysctl of the network with its value; those of the device `saigal` are left out.
///
/// # Panics
/// If `/proc/sys/net` cannot be listed.
pub fn sysctls() -> BTreeMap<PathBuf, String> {
    let mut values = BTreeMap::new();
    read(Path::new("/proc/sys/net"), &mut values);
    values
}

fn read(folder: &Path, values: &mut BTreeMap<PathBuf, String>) {
    let entries = fs::read_dir(folder);
    let entries = entries.unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    for entry in entries {
        let path = entry.expect("an entry of /proc").path();
        if path.file_name() == Some(OsStr::new(ANCHORS)) {
            continue;
        }
        if path.is_dir() {
            read(&path, values);
        } else if let Ok(value) = fs::read_to_string(&path) {
            // Some can only be written.
            values.insert(path, value);
        }
    }
}

/// Runs ip(8) in the network namespace of the calling thread; returns what it prints.
///
/// # Panics
/// If it fails; the message has its output.
#[track_caller]
pub fn ip(arguments: &str) -> String {
    let done = Command::new("ip").args(arguments.split(' ')).output();
    let done = done.unwrap_or_else(|error| panic!("ip: {error}"));
    let text = String::from_utf8_lossy(&done.stdout).into_owned();
    let errors = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "ip {arguments}: {text}{errors}");
    text
}
