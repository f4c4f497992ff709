//! The network settings of the host in the namespace of the calling thread, as text.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::world::ip;

/// Links, addresses, rules and routes as ip(8) prints them.
pub(crate) fn network() -> String {
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
pub(crate) fn sysctls() -> BTreeMap<PathBuf, String> {
    let mut values = BTreeMap::new();
    read(Path::new("/proc/sys/net"), &mut values);
    values
}

fn read(folder: &Path, values: &mut BTreeMap<PathBuf, String>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.ends_with("saigal") {
            continue;
        }
        if path.is_dir() {
            read(&path, values);
        } else if let Ok(value) = fs::read_to_string(&path) {
            // Some can be written alone.
            values.insert(path, value);
        }
    }
}
