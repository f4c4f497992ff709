//! Finds the disk under a file system in sysfs, and the disks below a stacked device.

use std::path::{Path, PathBuf};

use super::System;

/// The driver of a disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Bus {
    Nvme,
    /// SCSI or SATA.
    Scsi,
    Ufs,
    /// A loop device, with its backing file if sysfs has one.
    Loop(Option<PathBuf>),
    /// A device of device mapper or md.
    Stacked(Stack),
    /// Any other driver, such as virtio.
    Other,
}

/// The structure of a device of device mapper or md.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stack {
    /// The disks below, sorted by name.
    pub below: Vec<Disk>,
    /// Whether it writes by new requests, which have no hints, instead of by clones of the
    /// requests that it receives, which keep them.
    pub makes_requests: bool,
}

/// Most levels of stacked devices that are followed.
const MOST_LEVELS: u32 = 8;

/// A disk, as sysfs describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Disk {
    /// The kernel's name, such as `nvme0n1`.
    pub name: String,
    pub bus: Bus,
    /// Number of its write streams, if the kernel has the attribute (Linux 6.16).
    pub max_write_streams: Option<u32>,
    /// NVMe: whether the driver's parameter `streams` is set (up to Linux 5.17).
    pub has_directive: bool,
}

/// Finds the disk with a device number; for file systems with numbers of their own (btrfs), the
/// disk that `source` names.
pub(super) fn find(system: &System, device: (u32, u32), source: Option<&str>) -> Option<Disk> {
    let (major, minor) = device;
    let by_number = system.root().join(format!("sys/dev/block/{major}:{minor}"));
    let by_name = source
        .and_then(|source| source.strip_prefix("/dev/"))
        .map(|name| system.root().join("sys/class/block").join(name));
    let folder = by_number
        .canonicalize()
        .ok()
        .or_else(|| by_name?.canonicalize().ok())?;
    in_folder(system, folder, MOST_LEVELS)
}

/// Returns the disk of a directory of sysfs, which may be that of one of its partitions.
fn in_folder(system: &System, folder: PathBuf, levels: u32) -> Option<Disk> {
    // The directory of a partition is in that of its disk.
    let folder = if folder.join("partition").exists() {
        folder.parent()?.to_owned()
    } else {
        folder
    };
    let name = folder.file_name()?.to_str()?.to_owned();
    let streams = std::fs::read_to_string(folder.join("queue/max_write_streams"));
    let parameter = system.read("sys/module/nvme_core/parameters/streams");
    Some(Disk {
        bus: bus(system, &name, &folder, levels),
        max_write_streams: streams.ok().and_then(|text| text.trim().parse().ok()),
        has_directive: parameter.is_ok_and(|text| matches!(text.trim(), "Y" | "1")),
        name,
    })
}

fn bus(system: &System, name: &str, folder: &Path, levels: u32) -> Bus {
    let below = below(system, folder, levels);
    if !below.is_empty() || name.starts_with("dm-") || name.starts_with("md") {
        return Bus::Stacked(Stack {
            below,
            makes_requests: makes_requests(folder),
        });
    }
    if name.starts_with("nvme") {
        return Bus::Nvme;
    }
    if name.starts_with("loop") {
        let file = std::fs::read_to_string(folder.join("loop/backing_file"));
        return Bus::Loop(
            file.ok()
                .map(|text| PathBuf::from(text.trim_end_matches('\n'))),
        );
    }
    if name.starts_with("sd") {
        let device = folder.join("device").canonicalize().unwrap_or_default();
        let is_ufs = |path: &Path| path.to_string_lossy().contains("ufs");
        return if is_ufs(&device) || is_ufs(folder) {
            Bus::Ufs
        } else {
            Bus::Scsi
        };
    }
    Bus::Other
}

/// Returns the disks below a stacked device, by its `slaves`.
fn below(system: &System, folder: &Path, levels: u32) -> Vec<Disk> {
    let Some(levels) = levels.checked_sub(1) else {
        return Vec::new();
    };
    let entries = std::fs::read_dir(folder.join("slaves"));
    let folders = entries.into_iter().flatten();
    let folders = folders.filter_map(|entry| entry.ok()?.path().canonicalize().ok());
    let mut disks: Vec<Disk> = folders
        .filter_map(|folder| in_folder(system, folder, levels))
        .collect();
    disks.sort_by(|one, other| one.name.cmp(&other.name));
    disks.dedup();
    disks
}

/// dm-crypt encrypts into new pages, and RAID with parity writes whole stripes: both by new
/// requests.
fn makes_requests(folder: &Path) -> bool {
    let begins = |file: &str, words: &[&str]| {
        let text = std::fs::read_to_string(folder.join(file)).unwrap_or_default();
        words.iter().any(|word| text.starts_with(word))
    };
    begins("dm/uuid", &["CRYPT-"]) || begins("md/level", &["raid4", "raid5", "raid6"])
}
