//! Routes: whether and how hints on files reach the drive, for each mount, kernel and device.
//!
//! Everything is read from proc and sysfs below a given root; no command is sent to a device. The
//! reclaim unit handles of a namespace are not in sysfs: the caller reads them from the drive for
//! [`Layout::verdict`]. docs/streams.md has the measurements behind the decisions.

mod controller;
mod decide;
mod disk;
mod mounts;
mod plan;
mod written;

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use crate::labeller::Level;

pub use controller::{Controller, ControllerError, controller};
pub use disk::{Bus, Disk, Stack};
pub use mounts::Mount;
pub use plan::{Answer, Answers, Data, Layout, Namespace, PlanError, layout, outside, plan};
pub use written::Written;

#[cfg(test)]
mod tests;

/// proc and sysfs, of this host or of a copy (tests).
#[derive(Debug, Clone)]
pub struct System {
    root: PathBuf,
}

impl Default for System {
    fn default() -> Self {
        Self::at("/")
    }
}

/// Major and minor version of a kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Kernel(pub u32, pub u32);

impl fmt::Display for Kernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Linux {}.{}", self.0, self.1)
    }
}

/// The mechanism that passes hints to the drive or places data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Route {
    /// The streams directive of NVMe, up to Linux 5.17.
    Directive,
    /// Group numbers of SCSI.
    Scsi,
    /// Group numbers of UFS, by the kernel's SCSI layer.
    Ufs,
    /// F2FS on a drive with flexible data placement.
    F2fs,
    /// Zoned XFS, which puts files of one class into one zone.
    ZonedXfs,
    /// No hints: each part of the server has its own namespace and reclaim unit handle.
    Namespaces,
    /// Hints are accepted but have no effect.
    Nowhere,
}

impl Route {
    /// Returns its name, for messages and JSON.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Directive => "NVMe streams directive",
            Self::Scsi => "SCSI streams",
            Self::Ufs => "UFS",
            Self::F2fs => "F2FS with FDP",
            Self::ZonedXfs => "XFS zoned",
            Self::Namespaces => "FDP namespaces",
            Self::Nowhere => "none",
        }
    }
}

/// Whether hints have an effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// Hints decide the placement of data.
    Yes,
    /// Kernel and file system pass hints on; whether the drive uses them is unknown.
    Unproven,
    /// Hints have no effect.
    No,
}

impl Reach {
    /// Returns its name in JSON.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Yes => "yes",
            Self::Unproven => "unproven",
            Self::No => "no",
        }
    }
}

/// The use of hints on files in one directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// Absolute path without links.
    pub dir: PathBuf,
    pub mount: Mount,
    pub kernel: Kernel,
    /// The disk below, if there is one.
    pub disk: Option<Disk>,
    pub route: Route,
    pub reach: Reach,
    /// The reason for route and reach, for messages.
    pub why: String,
    /// Alternatives and caveats, for messages.
    pub notes: Vec<String>,
}

impl Report {
    /// Summarises the report in one line.
    #[must_use]
    pub fn headline(&self) -> String {
        let place = format!(
            "{} ({}, {})",
            self.dir.display(),
            self.storage(),
            self.kernel
        );
        if self.route == Route::Namespaces {
            let verb = match self.reach {
                Reach::Yes => "go",
                Reach::Unproven => "may go",
                Reach::No => "do not go",
            };
            return format!(
                "the parts of the server {verb} to FDP namespaces of their own on {place}: {}",
                self.why
            );
        }
        match self.reach {
            Reach::No if self.disk.is_some() => {
                format!("hints stop at the block layer on {place}: {}", self.why)
            }
            Reach::No => format!("hints have no effect on {place}: {}", self.why),
            Reach::Unproven => format!(
                "hints go by {} on {place}, if the drive uses them: {}",
                self.route.name(),
                self.why
            ),
            Reach::Yes => format!("hints go by {} on {place}: {}", self.route.name(), self.why),
        }
    }

    /// Returns the report for a server whose parts are on several disks, given the result of
    /// [`Layout::verdict`]. A route for hints is only replaced by a verdict of [`Reach::Yes`].
    #[must_use]
    pub fn with_verdict(mut self, (reach, why): (Reach, String)) -> Self {
        if reach == Reach::Yes || self.reach == Reach::No {
            (self.route, self.reach, self.why) = (Route::Namespaces, reach, why);
            self.notes.clear();
        }
        self
    }

    /// Whether the parts of the server are separated without hints.
    #[must_use]
    pub fn needs_no_hints(&self) -> bool {
        self.route == Route::Namespaces && self.reach == Reach::Yes
    }

    fn storage(&self) -> String {
        match &self.disk {
            None => self.mount.kind.clone(),
            Some(disk) => format!("{} on {}", self.mount.kind, disk.name),
        }
    }

    /// Returns the log level of the headline.
    #[must_use]
    pub fn level(&self) -> Level {
        match self.reach {
            Reach::Yes => Level::Info,
            Reach::Unproven | Reach::No => Level::Warn,
        }
    }

    /// Returns why labels here would not even reach the file system, and the directory to label
    /// instead.
    #[must_use]
    pub fn obstacle(&self) -> Option<String> {
        if self.mount.kind != "overlay" {
            return None;
        }
        let upper = self.mount.option("upperdir");
        let upper = upper.map_or_else(
            || "the overlay's upper directory".to_owned(),
            |dir| format!("{dir} (the overlay's upper directory)"),
        );
        Some(format!(
            "overlayfs does not pass hints to the file system below; run this on the host and give \
             it {upper}, or put the data on a volume and give the volume"
        ))
    }
}

/// An error of finding the route of a directory.
#[derive(Debug, thiserror::Error)]
pub enum RouteError {
    /// The directory, or a file in proc or sysfs, cannot be read.
    #[error("cannot read {}: {error}", path.display())]
    Read { path: PathBuf, error: io::Error },
    #[error("{} is not a directory", .0.display())]
    NotADirectory(PathBuf),
    #[error("the kernel's release `{0}` has no version number")]
    Kernel(String),
    #[error("no mount in {}/proc/self/mountinfo covers {}", root.display(), path.display())]
    NoMount { path: PathBuf, root: PathBuf },
}

impl System {
    /// Returns the system whose proc and sys are below `root`.
    #[must_use]
    pub fn at(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// Returns the path of a disk's device node.
    #[must_use]
    pub fn device(&self, disk: &str) -> PathBuf {
        self.root.join("dev").join(disk)
    }

    fn read(&self, path: &str) -> Result<String, RouteError> {
        let path = self.root.join(path);
        match std::fs::read(&path) {
            Ok(bytes) => Ok(String::from_utf8_lossy(&bytes).into_owned()),
            Err(error) => Err(RouteError::Read { path, error }),
        }
    }

    /// Returns the kernel's version.
    ///
    /// # Errors
    /// /proc/sys/kernel/osrelease cannot be read or has no version.
    pub fn kernel(&self) -> Result<Kernel, RouteError> {
        let release = self.read("proc/sys/kernel/osrelease")?;
        let mut numbers = release.trim().split(|c: char| !c.is_ascii_digit());
        let mut number = || numbers.next()?.parse().ok();
        match (number(), number()) {
            (Some(major), Some(minor)) => Ok(Kernel(major, minor)),
            _ => Err(RouteError::Kernel(release.trim().to_owned())),
        }
    }

    /// Returns the mounts in the order of /proc/self/mountinfo.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn mounts(&self) -> Result<Vec<Mount>, RouteError> {
        Ok(self
            .mount_entries()?
            .into_iter()
            .map(|it| it.mount)
            .collect())
    }

    fn mount_entries(&self) -> Result<Vec<mounts::MountEntry>, RouteError> {
        Ok(mounts::parse(&self.read("proc/self/mountinfo")?))
    }

    /// Returns the block device of a file system: the same number, or, for btrfs and others with
    /// numbers of their own, the number of the mount source.
    #[must_use]
    pub fn block_device(&self, file_system: (u32, u32)) -> Option<(u32, u32)> {
        let (major, minor) = file_system;
        let by_number = self.root.join(format!("sys/dev/block/{major}:{minor}"));
        if by_number.exists() {
            return Some(file_system);
        }
        let mounts = self.mounts().ok()?;
        let mount = mounts.iter().find(|mount| mount.device == file_system)?;
        let name = mount.source.strip_prefix("/dev/")?;
        let number = self.read(&format!("sys/class/block/{name}/dev")).ok()?;
        let (major, minor) = number.trim().split_once(':')?;
        Some((major.parse().ok()?, minor.parse().ok()?))
    }
}

/// Finds the route of hints on files in the directory at `path`.
///
/// # Errors
/// The directory does not exist or is not one, or proc cannot be read.
pub fn probe(system: &System, path: &Path) -> Result<Report, RouteError> {
    let fail = |error| RouteError::Read {
        path: path.to_owned(),
        error,
    };
    let dir = path.canonicalize().map_err(fail)?;
    if !dir.metadata().map_err(fail)?.is_dir() {
        return Err(RouteError::NotADirectory(path.to_owned()));
    }
    let kernel = system.kernel()?;
    let mount =
        mounts::covering(&system.mount_entries()?, &dir).ok_or_else(|| RouteError::NoMount {
            path: dir.clone(),
            root: system.root.clone(),
        })?;
    let disk = disk::find(system, mount.device, Some(&mount.source));
    let zoned = mount.kind == "xfs" && mounts::is_zoned(system, &mount);
    Ok(decide::mounted(system, dir, mount, kernel, disk, zoned))
}
