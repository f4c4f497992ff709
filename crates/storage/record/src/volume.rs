//! A file system in a file, for hosts whose drive must not be traced or holds other data.
//!
//! A volume is a sparse image, a loop device, and a file system mounted at a given directory. The
//! image is unlinked once it is attached, and the loop device is detached with the last mount: a
//! killed process leaves one mount, and nothing after a reboot.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::event::{Timespec, poll};
use rustix::io::Errno;
use rustix::mount::{MountFlags, UnmountFlags};
use saiga_process::lock::{FlockOperation, try_lock};
use saiga_process::pidfd::Process;
use saiga_process::proc;
use saiga_streams::route::System;

use crate::program;

/// Prefix of the names of images.
const PREFIX: &str = "saiga-record-";
/// The time limit for ended processes to release the file system.
const RELEASE_TIMEOUT: Duration = Duration::from_secs(5);
const PAUSE: Duration = Duration::from_millis(20);

/// The type of the file system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileSystem {
    Xfs,
    Ext4,
}

/// The settings of a volume.
#[derive(Debug, Clone)]
pub struct VolumeOptions {
    /// Size of the image.
    pub bytes: u64,
    pub file_system: FileSystem,
    /// The directory of the image.
    pub image_dir: PathBuf,
    /// The mount point: an empty directory, whose owner and mode the volume gets.
    pub dir: PathBuf,
}

/// An error of a volume.
#[derive(Debug, thiserror::Error)]
pub enum VolumeError {
    /// The directory cannot be a mount point.
    #[error("{} cannot be used for --loop: {why}", dir.display())]
    Dir { dir: PathBuf, why: String },
    /// A system call failed.
    #[error("cannot {action}: {error}")]
    Call { action: String, error: io::Error },
    /// A program failed with this message.
    #[error("{program} failed: {message}")]
    Program { program: String, message: String },
    /// Another file system is mounted over the volume.
    #[error(
        "the volume of the recording ({device}) stays at {0} because another file system is \
         mounted over it; umount {0} twice",
        dir.display()
    )]
    Covered { dir: PathBuf, device: String },
    #[error("interrupted; nothing was recorded")]
    Interrupted,
}

/// A mounted volume, unmounted when this value is dropped.
#[derive(Debug)]
pub struct Volume {
    dir: PathBuf,
    /// The path of the loop device.
    device: String,
    is_mounted: bool,
    /// Device number of the file system.
    number: u64,
    /// The directory below the mount, locked against other recordings.
    below: File,
}

/// A resource that a killed recording has left.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Leftover {
    /// A description for messages.
    pub description: String,
    /// The command that removes it.
    pub remedy: String,
    /// The mount point, if it is a mount.
    pub point: Option<PathBuf>,
}

impl Leftover {
    fn is_at(&self, dir: &Path) -> bool {
        self.point.as_deref() == Some(dir)
    }
}

impl Volume {
    /// Creates and mounts a volume, unless `is_interrupted`.
    ///
    /// # Errors
    /// The volume cannot be created or mounted; everything is removed again.
    pub fn make(
        options: &VolumeOptions,
        is_interrupted: &dyn Fn() -> bool,
    ) -> Result<Self, VolumeError> {
        let (dir, below) = check(options)?;
        let image = Image::new(options)?;
        let device = attach(&image.0)?;
        // Unlink the image, which exists as long as it is attached.
        drop(image);
        let made = make_file_system(options.file_system, &device, is_interrupted)
            .and_then(|()| mount(options.file_system, &device, &dir));
        // From now on the device is detached with its last user; at once if it has none.
        let detached = program::run("losetup", &["-d", &device]);
        made?;
        let mut volume = Self {
            dir,
            device,
            is_mounted: true,
            number: 0,
            below,
        };
        volume.number = number(&volume.dir)?;
        detached?;
        volume.copy_ownership()?;
        Ok(volume)
    }

    /// Whether a directory is on this volume.
    #[must_use]
    pub fn holds(&self, dir: &Path) -> bool {
        number(dir).is_ok_and(|number| number == self.number)
    }

    /// Sets owner and mode to those of the directory below, and removes lost+found.
    fn copy_ownership(&self) -> Result<(), VolumeError> {
        let Self { dir, below, .. } = self;
        let fail = |error| VolumeError::Call {
            action: format!("prepare {}", dir.display()),
            error,
        };
        let below = below.metadata().map_err(fail)?;
        // Databases require an empty directory.
        match fs::remove_dir(dir.join("lost+found")) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(fail(error)),
            _ => {}
        }
        std::os::unix::fs::chown(dir, Some(below.uid()), Some(below.gid())).map_err(fail)?;
        fs::set_permissions(dir, Permissions::from_mode(below.mode() & 0o7777)).map_err(fail)
    }

    /// Unmounts the volume, which removes everything. If processes still use it, it is removed when
    /// they end; returns their names then.
    ///
    /// # Errors
    /// The volume cannot be unmounted.
    pub fn remove(mut self) -> Result<Option<String>, VolumeError> {
        self.unmount()
    }

    fn unmount(&mut self) -> Result<Option<String>, VolumeError> {
        if !std::mem::take(&mut self.is_mounted) {
            return Ok(None);
        }
        let dir = &self.dir;
        if !self.holds(dir) {
            return self.check_covered();
        }
        let fail = |error: Errno| VolumeError::Call {
            action: format!("unmount {0}; try umount {0}", dir.display()),
            error: error.into(),
        };
        let began = Instant::now();
        loop {
            match rustix::mount::unmount(dir, UnmountFlags::empty()) {
                Ok(()) => return Ok(self.wait_for_release()),
                Err(Errno::BUSY) if began.elapsed() < RELEASE_TIMEOUT => pause(),
                Err(Errno::BUSY) => break,
                Err(error) => return Err(fail(error)),
            }
        }
        let users = users(dir, self.number);
        rustix::mount::unmount(dir, UnmountFlags::DETACH).map_err(fail)?;
        Ok(Some(users))
    }

    /// Handles a mount point that leads to another file system: fails if the volume is covered by
    /// it, otherwise the volume was unmounted already.
    fn check_covered(&self) -> Result<Option<String>, VolumeError> {
        let device = (
            rustix::fs::major(self.number),
            rustix::fs::minor(self.number),
        );
        let mounts = System::default().mounts().unwrap_or_default();
        let mut ours = mounts.iter().filter(|mount| mount.device == device);
        if ours.any(|mount| mount.point == self.dir) {
            return Err(VolumeError::Covered {
                dir: self.dir.clone(),
                device: self.device.clone(),
            });
        }
        // Another process has unmounted it.
        Ok(self.wait_for_release())
    }

    /// Waits until the loop device is free. After the time limit, returns its user.
    fn wait_for_release(&self) -> Option<String> {
        let name = self.device.trim_start_matches("/dev/");
        let path = format!("/sys/block/{name}/loop/backing_file");
        let began = Instant::now();
        let is_ours = || {
            let text = fs::read_to_string(&path).unwrap_or_default();
            text.contains(&format!("{PREFIX}{}.img", std::process::id()))
        };
        while is_ours() {
            if began.elapsed() > RELEASE_TIMEOUT {
                return Some("another mount namespace".to_owned());
            }
            pause();
        }
        None
    }
}

/// Sleeps for a short time, or until a signal.
pub(crate) fn pause() {
    let pause = Timespec::try_from(PAUSE).ok();
    // EINTR only shortens the sleep.
    let _ = poll(&mut [], pause.as_ref());
}

impl Drop for Volume {
    fn drop(&mut self) {
        // Callers that need the result call `remove`.
        let _ = self.unmount();
    }
}

/// Finds mounts, loop devices, and images in `image_dir` that killed recordings have left.
#[must_use]
pub fn leftovers(image_dir: &Path) -> Vec<Leftover> {
    let mut found = Vec::new();
    let mounts = System::default().mounts().unwrap_or_default();
    for entry in fs::read_dir("/sys/block").into_iter().flatten().flatten() {
        let device = format!("/dev/{}", entry.file_name().to_string_lossy());
        let backing = fs::read_to_string(entry.path().join("loop/backing_file"));
        let backing = backing.unwrap_or_default();
        let image = backing.trim_end().trim_end_matches(" (deleted)");
        if !is_orphan(Path::new(image)) {
            continue;
        }
        let points = mounts.iter().filter(|mount| mount.source == device);
        let points: Vec<&PathBuf> = points.map(|mount| &mount.point).collect();
        found.extend(points.iter().map(|point| Leftover {
            description: format!(
                "{} is the volume of a recording that was killed",
                point.display()
            ),
            remedy: format!("umount {}", point.display()),
            point: Some((*point).clone()),
        }));
        // A device with autoclear and without a mount is in use by a process; no command removes
        // it.
        let autoclear = fs::read_to_string(entry.path().join("loop/autoclear"));
        if points.is_empty() && autoclear.is_ok_and(|text| text.trim() == "0") {
            found.push(Leftover {
                description: format!("{device} is the loop device of a recording that was killed"),
                remedy: format!("losetup -d {device}"),
                point: None,
            });
        }
    }
    for entry in fs::read_dir(image_dir).into_iter().flatten().flatten() {
        let image = entry.path();
        if is_orphan(&image) {
            found.push(Leftover {
                description: format!(
                    "{} is the image of a recording that was killed",
                    image.display()
                ),
                remedy: format!("rm {}", image.display()),
                point: None,
            });
        }
    }
    found
}

/// Whether a path is that of an image whose process has ended.
fn is_orphan(image: &Path) -> bool {
    let name = image.file_name().unwrap_or_default().to_string_lossy();
    let pid = name
        .strip_prefix(PREFIX)
        .and_then(|rest| rest.strip_suffix(".img"));
    pid.and_then(|pid| pid.parse().ok())
        .is_some_and(|pid| matches!(Process::open(pid), Ok(None)))
}

/// Checks that the mount point is empty and not mounted. Returns its resolved path, and the open
/// and locked directory.
fn check(options: &VolumeOptions) -> Result<(PathBuf, File), VolumeError> {
    let dir = &options.dir;
    let unfit = |why: String| VolumeError::Dir {
        dir: dir.to_owned(),
        why,
    };
    let real = dir
        .canonicalize()
        .map_err(|error| unfit(format!("{error}; make it first")))?;
    let left = leftovers(&options.image_dir);
    if let Some(left) = left.iter().find(|left| left.is_at(&real)) {
        return Err(unfit(format!(
            "{}; remove it with: {}",
            left.description, left.remedy
        )));
    }
    let open = File::open(&real).map_err(|error| unfit(error.to_string()))?;
    let locked = try_lock(&open, FlockOperation::NonBlockingLockExclusive);
    if !locked.map_err(|error| unfit(error.to_string()))? {
        return Err(unfit(
            "another recording makes its volume there; give another directory".to_owned(),
        ));
    }
    // Checked after the lock: another recording may have mounted its volume before.
    let mounts = System::default().mounts().unwrap_or_default();
    if let Some(mount) = mounts.iter().find(|mount| mount.point == real) {
        return Err(unfit(format!(
            "{} is mounted there; give a directory where nothing is",
            mount.source
        )));
    }
    let mut entries = fs::read_dir(&real).map_err(|error| unfit(error.to_string()))?;
    if let Some(entry) = entries.next() {
        let name = entry.map_or_else(|_| "?".into(), |entry| entry.file_name());
        return Err(unfit(format!(
            "it is not empty ({}); its files would be hidden. Give an empty directory, and load the \
             data with --prepare",
            name.to_string_lossy()
        )));
    }
    Ok((real, open))
}

/// Returns the device number of the file system of a directory.
fn number(dir: &Path) -> Result<u64, VolumeError> {
    let metadata = dir.metadata().map_err(|error| VolumeError::Call {
        action: format!("read {}", dir.display()),
        error,
    })?;
    Ok(metadata.dev())
}

/// A sparse file, removed when this value is dropped.
#[derive(Debug)]
struct Image(PathBuf);

impl Image {
    fn new(options: &VolumeOptions) -> Result<Self, VolumeError> {
        let name = format!("{PREFIX}{}.img", std::process::id());
        let path = options.image_dir.join(name);
        let fail = |error| VolumeError::Call {
            action: format!(
                "create the image {} (--image-dir sets the directory)",
                path.display()
            ),
            error,
        };
        let file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&path)
            .map_err(fail)?;
        let image = Self(path.clone());
        file.set_len(options.bytes).map_err(fail)?;
        Ok(image)
    }
}

impl Drop for Image {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

/// Attaches the image to a loop device and returns its path. Not interruptible: the device would be
/// unknown.
fn attach(image: &Path) -> Result<String, VolumeError> {
    let image = image.to_string_lossy();
    let output = program::run("losetup", &["--find", "--show", &image])?;
    Ok(output.trim().to_owned())
}

fn make_file_system(
    kind: FileSystem,
    device: &str,
    is_interrupted: &dyn Fn() -> bool,
) -> Result<(), VolumeError> {
    let (program, words) = match kind {
        FileSystem::Xfs => ("mkfs.xfs", &["-q"][..]),
        // No lazy initialisation, which would write during the recording.
        FileSystem::Ext4 => (
            "mkfs.ext4",
            &["-q", "-F", "-E", "lazy_itable_init=0,lazy_journal_init=0"][..],
        ),
    };
    program::run_unless(program, &[words, &[device]].concat(), is_interrupted)?;
    Ok(())
}

fn mount(kind: FileSystem, device: &str, dir: &Path) -> Result<(), VolumeError> {
    let kind = match kind {
        FileSystem::Xfs => c"xfs",
        FileSystem::Ext4 => c"ext4",
    };
    // With discards, so that a simulation can use or ignore them.
    let mounted = rustix::mount::mount(device, dir, kind, MountFlags::NOATIME, c"discard");
    mounted.map_err(|error| VolumeError::Call {
        action: format!("mount {device} at {}", dir.display()),
        error: error.into(),
    })
}

/// Returns the processes with open files in a directory on the file system `device`.
fn users(dir: &Path, device: u64) -> String {
    let mut users = Vec::new();
    for pid in proc::pids().unwrap_or_default() {
        let process = PathBuf::from(format!("/proc/{pid}"));
        let open = fs::read_dir(process.join("fd"))
            .into_iter()
            .flatten()
            .flatten();
        let mut links = open
            .map(|fd| fd.path())
            .chain([process.join("cwd"), process.join("root")]);
        let is_there = |link: &PathBuf| {
            fs::read_link(link).is_ok_and(|target| target.starts_with(dir))
                && number(link).is_ok_and(|number| number == device)
        };
        if links.any(|link| is_there(&link)) {
            users.push(format!("{} ({pid})", proc::name(pid)));
        }
    }
    if users.is_empty() {
        "an unknown process".to_owned()
    } else {
        users.join(", ")
    }
}
