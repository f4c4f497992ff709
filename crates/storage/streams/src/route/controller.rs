//! Finds the NVMe controller of a disk in sysfs.
//!
//! The name of a disk does not identify its controller: with native multipath, `nvme0n1` is the
//! first namespace of subsystem 0, and `nvme0` may be the controller of another drive.

use std::path::{Path, PathBuf};

use super::System;

/// A controller of an NVMe drive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Controller {
    /// The kernel's name, such as `nvme0`.
    pub name: String,
    /// The controller's ID on the drive (CNTLID).
    pub id: u16,
}

/// Why a disk does not have exactly one known controller.
#[derive(Debug, thiserror::Error)]
pub enum ControllerError {
    #[error("{disk} is not on an NVMe drive, so it cannot be divided into namespaces")]
    NotNvme { disk: String },
    /// `place`, the directory in sysfs that contains the disk, is not a controller and lists none.
    #[error(
        "the controller of {disk} is unknown: {} has no controller with a cntlid; `nvme list -v` \
         shows the controllers", place.display()
    )]
    Unknown { disk: String, place: PathBuf },
    /// The drive has several controllers, but a plan attaches namespaces to only one.
    #[error(
        "{disk} has {} controllers ({}): a plan for one of them would take the namespaces from \
         the others; no plan is made", names.len(), names.join(", ")
    )]
    Several { disk: String, names: Vec<String> },
}

/// Returns the only controller of a disk.
///
/// # Errors
/// The disk is not on an NVMe drive, the drive has several controllers, or sysfs does not list the
/// controller.
pub fn controller(system: &System, disk: &str) -> Result<Controller, ControllerError> {
    let not_nvme = || ControllerError::NotNvme {
        disk: disk.to_owned(),
    };
    if !disk.starts_with("nvme") {
        return Err(not_nvme());
    }
    let folder = system.root().join("sys/class/block").join(disk);
    let folder = folder.canonicalize().map_err(|_| not_nvme())?;
    let parent = folder.parent().ok_or_else(not_nvme)?;
    let unknown = |place: &Path| ControllerError::Unknown {
        disk: disk.to_owned(),
        place: place.to_owned(),
    };
    // The parent directory is that of the controller, or that of the subsystem if the kernel can
    // reach the disk through several controllers.
    let own = read(parent);
    let subsystem = match &own {
        Some(own) => subsystem_of(system, &own.name),
        None => Some(parent.to_owned()),
    };
    let mut all = subsystem.as_deref().map_or(Vec::new(), controllers);
    if let Some(own) = own.filter(|own| !all.contains(own)) {
        all.push(own);
    }
    match &all[..] {
        [] => Err(unknown(parent)),
        [one] => Ok(one.clone()),
        several => Err(ControllerError::Several {
            disk: disk.to_owned(),
            names: several.iter().map(|one| one.name.clone()).collect(),
        }),
    }
}

/// Reads the controller in a directory of sysfs; `None` if the directory is not a controller.
fn read(folder: &Path) -> Option<Controller> {
    let name = folder.file_name()?.to_str()?.to_owned();
    let id = std::fs::read_to_string(folder.join("cntlid")).ok()?;
    let id = id.trim().parse().ok()?;
    Some(Controller { name, id })
}

/// Returns the controllers of a subsystem, sorted by name.
fn controllers(subsystem: &Path) -> Vec<Controller> {
    let entries = std::fs::read_dir(subsystem).into_iter().flatten();
    let found = entries.filter_map(|entry| read(&entry.ok()?.path()));
    let mut found: Vec<Controller> = found.collect();
    found.sort_by(|a, b| a.name.cmp(&b.name));
    found
}

/// Returns a name for the drive whose disks are in `parent`, the directory of their controller or
/// subsystem. It is the name of the subsystem, or of the controller on kernels without subsystems.
pub(super) fn drive(system: &System, parent: &Path) -> String {
    let subsystem = read(parent).and_then(|own| subsystem_of(system, &own.name));
    let folder = subsystem.as_deref().unwrap_or(parent);
    let name = folder.file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}

/// Returns the directory of the subsystem of a controller.
fn subsystem_of(system: &System, controller: &str) -> Option<PathBuf> {
    let all = system.root().join("sys/class/nvme-subsystem");
    let entries = std::fs::read_dir(all).ok()?;
    let mut folders = entries.filter_map(|entry| Some(entry.ok()?.path()));
    folders.find(|folder| folder.join(controller).exists())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    /// Creates a sysfs with drives. `disks` are directories below `sys/devices`; `subsystems` are
    /// names, each with its controllers and their IDs.
    fn machine(disks: &[&str], subsystems: &[(&str, &[(&str, u16)])]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        let sys = root.path().join("sys");
        let (blocks, classes) = (sys.join("class/block"), sys.join("class/nvme-subsystem"));
        fs::create_dir_all(&blocks).unwrap();
        fs::create_dir_all(&classes).unwrap();
        for (subsystem, controllers) in subsystems {
            let folder = sys.join("devices/virtual/nvme-subsystem").join(subsystem);
            fs::create_dir_all(&folder).unwrap();
            symlink(&folder, classes.join(subsystem)).unwrap();
            for (name, id) in *controllers {
                let own = sys.join("devices/pci/nvme").join(name);
                fs::create_dir_all(&own).unwrap();
                fs::write(own.join("cntlid"), format!("{id}\n")).unwrap();
                symlink(&own, folder.join(name)).unwrap();
            }
        }
        for disk in disks {
            let folder = sys.join("devices").join(disk);
            fs::create_dir_all(&folder).unwrap();
            symlink(&folder, blocks.join(folder.file_name().unwrap())).unwrap();
        }
        root
    }

    fn found(root: &tempfile::TempDir, disk: &str) -> Result<(String, u16), String> {
        let found = controller(&System::at(root.path()), disk);
        let found = found.map(|one| (one.name, one.id));
        found.map_err(|error| error.to_string())
    }

    /// The kernel numbered the subsystems in another order than the controllers.
    #[test]
    fn the_controller_is_found_by_the_subsystem_not_by_its_name() {
        let root = machine(
            &["virtual/nvme-subsystem/nvme-subsys0/nvme0n1"],
            &[
                ("nvme-subsys0", &[("nvme1", 7)]),
                ("nvme-subsys1", &[("nvme0", 1)]),
            ],
        );
        assert_eq!(found(&root, "nvme0n1"), Ok(("nvme1".to_owned(), 7)));
    }

    #[test]
    fn a_disk_in_the_directory_of_its_controller_has_that_controller() {
        let root = machine(
            &["pci/nvme/nvme1/nvme0n1"],
            &[("nvme-subsys0", &[("nvme1", 65)])],
        );
        assert_eq!(found(&root, "nvme0n1"), Ok(("nvme1".to_owned(), 65)));
        // Kernels without subsystems in sysfs.
        fs::remove_dir_all(root.path().join("sys/class/nvme-subsystem")).unwrap();
        assert_eq!(found(&root, "nvme0n1"), Ok(("nvme1".to_owned(), 65)));
    }

    #[test]
    fn a_disk_with_several_controllers_is_refused() {
        for disk in [
            "virtual/nvme-subsystem/nvme-subsys0/nvme0n1",
            "pci/nvme/nvme0/nvme0n1",
        ] {
            let root = machine(&[disk], &[("nvme-subsys0", &[("nvme0", 1), ("nvme3", 2)])]);
            let error = found(&root, "nvme0n1").unwrap_err();
            assert!(
                error.contains("2 controllers (nvme0, nvme3)"),
                "{disk}: {error}"
            );
        }
    }

    #[test]
    fn a_missing_controller_is_an_error() {
        let root = machine(&["virtual/nvme-subsystem/nvme-subsys0/nvme0n1"], &[]);
        let error = found(&root, "nvme0n1").unwrap_err();
        assert!(
            error.contains("nvme-subsys0 has no controller with a cntlid"),
            "{error}"
        );
        for disk in ["sda", "nvme9n1"] {
            let error = found(&root, disk).unwrap_err();
            assert!(error.contains("is not on an NVMe drive"), "{disk}: {error}");
        }
    }
}
