//! What a directory stands on: its device, where that begins in the trace, or why it cannot be recorded.

use std::path::{Path, PathBuf};

use saiga_blocktrace::{Device, UnknownDevice};
use saiga_streams::route::{self, Mount, RouteError, System};

/// A file system that can be recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ground {
    /// The device that it is on, whose writes are followed.
    pub device: Device,
    /// As the kernel calls it.
    pub name: String,
    /// Its disk.
    pub disk: Device,
    /// Its kind.
    pub kind: String,
    /// Its first byte on the disk.
    pub start: u64,
    /// Bytes of the disk.
    pub disk_bytes: u64,
    /// What is not recorded with it, in words.
    pub note: Option<String>,
}

/// Why a directory cannot be recorded.
#[derive(Debug, thiserror::Error)]
pub enum GroundError {
    /// It cannot be looked at.
    #[error(transparent)]
    Look(#[from] RouteError),
    /// It is none.
    #[error("{} is not a directory", .0.display())]
    NoDirectory(PathBuf),
    /// What it is on cannot be recorded.
    #[error("{} cannot be recorded: {why}", dir.display())]
    Unfit {
        /// The directory.
        dir: PathBuf,
        /// Why, and what to do.
        why: String,
    },
    /// Its device is not known to the kernel.
    #[error("{} cannot be recorded: {error}", dir.display())]
    Device {
        /// The directory.
        dir: PathBuf,
        /// What is wrong.
        error: UnknownDevice,
    },
}

const LOOP: &str = "record on a file system in a file (saiga streams record --loop)";

/// Looks what is below a directory.
pub(crate) fn find(dir: &Path) -> Result<Ground, GroundError> {
    let report = route::probe(&System::default(), dir)?;
    if !dir.is_dir() {
        return Err(GroundError::NoDirectory(dir.to_owned()));
    }
    let unfit = |why: String| GroundError::Unfit {
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
    let fail = |error| GroundError::Device {
        dir: dir.to_owned(),
        error,
    };
    let disk = device.disk().map_err(fail)?;
    Ok(Ground {
        name: device.name().map_err(fail)?,
        start: device.start_bytes().map_err(fail)?,
        disk_bytes: disk.length_bytes().map_err(fail)?,
        note: note(&report.mount),
        kind: report.mount.kind,
        device,
        disk,
    })
}

/// Why files on a mount have no addresses that writes could be compared with.
fn obstacle(mount: &Mount) -> Option<String> {
    let kind = mount.kind.as_str();
    Some(match kind {
        "overlay" => {
            let upper = mount.option("upperdir").unwrap_or("its upper directory");
            format!("it is an overlay; give the directory below, on the host ({upper}), or put the data on a volume")
        }
        "tmpfs" | "ramfs" | "hugetlbfs" => format!("{kind} is memory and writes to no drive; {LOOP}"),
        "btrfs" | "zfs" | "bcachefs" => {
            format!("{kind} numbers blocks of its own over one or more drives, which are not those that are written; {LOOP}")
        }
        "nfs" | "nfs4" | "cifs" | "smb3" | "ceph" | "9p" | "virtiofs" | "afs" => {
            format!("{kind} is a file system of another machine; record there, or {LOOP}")
        }
        kind if kind.starts_with("fuse") => {
            format!("{kind} is a program and no file system of the kernel; record what is below it, or {LOOP}")
        }
        _ if mount.option("rtdev").is_some() => {
            "its XFS keeps files on two devices (rtdev), and does not tell which addresses are of which".to_owned()
        }
        _ => return None,
    })
}

/// What goes to another device than the one that is followed.
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
    fn what_cannot_be_recorded_is_told_with_what_to_do() {
        for (kind, options, expected) in [
            ("ext4", &[][..], None),
            ("xfs", &["rw"], None),
            ("overlay", &["upperdir=/u"], Some("on the host (/u)")),
            ("tmpfs", &[], Some("is memory")),
            ("btrfs", &[], Some("--loop")),
            ("nfs4", &[], Some("another machine")),
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
