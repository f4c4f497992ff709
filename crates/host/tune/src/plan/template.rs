//! The targets of a knob on any machine: those on a machine with one device of each kind, in which
//! numbers and names of devices stand for all others.

use saiga_topology::machine::{Cpu, Disk, HugePages, Irq, Limits, Machine, Nic, Node, System};

use crate::target::Target;

/// Stands for every name of a device. A slash is in no name.
const NAME: &str = "/name/";

/// A machine with one of everything.
pub(super) fn machine() -> Machine {
    let hugepages = vec![HugePages {
        page_bytes: 2 << 20,
        total: 0,
        free: 0,
    }];
    Machine {
        system: System {
            architecture: String::new(),
            kernel: String::new(),
            cpu_model: None,
            page_bytes: 4096,
            command_line: String::new(),
            product: None,
            virtualisation: None,
            iommu: false,
            hugepages: hugepages.clone(),
            transparent_hugepages: None,
        },
        cpus: vec![cpu()],
        caches: Vec::new(),
        nodes: vec![Node {
            id: 0,
            cpus: vec![0],
            memory_bytes: 0,
            free_bytes: 0,
            distances: vec![10],
            hugepages,
        }],
        nics: vec![nic()],
        disks: vec![disk()],
        irqs: vec![irq()],
        limits: Limits {
            cpus: vec![0],
            nodes: vec![0],
            cpu_quota: None,
            memory_bytes: None,
            cgroup_version: None,
        },
    }
}

fn cpu() -> Cpu {
    Cpu {
        id: 0,
        is_online: true,
        is_isolated: false,
        node: 0,
        package: None,
        die: None,
        cluster: None,
        core: 0,
        performance: None,
    }
}

fn nic() -> Nic {
    Nic {
        name: NAME.to_owned(),
        driver: None,
        device: None,
        node: None,
        is_up: true,
        speed_mbit_s: None,
        mtu: None,
        rx_queues: 1,
        tx_queues: 1,
        irqs: vec![0],
    }
}

fn disk() -> Disk {
    Disk {
        name: NAME.to_owned(),
        model: None,
        driver: None,
        device: None,
        node: None,
        bytes: 0,
        is_rotational: false,
        queues: 1,
        scheduler: None,
        requests: None,
        irqs: Vec::new(),
        mounts: Vec::new(),
    }
}

fn irq() -> Irq {
    Irq {
        number: 0,
        actions: Vec::new(),
        affinity: None,
        effective: None,
        node: None,
        count: 0,
    }
}

/// Whether `target` is the target of the template for some device.
pub(super) fn matches(template: &Target, target: &Target) -> bool {
    match (template, target) {
        (Target::File { path: known, form }, Target::File { path, form: found }) => {
            is_path(known, path) && form == found
        }
        (Target::Nic { setting: known, .. }, Target::Nic { nic, setting }) => {
            known == setting && is_name(nic)
        }
        (known, target) => known == target,
    }
}

/// Whether `path` is the path of the template for some device.
pub(super) fn is_path(known: &str, path: &str) -> bool {
    let Some((before, after)) = known.split_once(NAME) else {
        return without_numbers(known) == without_numbers(path);
    };
    let rest = path
        .strip_prefix(before)
        .and_then(|rest| rest.split_once('/'));
    // A known path has the name once.
    rest.is_some_and(|(name, rest)| {
        let after = after.trim_start_matches('/');
        is_name(name) && without_numbers(after) == without_numbers(rest)
    })
}

/// The name of the device in a target, where the template has one.
pub(super) fn device<'a>(template: &Target, target: &'a Target) -> Option<&'a str> {
    match (template, target) {
        (Target::Nic { .. }, Target::Nic { nic, .. }) => Some(nic),
        (Target::File { path: known, .. }, Target::File { path, .. }) => {
            let (before, _) = known.split_once(NAME)?;
            Some(path.strip_prefix(before)?.split_once('/')?.0)
        }
        _ => None,
    }
}

/// Names of devices have no other characters; a control character would reach a terminal.
fn is_name(name: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || "._-:@!+".contains(c);
    !["", ".", ".."].contains(&name) && name.chars().all(is_part)
}

/// Each number as one `#`.
fn without_numbers(path: &str) -> String {
    let mut text = String::new();
    for c in path.chars() {
        let c = if c.is_ascii_digit() { '#' } else { c };
        if c != '#' || !text.ends_with('#') {
            text.push(c);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::form::Form;

    #[test]
    fn a_path_is_that_of_the_knob_for_some_device() {
        let file = |path: &str| Target::file(path, Form::Words);
        for (known, path, expected) in [
            (
                "/proc/irq/0/smp_affinity_list",
                "/proc/irq/128/smp_affinity_list",
                true,
            ),
            (
                "/proc/irq/0/smp_affinity_list",
                "/proc/irq/../smp_affinity_list",
                false,
            ),
            (
                "/sys/block//name//queue/scheduler",
                "/sys/block/nvme0n1/queue/scheduler",
                true,
            ),
            (
                "/sys/block//name//queue/scheduler",
                "/sys/block/../queue/scheduler",
                false,
            ),
            (
                "/sys/block//name//queue/scheduler",
                "/sys/block/a/b/queue/scheduler",
                false,
            ),
            (
                "/sys/class/net//name//queues/tx-0/x",
                "/sys/class/net/eth0/queues/tx-12/x",
                true,
            ),
            (
                "/proc/sys/vm/swappiness",
                "/proc/sys/vm/panic_on_oom",
                false,
            ),
        ] {
            assert_eq!(matches(&file(known), &file(path)), expected, "{path}");
        }
    }
}
