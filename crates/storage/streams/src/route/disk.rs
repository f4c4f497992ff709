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
    /// Device mapper or md, over these disks.
    Stacked(Vec<String>),
    /// Anything else, virtio among it.
    Other,
}

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
        bus: bus(&name, &folder),
        max_write_streams: streams.ok().and_then(|text| text.trim().parse().ok()),
        has_directive: told.is_ok_and(|text| matches!(text.trim(), "Y" | "1")),
        name,
    })
}

fn bus(name: &str, folder: &Path) -> Bus {
    let below: Vec<String> = std::fs::read_dir(folder.join("slaves"))
        .map(|entries| {
            let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
            names.collect()
        })
        .unwrap_or_default();
    if !below.is_empty() || name.starts_with("dm-") || name.starts_with("md") {
        return Bus::Stacked(below);
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
