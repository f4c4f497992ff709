//! What `/proc/cpuinfo` and the firmware say of the machine: names of CPUs and hypervisors.
//!
//! x86 CPUs have a name there. Arm CPUs have the numbers of their maker and part (MIDR_EL1).

use crate::proc::field;

/// Implementers of Arm CPUs.
const IMPLEMENTERS: [(&str, &str); 8] = [
    ("0x41", "Arm"),
    ("0x46", "Fujitsu"),
    ("0x48", "HiSilicon"),
    ("0x4e", "NVIDIA"),
    ("0x61", "Apple"),
    ("0x70", "Phytium"),
    ("0xc0", "Ampere"),
    ("0x6d", "Microsoft"),
];
/// Implementer and part of Arm CPUs in servers.
const PARTS: [(&str, &str, &str); 13] = [
    ("0x41", "0xd08", "Cortex-A72"),
    ("0x41", "0xd0c", "Neoverse N1"),
    ("0x41", "0xd40", "Neoverse V1"),
    ("0x41", "0xd49", "Neoverse N2"),
    ("0x41", "0xd4f", "Neoverse V2"),
    ("0x41", "0xd83", "Neoverse V3AE"),
    ("0x41", "0xd84", "Neoverse V3"),
    ("0x41", "0xd85", "Cortex-X925"),
    ("0x41", "0xd87", "Cortex-A725"),
    ("0x41", "0xd8e", "Neoverse N3"),
    ("0x48", "0xd01", "TaiShan v110 (Kunpeng 920)"),
    ("0x48", "0xd02", "TaiShan v120"),
    ("0xc0", "0xac3", "Ampere-1"),
];
/// Words in the vendor or product of virtual machines.
const HYPERVISORS: [(&str, &str); 11] = [
    ("qemu", "QEMU"),
    ("kvm", "KVM"),
    ("vmware", "VMware"),
    ("virtualbox", "VirtualBox"),
    ("innotek", "VirtualBox"),
    ("xen", "Xen"),
    ("amazon ec2", "Amazon EC2"),
    ("google compute engine", "Google Compute Engine"),
    ("alibaba cloud", "Alibaba Cloud"),
    ("openstack", "OpenStack"),
    ("bochs", "Bochs"),
];

/// The name of the CPU; of a machine with several kinds, the names of all. `None` if the text has
/// none.
#[must_use]
pub fn cpu_model(cpuinfo: &str) -> Option<String> {
    for name in ["model name", "Model Name", "cpu model"] {
        if let Some(model) = field(cpuinfo, name).filter(|model| !model.is_empty()) {
            return Some(model.split_whitespace().collect::<Vec<_>>().join(" "));
        }
    }
    let mut models: Vec<String> = Vec::new();
    for part in cpuinfo.split("\n\n") {
        let model = arm_model(part);
        models.extend(model.filter(|model| !models.contains(model)));
    }
    (!models.is_empty()).then(|| models.join(", "))
}

/// The names of implementer and part, or their numbers.
fn arm_model(cpuinfo: &str) -> Option<String> {
    let (by, part) = (
        field(cpuinfo, "CPU implementer")?,
        field(cpuinfo, "CPU part")?,
    );
    let implementer = IMPLEMENTERS.iter().find(|(number, _)| *number == by);
    let Some((_, implementer)) = implementer else {
        return Some(format!("implementer {by}, part {part}"));
    };
    let name = PARTS
        .iter()
        .find(|(maker, number, _)| *maker == by && *number == part);
    let name = name.map_or_else(|| format!("part {part}"), |(_, _, name)| (*name).to_owned());
    Some(format!("{implementer} {name}"))
}

/// The hypervisor in the vendor or product of a virtual machine.
#[must_use]
pub fn hypervisor(product: &str) -> Option<&'static str> {
    let product = product.to_lowercase();
    let found = HYPERVISORS.iter().find(|(word, _)| product.contains(word));
    found.map(|(_, name)| *name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn models_of_arm_cpus_have_names() {
        let part = |by: &str, part: &str| format!("CPU implementer\t: {by}\nCPU part\t: {part}\n");
        let hybrid = format!(
            "{}\n{}\n{}",
            part("0x41", "0xd87"),
            part("0x41", "0xd85"),
            ""
        );
        for (cpuinfo, expected) in [
            (
                part("0x48", "0xd01"),
                "HiSilicon TaiShan v110 (Kunpeng 920)",
            ),
            (part("0x41", "0xfff"), "Arm part 0xfff"),
            (part("0x99", "0x001"), "implementer 0x99, part 0x001"),
            (hybrid, "Arm Cortex-A725, Arm Cortex-X925"),
            (
                "model name\t: Intel(R)  Xeon(R)\n".to_owned(),
                "Intel(R) Xeon(R)",
            ),
        ] {
            assert_eq!(cpu_model(&cpuinfo).as_deref(), Some(expected));
        }
        assert_eq!(cpu_model("processor: 0\n"), None);
    }
}
