//! Describes this machine for the report: CPU, kernel, memory, hypervisor, distribution.
//!
//! In: `/proc`, `/sys` and `/etc/os-release`. Out: the `host` of `result.json`; unreadable values
//! are `unknown`, 0 or left out.

use std::collections::BTreeMap;
use std::fs;

use saiga_process::proc::{bytes, field};
use serde_json::{Value, json};

use crate::result::Host;

const UNKNOWN: &str = "unknown";

/// Describes this machine; `cores` is the number of CPUs that the experiment may use.
#[must_use]
pub fn describe(cores: usize) -> Host {
    let cpuinfo = read("/proc/cpuinfo");
    Host {
        cpu: field(&cpuinfo, "model name")
            .unwrap_or(std::env::consts::ARCH)
            .to_owned(),
        cores: u32::try_from(cores).unwrap_or(u32::MAX),
        kernel: word("/proc/sys/kernel/osrelease").unwrap_or_else(|| UNKNOWN.to_owned()),
        memory: bytes(&read("/proc/meminfo"), "MemTotal").unwrap_or(0),
        virtualisation: virtualisation(&cpuinfo),
        extra: extra(),
    }
}

/// The hypervisor's name from its DMI tables, or `none` if the CPU flag `hypervisor` is not set.
fn virtualisation(cpuinfo: &str) -> String {
    let guest = field(cpuinfo, "flags")
        .is_some_and(|flags| flags.split_whitespace().any(|flag| flag == "hypervisor"));
    if !guest {
        return "none".to_owned();
    }
    let named = ["sys_vendor", "product_name"]
        .iter()
        .filter_map(|name| word(&format!("/sys/class/dmi/id/{name}")))
        .collect::<Vec<_>>()
        .join(" ");
    if named.is_empty() {
        "unnamed hypervisor".to_owned()
    } else {
        named
    }
}

fn extra() -> BTreeMap<String, Value> {
    let mut extra = BTreeMap::new();
    if let Some(name) = os_release(&read("/etc/os-release")) {
        extra.insert("distribution".to_owned(), json!(name));
    }
    if let Some(governor) = word("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor") {
        extra.insert("governor".to_owned(), json!(governor));
    }
    if let Ok(nodes) = fs::read_dir("/sys/devices/system/node") {
        let is_node = |name: &str| {
            name.strip_prefix("node")
                .is_some_and(|number| number.parse::<u32>().is_ok())
        };
        let count = nodes
            .flatten()
            .filter(|e| e.file_name().to_str().is_some_and(is_node))
            .count();
        extra.insert("numa_nodes".to_owned(), json!(count));
    }
    extra
}

fn os_release(text: &str) -> Option<String> {
    let name = text
        .lines()
        .find_map(|line| line.strip_prefix("PRETTY_NAME="))?;
    Some(name.trim_matches('"').to_owned())
}

fn word(path: &str) -> Option<String> {
    let text = read(path).trim().to_owned();
    (!text.is_empty()).then_some(text)
}

fn read(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hypervisor_and_a_distribution_are_found() {
        let cpuinfo = "processor\t: 0\nmodel name\t: Some CPU @ 2 GHz\nflags\t\t: fpu hypervisor\n";
        assert_ne!(virtualisation(cpuinfo), "none");
        assert_eq!(virtualisation("flags\t: fpu\n"), "none");
        let release = "NAME=Debian\nPRETTY_NAME=\"Debian GNU/Linux 12\"\n";
        assert_eq!(os_release(release).as_deref(), Some("Debian GNU/Linux 12"));
    }

    #[test]
    fn this_machine_has_a_kernel_and_memory() {
        let host = describe(2);
        assert_ne!(host.kernel, UNKNOWN);
        assert!(host.memory > 1 << 20);
    }
}
