//! Hardware and kernel as a whole.

use saiga_process::proc::field;

use crate::machine::System;
use crate::read::ReadError;
use crate::read::container::{self, named};
use crate::read::disks::selected;
use crate::read::nodes;
use crate::source::Source;

const DMI: &str = "/sys/class/dmi/id";
/// `AT_PAGESZ` of `include/uapi/linux/auxvec.h`.
const AT_PAGESZ: u64 = 6;
/// Implementers of Arm CPUs (MIDR_EL1).
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
pub(super) fn read(source: &Source) -> Result<System, ReadError> {
    let cpuinfo = source.text("/proc/cpuinfo")?.unwrap_or_default();
    let architecture = architecture(source, &cpuinfo)?;
    let command_line = source.text("/proc/cmdline")?.unwrap_or_default();
    let product = product(source)?;
    let hugepages = nodes::hugepages(source, "/sys/kernel/mm/hugepages")?;
    let transparent = "/sys/kernel/mm/transparent_hugepage/enabled";
    Ok(System {
        kernel: kernel(source)?,
        cpu_model: cpu_model(&cpuinfo),
        page_bytes: page_bytes(source, &architecture)?,
        virtualisation: virtualisation(source, &cpuinfo, product.as_deref())?,
        iommu: iommu(source, &command_line)?,
        transparent_hugepages: source.word(transparent)?.map(|text| selected(&text)),
        hugepages,
        product,
        command_line,
        architecture,
    })
}

/// Kernels since 6.1 name their architecture; for older ones the form of cpuinfo tells it.
fn architecture(source: &Source, cpuinfo: &str) -> Result<String, ReadError> {
    if let Some(name) = source.word("/proc/sys/kernel/arch")? {
        return Ok(name);
    }
    let has = |name: &str| field(cpuinfo, name).is_some();
    let guess = if has("CPU implementer") {
        "aarch64"
    } else if field(cpuinfo, "flags").is_some_and(|flags| !flags.split(' ').any(|it| it == "lm")) {
        "i686"
    } else if has("flags") {
        "x86_64"
    } else if field(cpuinfo, "cpu").is_some_and(|cpu| cpu.starts_with("POWER")) {
        "ppc64le"
    } else if has("isa") {
        "riscv64"
    } else if has("bogomips per cpu") {
        "s390x"
    } else {
        "unknown"
    };
    Ok(guess.to_owned())
}

/// The release, or the third word of `Linux version 5.10.0 (...)`.
fn kernel(source: &Source) -> Result<String, ReadError> {
    if let Some(release) = source.word("/proc/sys/kernel/osrelease")? {
        return Ok(release);
    }
    let version = source.word("/proc/version")?;
    let release = version
        .as_deref()
        .and_then(|text| text.split_whitespace().nth(2));
    Ok(release.unwrap_or("unknown").to_owned())
}

fn cpu_model(cpuinfo: &str) -> Option<String> {
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

/// The page size that the kernel tells each process. A recorded tree without it has huge pages of
/// sizes that only one page size allows; other machines have 4 KiB.
fn page_bytes(source: &Source, architecture: &str) -> Result<u64, ReadError> {
    let auxiliary = source.bytes("/proc/self/auxv")?.unwrap_or_default();
    let (words, _) = auxiliary.as_chunks::<8>();
    for pair in words.chunks_exact(2) {
        if let [key, value] = pair
            && u64::from_le_bytes(*key) == AT_PAGESZ
        {
            return Ok(u64::from_le_bytes(*value));
        }
    }
    let has = |kib: u64| source.exists(&format!("/sys/kernel/mm/hugepages/hugepages-{kib}kB"));
    Ok(match architecture {
        "aarch64" if has(524_288)? => 65_536,
        "aarch64" if has(32_768)? && !has(64)? => 16_384,
        "ppc64le" => 65_536,
        _ => 4096,
    })
}

fn product(source: &Source) -> Result<Option<String>, ReadError> {
    let vendor = source.word(&format!("{DMI}/sys_vendor"))?;
    let product = source.word(&format!("{DMI}/product_name"))?;
    let name = match (vendor, product) {
        // "HP", "HP EliteBook 840"
        (Some(vendor), Some(product)) if !product.starts_with(&vendor) => {
            Some(format!("{vendor} {product}"))
        }
        (vendor, product) => product.or(vendor),
    };
    if name.is_some() {
        return Ok(name);
    }
    // Arm boards without ACPI.
    source.word("/proc/device-tree/model")
}

/// The container or virtual machine in which the kernel or this process runs.
fn virtualisation(
    source: &Source,
    cpuinfo: &str,
    product: Option<&str>,
) -> Result<Option<String>, ReadError> {
    let mut kinds: Vec<String> = container::of_this_process(source)?.into_iter().collect();
    let is_guest = field(cpuinfo, "flags")
        .is_some_and(|flags| flags.split_whitespace().any(|flag| flag == "hypervisor"));
    let hypervisor = source.word("/sys/hypervisor/type")?;
    let product = product.unwrap_or_default();
    let is_hyper_v = product == "Microsoft Corporation Virtual Machine";
    if let Some(name) = named(product, &HYPERVISORS) {
        kinds.push(format!("virtual machine ({name})"));
    } else if is_hyper_v {
        kinds.push("virtual machine (Hyper-V)".to_owned());
    } else if let Some(name) = hypervisor.filter(|name| name != "none") {
        kinds.push(format!("virtual machine ({name})"));
    } else if is_guest {
        kinds.push("virtual machine".to_owned());
    }
    Ok((!kinds.is_empty()).then(|| kinds.join(", ")))
}

/// Whether devices use translated addresses: an IOMMU exists and not all groups are passed through.
fn iommu(source: &Source, command_line: &str) -> Result<bool, ReadError> {
    if source.names("/sys/class/iommu")?.is_empty() {
        return Ok(false);
    }
    let groups = "/sys/kernel/iommu_groups";
    let mut kinds = Vec::new();
    for group in source.numbered(groups, "")? {
        kinds.extend(source.word(&format!("{groups}/{group}/type"))?);
    }
    if !kinds.is_empty() {
        return Ok(kinds.iter().any(|kind| kind.starts_with("DMA")));
    }
    let mut options = command_line.split_whitespace();
    Ok(!options.any(|option| matches!(option, "iommu.passthrough=1" | "iommu=pt")))
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
