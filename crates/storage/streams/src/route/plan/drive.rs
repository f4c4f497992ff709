//! Reads the drive of a plan from sysfs, and refuses a drive with anything but the data directory:
//! a plan deletes everything on it.

use std::fmt::Display;
use std::path::Path;

use super::{Data, PlanError, places};
use crate::route::{Controller, Mount, System, controller, disk};

/// A drive with one namespace.
#[derive(Debug)]
pub(super) struct Drive {
    pub(super) controller: Controller,
    /// The kernel's name of its disk.
    pub(super) disk: String,
    /// The kernel's name of the mounted partition; `None` if the whole disk is mounted.
    pub(super) partition: Option<String>,
    /// Size of its namespace. Capacity outside namespaces is not in sysfs.
    pub(super) bytes: u64,
    /// Size of a logical block in bytes.
    pub(super) block: u64,
    /// The ID of its namespace (NSID).
    pub(super) namespace: u64,
}

impl Drive {
    /// Returns the path that nvme-cli takes.
    pub(super) fn device(&self) -> String {
        format!("/dev/{}", self.controller.name)
    }

    /// Returns the common prefix of the names of its disks.
    pub(super) fn stem(&self) -> &str {
        let parts = self.disk.rsplit_once('n');
        parts.map_or(self.disk.as_str(), |(stem, _)| stem)
    }
}

/// Returns the drive of a data directory.
///
/// # Errors
/// The drive holds other data, which a plan would delete too, or sysfs lacks an attribute of it.
pub(super) fn drive(system: &System, data: &Data<'_>) -> Result<Drive, PlanError> {
    let disk = data.disk;
    let controller = controller(system, disk)?;
    let refused = |why: String| PlanError::Drive {
        disk: disk.to_owned(),
        why,
    };
    let folder = system.root().join("sys/class/block").join(disk);
    let folder = folder
        .canonicalize()
        .map_err(|error| refused(error.to_string()))?;
    let beside = names(folder.parent().unwrap_or(&folder), is_namespace);
    if beside.len() > 1 {
        return Err(refused(format!(
            "the drive has {} namespaces ({}), and a plan would delete all of them",
            beside.len(),
            beside.join(", ")
        )));
    }
    let is_partition = |name: &str| folder.join(name).join("partition").exists();
    let partitions = names(&folder, is_partition);
    if partitions.len() > 1 {
        return Err(refused(format!(
            "the disk has {} partitions ({}), and a plan would delete all of them",
            partitions.len(),
            partitions.join(", ")
        )));
    }
    alone(system, data)?;
    let number = |name: &str| -> Option<u64> {
        let text = std::fs::read_to_string(folder.join(name)).ok()?;
        text.trim().parse().ok()
    };
    let unknown = || refused(format!("{} has no valid size", folder.display()));
    let bytes = number("size").ok_or_else(unknown)?.saturating_mul(512);
    let block = number("queue/logical_block_size").filter(|block| *block > 0);
    let namespace = number("nsid").ok_or_else(|| {
        refused(format!(
            "{} does not have the ID of the namespace (nsid)",
            folder.display()
        ))
    })?;
    Ok(Drive {
        controller,
        disk: disk.to_owned(),
        partition: partitions.into_iter().next(),
        bytes,
        block: block.ok_or_else(unknown)?,
        namespace,
    })
}

/// Refuses a file system that holds more than the data directory, and a disk that holds more than
/// that file system.
fn alone(system: &System, data: &Data<'_>) -> Result<(), PlanError> {
    let point = data.mount.point.display();
    let on_it = |other: &dyn Display| format!("{other} is on it too, and a plan would delete it");
    let why = if let Some(other) = others(system, data).first() {
        on_it(other)
    } else if let Some(part) = part_of(system, data) {
        format!(
            "only {part} of its file system is mounted at {point}, and a plan would delete all of it"
        )
    } else if let Some(mount) = mounted_below(system, data) {
        format!("{mount} is mounted below {point}, which a plan would unmount")
    } else {
        match places::beside(system, data) {
            Ok(None) => return Ok(()),
            Ok(Some(path)) => on_it(&path.display()),
            Err((path, error)) => format!(
                "a plan would delete all of {point}, and {} cannot be read: {error}",
                path.display()
            ),
        }
    };
    Err(PlanError::Drive {
        disk: data.disk.to_owned(),
        why,
    })
}

/// Whether `name` is that of a namespace, like `nvme0n1`, and not of a path to one, like
/// `nvme0c1n1`.
pub(super) fn is_namespace(name: &str) -> bool {
    let numbers = name
        .strip_prefix("nvme")
        .and_then(|rest| rest.split_once('n'));
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|it| it.is_ascii_digit());
    numbers.is_some_and(|(drive, namespace)| is_number(drive) && is_number(namespace))
}

/// Returns the names in a directory that `is_wanted` accepts, sorted.
pub(super) fn names(folder: &Path, is_wanted: impl Fn(&str) -> bool) -> Vec<String> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    let mut names: Vec<String> = names.filter(|name| is_wanted(name)).collect();
    names.sort();
    names
}

/// Returns the other mount points of the disk, and `/` if it is on the disk.
fn others(system: &System, data: &Data<'_>) -> Vec<String> {
    let mounts = system.mounts().unwrap_or_default().into_iter();
    let others = mounts.filter(|mount| {
        let is_root = mount.point == Path::new("/");
        (is_root || mount.point != data.mount.point) && is_here(system, data, mount)
    });
    others
        .map(|mount| mount.point.display().to_string())
        .collect()
}

fn is_here(system: &System, data: &Data<'_>, mount: &Mount) -> bool {
    let found = disk::find(system, mount.device, Some(&mount.source));
    found.is_some_and(|found| found.name == data.disk)
}

/// Returns a mount point below that of the data, which could not be unmounted then.
fn mounted_below(system: &System, data: &Data<'_>) -> Option<String> {
    let own = &data.mount.point;
    let mut mounts = system.mounts().unwrap_or_default().into_iter();
    let is_below = |point: &Path| point != own && point.starts_with(own);
    let mount = mounts.find(|mount| is_below(&mount.point))?;
    Some(mount.point.display().to_string())
}

/// Returns the directory of the file system that is mounted, if that is not the whole file system.
fn part_of(system: &System, data: &Data<'_>) -> Option<String> {
    let mut mount_entries = system.mount_entries().ok()?.into_iter();
    let part = mount_entries.find(|it| {
        it.root != Path::new("/")
            && it.mount.point == data.mount.point
            && is_here(system, data, &it.mount)
    })?;
    Some(part.root.display().to_string())
}
