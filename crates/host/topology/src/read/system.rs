//! Hardware and kernel as a whole.

use saiga_process::hardware::{cpu_model, hypervisor};
use saiga_process::proc::field;

use crate::machine::System;
use crate::read::ReadError;
use crate::read::container;
use crate::read::disks::selected;
use crate::read::nodes;
use crate::source::Source;

const DMI: &str = "/sys/class/dmi/id";
/// `AT_PAGESZ` of `include/uapi/linux/auxvec.h`.
const AT_PAGESZ: u64 = 6;
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
    // Arm CPUs have no such flag. This is the model of virtual machines without ACPI (kernel
    // Documentation/devicetree/bindings/arm/linux,dummy-virt.yaml).
    let model = source.word("/proc/device-tree/compatible")?;
    let is_guest = is_guest || model.as_deref() == Some("linux,dummy-virt");
    let xen = source.word("/sys/hypervisor/type")?;
    let product = product.unwrap_or_default();
    let is_hyper_v = product == "Microsoft Corporation Virtual Machine";
    if let Some(name) = hypervisor(product) {
        kinds.push(format!("virtual machine ({name})"));
    } else if is_hyper_v {
        kinds.push("virtual machine (Hyper-V)".to_owned());
    } else if let Some(name) = xen.filter(|name| name != "none") {
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
