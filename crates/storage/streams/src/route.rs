//! Routes: what becomes of a hint between a file and the flash, per mount, on this kernel and this device.
//!
//! Everything is read from proc and sysfs below a given root; nothing is asked of a device. Only the
//! drive knows the reclaim unit handles of a namespace: the caller asks, and [`Layout::verdict`]
//! takes the answers. docs/streams.md has the measurements behind the decisions.

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

/// proc and sysfs, of this machine or of another one.
#[derive(Debug, Clone)]
pub struct System {
    root: PathBuf,
}

impl Default for System {
    fn default() -> Self {
        Self::at("/")
    }
}

/// Major and minor number of a kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Kernel(pub u32, pub u32);

impl fmt::Display for Kernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Linux {}.{}", self.0, self.1)
    }
}

/// The way a hint takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Route {
    /// The streams directive of NVMe, up to Linux 5.17.
    Directive,
    /// SCSI's group number.
    Scsi,
    /// UFS, which is SCSI to the kernel.
    Ufs,
    /// F2FS on a drive with flexible data placement.
    F2fs,
    /// A zoned XFS, which puts files of one class into one zone.
    ZonedXfs,
    /// None is needed: each part of the server has a namespace and reclaim unit handle of its own.
    Namespaces,
    /// None: hints are accepted and go nowhere.
    Nowhere,
}

impl Route {
    /// Its name, for people and JSON.
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

/// How sure it is that hints have an effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// They decide where data are put.
    Yes,
    /// Kernel and file system pass them on; whether the drive takes them cannot be seen from here.
    Unproven,
    /// They do nothing.
    No,
}

impl Reach {
    /// A word for JSON.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Yes => "yes",
            Self::Unproven => "unproven",
            Self::No => "no",
        }
    }
}

/// What becomes of hints in one directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// The directory.
    pub dir: PathBuf,
    /// Its mount.
    pub mount: Mount,
    /// The kernel.
    pub kernel: Kernel,
    /// The disk below, when there is one.
    pub disk: Option<Disk>,
    /// The way that hints take.
    pub route: Route,
    /// Whether they have an effect.
    pub reach: Reach,
    /// Why, in a sentence.
    pub why: String,
    /// What else could be done here, or should be known.
    pub notes: Vec<String>,
}

impl Report {
    /// One line: where hints go, and when they go nowhere, that first.
    #[must_use]
    pub fn headline(&self) -> String {
        let place = format!(
            "{} ({}, {})",
            self.dir.display(),
            self.ground(),
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
            Reach::No => format!("hints reach nothing on {place}: {}", self.why),
            Reach::Unproven => format!(
                "hints go by {} on {place}, if the drive takes them: {}",
                self.route.name(),
                self.why
            ),
            Reach::Yes => format!("hints go by {} on {place}: {}", self.route.name(), self.why),
        }
    }

    /// The report for a server whose parts are on several disks, with the result of
    /// [`Layout::verdict`]. An existing route for hints is replaced by a yes only.
    #[must_use]
    pub fn with_verdict(mut self, (reach, why): (Reach, String)) -> Self {
        if reach == Reach::Yes || self.reach == Reach::No {
            (self.route, self.reach, self.why) = (Route::Namespaces, reach, why);
            self.notes.clear();
        }
        self
    }

    /// Whether parts are kept apart without hints.
    #[must_use]
    pub fn needs_no_hints(&self) -> bool {
        self.route == Route::Namespaces && self.reach == Reach::Yes
    }

    fn ground(&self) -> String {
        match &self.disk {
            None => self.mount.kind.clone(),
            Some(disk) => format!("{} on {}", self.mount.kind, disk.name),
        }
    }

    /// How much somebody should care about the headline.
    #[must_use]
    pub fn level(&self) -> Level {
        match self.reach {
            Reach::Yes => Level::Info,
            Reach::Unproven | Reach::No => Level::Warn,
        }
    }

    /// Why labels here would be lost even on the way to the file system, and where to label instead.
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
            "an overlay keeps hints to itself, they never reach the file system below; run this on the host and give it \
             {upper}, or put the data on a volume and give it that"
        ))
    }
}

/// Why nothing is known of a directory.
#[derive(Debug, thiserror::Error)]
pub enum RouteError {
    /// There is no such directory, or something in proc cannot be read.
    #[error("cannot look at {}: {error}", path.display())]
    Read {
        /// What.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// It is a file or a device.
    #[error("{} is not a directory", .0.display())]
    NotADirectory(PathBuf),
    /// The kernel's release has no version.
    #[error("cannot read a version in `{0}`")]
    Kernel(String),
    /// No mount covers it.
    #[error("no mount in {}/proc/self/mountinfo covers {}", root.display(), path.display())]
    NoMount {
        /// The directory.
        path: PathBuf,
        /// The root of the system that was asked.
        root: PathBuf,
    },
}

impl System {
    /// The system whose proc and sys are below `root`.
    #[must_use]
    pub fn at(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// The path of a disk's device.
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

    /// The kernel's version.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn kernel(&self) -> Result<Kernel, RouteError> {
        let release = self.read("proc/sys/kernel/osrelease")?;
        let mut numbers = release.trim().split(|c: char| !c.is_ascii_digit());
        let mut number = || numbers.next()?.parse().ok();
        match (number(), number()) {
            (Some(major), Some(minor)) => Ok(Kernel(major, minor)),
            _ => Err(RouteError::Kernel(release.trim().to_owned())),
        }
    }

    /// What is mounted, in the order in which it was.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn mounts(&self) -> Result<Vec<Mount>, RouteError> {
        Ok(self.placed()?.into_iter().map(|it| it.mount).collect())
    }

    fn placed(&self) -> Result<Vec<mounts::Placed>, RouteError> {
        Ok(mounts::parse(&self.read("proc/self/mountinfo")?))
    }

    /// The block device of the file system with this device number: itself, or what is mounted, for btrfs and others
    /// that have numbers of their own.
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

/// What becomes of hints on files in the directory at `path`.
///
/// # Errors
/// When it does not exist, is not a directory, or proc cannot be read.
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
    let mount = mounts::covering(&system.placed()?, &dir).ok_or_else(|| RouteError::NoMount {
        path: dir.clone(),
        root: system.root.clone(),
    })?;
    let disk = disk::find(system, mount.device, Some(&mount.source));
    let zoned = mount.kind == "xfs" && mounts::is_zoned(system, &mount);
    Ok(decide::mounted(system, dir, mount, kernel, disk, zoned))
}
