//! Describes this machine for the report: CPU, kernel, memory, hypervisor, distribution.
//!
//! In: `/proc`, `/sys` and `/etc/os-release`. Out: the `host` of `result.json`; unreadable values
//! are `unknown`, 0 or left out.

use std::collections::BTreeMap;
use std::fs;

use saiga_process::hardware::{cpu_model, hypervisor};
use saiga_process::proc::{bytes, field};
use serde_json::{Value, json};

use crate::result::Host;

const UNKNOWN: &str = "unknown";

/// Describes this machine; `cores` is the number of CPUs that the experiment may use.
#[must_use]
pub fn describe(cores: usize) -> Host {
    let cpuinfo = read("/proc/cpuinfo");
    Host {
        cpu: cpu_model(&cpuinfo).unwrap_or_else(|| std::env::consts::ARCH.to_owned()),
        cores: u32::try_from(cores).unwrap_or(u32::MAX),
        kernel: word("/proc/sys/kernel/osrelease").unwrap_or_else(|| UNKNOWN.to_owned()),
        memory: bytes(&read("/proc/meminfo"), "MemTotal").unwrap_or(0),
        virtualisation: virtualisation(&cpuinfo, &product()),
        extra: extra(),
    }
}

/// The hypervisor's name, or `none`. x86 CPUs of a guest have the flag `hypervisor`; Arm CPUs have
/// no flag for it, so the product must be a known one.
fn virtualisation(cpuinfo: &str, product: &str) -> String {
    let is_guest = match field(cpuinfo, "flags") {
        Some(flags) => flags.split_whitespace().any(|flag| flag == "hypervisor"),
        None => hypervisor(product).is_some() || product == "linux,dummy-virt",
    };
    match product {
        _ if !is_guest => "none".to_owned(),
        "" => "unnamed hypervisor".to_owned(),
        product => product.to_owned(),
    }
}

/// Vendor and product by the DMI tables, or the kind of machine by the device tree; may be empty.
fn product() -> String {
    let names = ["sys_vendor", "product_name"];
    let dmi = names.map(|name| word(&format!("/sys/class/dmi/id/{name}")));
    let dmi: Vec<String> = dmi.into_iter().flatten().collect();
    if dmi.is_empty() {
        return word("/proc/device-tree/compatible").unwrap_or_default();
    }
    dmi.join(" ")
}

fn extra() -> BTreeMap<String, Value> {
    let mut extra = BTreeMap::new();
    if let Some(name) = os_release(&read("/etc/os-release")) {
        extra.insert("distribution".to_owned(), json!(name));
    }
    if let Some(governor) = word("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor") {
        extra.insert("governor".to_owned(), json!(governor));
    }
    // Kernels for Arm are built with other sizes, too, and their figures differ.
    let page_kib = rustix::param::page_size() / 1024;
    if page_kib != 4 {
        extra.insert("page_size".to_owned(), json!(format!("{page_kib} KiB")));
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
    let text = read(path).trim_matches(['\0', '\n', ' ']).to_owned();
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
        let arm = "CPU implementer\t: 0x41\nFeatures\t: fp\n";
        for (cpuinfo, product, expected) in [
            (cpuinfo, "Some Cloud", "Some Cloud"),
            (cpuinfo, "", "unnamed hypervisor"),
            ("flags\t: fpu\n", "OpenStack", "none"),
            (arm, "Huawei TaiShan 200", "none"),
            (arm, "Amazon EC2 c7g.large", "Amazon EC2 c7g.large"),
            (arm, "linux,dummy-virt", "linux,dummy-virt"),
        ] {
            assert_eq!(virtualisation(cpuinfo, product), expected);
        }
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
