//! Finds the backing volume of a directory: file system, device and disk; or the reason why it
//! cannot be recorded.

use std::path::{Path, PathBuf};

use saiga_blocktrace::{Device, UnknownDevice};
use saiga_streams::route::{self, Mount, RouteError, System};

/// A file system that can be recorded, and its device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BackingVolume {
    /// The device of the file system, whose writes are followed.
    pub device: Device,
    /// The kernel's name of the device.
    pub name: String,
    /// The disk of the device.
    pub disk: Device,
    /// The type of the file system.
    pub kind: String,
    /// Offset of the device on the disk, in bytes.
    pub start: u64,
    /// Size of the disk.
    pub disk_bytes: u64,
    /// A remark about writes that are not recorded.
    pub note: Option<String>,
}

/// The reason why a directory cannot be recorded.
#[derive(Debug, thiserror::Error)]
pub enum BackingError {
    #[error(transparent)]
    Route(#[from] RouteError),
    #[error("{} is not a directory", .0.display())]
    NotADirectory(PathBuf),
    /// The file system cannot be recorded; `why` also says what to do.
    #[error("{} cannot be recorded: {why}", dir.display())]
    Unfit { dir: PathBuf, why: String },
    #[error("{} cannot be recorded: {error}", dir.display())]
    Device { dir: PathBuf, error: UnknownDevice },
}

const LOOP: &str = "record on a file system in a file (saiga streams record --loop)";

/// Finds the backing volume of a directory.
pub(crate) fn find(dir: &Path) -> Result<BackingVolume, BackingError> {
    let report = route::probe(&System::default(), dir)?;
    if !dir.is_dir() {
        return Err(BackingError::NotADirectory(dir.to_owned()));
    }
    let unfit = |why: String| BackingError::Unfit {
        dir: dir.to_owned(),
        why,
    };
    if let Some(why) = obstacle(&report.mount) {
        return Err(unfit(why));
    }
    let device = Device::of_file(dir).map_err(|error| unfit(error.to_string()))?;
    if device.major == 0 {
        return Err(unfit(format!(
            "{} has no block device of its own; {LOOP}",
            report.mount.kind
        )));
    }
    let fail = |error| BackingError::Device {
        dir: dir.to_owned(),
        error,
    };
    let disk = device.disk().map_err(fail)?;
    Ok(BackingVolume {
        name: device.name().map_err(fail)?,
        start: device.start_bytes().map_err(fail)?,
        disk_bytes: disk.length_bytes().map_err(fail)?,
        note: note(&report.mount),
        kind: report.mount.kind,
        device,
        disk,
    })
}

/// Returns why the addresses of files on a mount cannot be compared with those of block writes.
fn obstacle(mount: &Mount) -> Option<String> {
    let kind = mount.kind.as_str();
    Some(match kind {
        "overlay" => {
            let upper = mount.option("upperdir").unwrap_or("its upper directory");
            format!(
                "it is an overlay; give the directory below, on the host ({upper}), or put the data on \
                 a volume"
            )
        }
        "tmpfs" | "ramfs" | "hugetlbfs" => {
            format!("{kind} is memory and does not write to a drive; {LOOP}")
        }
        "btrfs" | "zfs" | "bcachefs" => {
            format!("{kind} reports logical addresses, not those of the drive; {LOOP}")
        }
        "nfs" | "nfs4" | "cifs" | "smb3" | "ceph" | "9p" | "virtiofs" | "afs" => {
            format!("{kind} is a file system of another host; record there, or {LOOP}")
        }
        kind if kind.starts_with("fuse") => {
            format!(
                "{kind} is a program, not a file system of the kernel; record the file system below, \
                 or {LOOP}"
            )
        }
        _ if mount.option("rtdev").is_some() => {
            "its XFS has files on two devices (rtdev), and FIEMAP does not distinguish their addresses"
                .to_owned()
        }
        _ => return None,
    })
}

/// Returns a remark if the file system writes to a second device, which is not followed.
fn note(mount: &Mount) -> Option<String> {
    let log = mount.option("logdev")?;
    Some(format!(
        "the log of its file system is on {log} and not recorded"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mount(kind: &str, options: &[&str]) -> Mount {
        Mount {
            point: PathBuf::from("/data"),
            kind: kind.to_owned(),
            source: "/dev/x".to_owned(),
            device: (0, 0),
            options: options.iter().map(|it| (*it).to_owned()).collect(),
        }
    }

    #[test]
    fn obstacles_have_a_reason_and_advice() {
        for (kind, options, expected) in [
            ("ext4", &[][..], None),
            ("xfs", &["rw"], None),
            ("overlay", &["upperdir=/u"], Some("on the host (/u)")),
            ("tmpfs", &[], Some("is memory")),
            ("btrfs", &[], Some("--loop")),
            ("nfs4", &[], Some("another host")),
            ("fuse.sshfs", &[], Some("a program")),
            ("xfs", &["rtdev=/dev/y"], Some("two devices")),
        ] {
            let found = obstacle(&mount(kind, options));
            assert_eq!(found.is_some(), expected.is_some(), "{kind} {found:?}");
            assert!(
                found.unwrap_or_default().contains(expected.unwrap_or("")),
                "{kind}"
            );
        }
        let split = note(&mount("xfs", &["logdev=/dev/z"])).unwrap();
        assert!(split.contains("/dev/z"), "{split}");
    }
}
