//! The disk under a file system, from sysfs.

use std::path::{Path, PathBuf};

use super::System;

/// What a disk hangs on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Bus {
    /// NVMe.
    Nvme,
    /// SCSI, and SATA behind it.
    Scsi,
    /// UFS.
    Ufs,
    /// A loop device, with its file if it says so.
    Loop(Option<PathBuf>),
    /// Device mapper or md.
    Stacked(Stack),
    /// Anything else, virtio among it.
    Other,
}

/// What a device of device mapper or md is made of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stack {
    /// The disks below, in the order of their names.
    pub below: Vec<Disk>,
    /// Whether it writes by requests of its own, which have no hints, instead of by clones of those that it gets.
    pub makes_requests: bool,
}

/// Levels of device mapper and md above each other that are looked through.
const MOST_LEVELS: u32 = 8;

/// A disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Disk {
    /// As the kernel calls it: `nvme0n1`.
    pub name: String,
    /// What it hangs on.
    pub bus: Bus,
    /// How many write streams it takes, when the kernel says that at all (6.16).
    pub max_write_streams: Option<u32>,
    /// NVMe: whether the driver was told to use the streams directive (up to 5.17).
    pub has_directive: bool,
}

/// The disk with this device number; or, for file systems with numbers of their own, the one that `source` names.
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

/// The disk of which this is the folder in sysfs, or of a partition of which it is.
fn in_folder(system: &System, folder: PathBuf, levels: u32) -> Option<Disk> {
    // A partition lies in the folder of its disk.
    let folder = if folder.join("partition").exists() {
        folder.parent()?.to_owned()
    } else {
        folder
    };
    let name = folder.file_name()?.to_str()?.to_owned();
    let streams = std::fs::read_to_string(folder.join("queue/max_write_streams"));
    let told = system.read("sys/module/nvme_core/parameters/streams");
    Some(Disk {
        bus: bus(system, &name, &folder, levels),
        max_write_streams: streams.ok().and_then(|text| text.trim().parse().ok()),
        has_directive: told.is_ok_and(|text| matches!(text.trim(), "Y" | "1")),
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

/// The disks below a device.
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

/// dm-crypt encrypts into pages of its own, and RAID with parity writes whole stripes.
fn makes_requests(folder: &Path) -> bool {
    let begins = |file: &str, words: &[&str]| {
        let text = std::fs::read_to_string(folder.join(file)).unwrap_or_default();
        words.iter().any(|word| text.starts_with(word))
    };
    begins("dm/uuid", &["CRYPT-"]) || begins("md/level", &["raid4", "raid5", "raid6"])
}
