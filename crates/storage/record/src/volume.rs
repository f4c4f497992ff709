//! A file system in a file: for machines whose drive shall not be traced, or has others' data on it.
//!
//! A sparse image, a loop device, a file system that is mounted at a given directory. The image has no name once it is
//! attached, and the loop device goes with the last mount: what a killed process leaves is one mount, and nothing after a
//! restart of the machine.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::event::{Timespec, poll};
use rustix::fs::FlockOperation;
use rustix::io::Errno;
use rustix::mount::{MountFlags, UnmountFlags};
use saiga_streams::route::System;

use crate::program;

/// Images are called so.
const PREFIX: &str = "saiga-record-";
/// How long whoever has just been ended may still hold the file system.
const BUSY: Duration = Duration::from_secs(5);
const PAUSE: Duration = Duration::from_millis(20);

/// A file system that can be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileSystem {
    /// XFS.
    Xfs,
    /// ext4.
    Ext4,
}

/// What to make, and where.
#[derive(Debug, Clone)]
pub struct VolumeOptions {
    /// How large.
    pub bytes: u64,
    /// Of which kind.
    pub file_system: FileSystem,
    /// Where the image lies.
    pub image_dir: PathBuf,
    /// Where it is mounted: an empty directory, whose owner and mode it gets.
    pub dir: PathBuf,
}

/// Why there is none.
#[derive(Debug, thiserror::Error)]
pub enum VolumeError {
    /// The directory is not one to mount at.
    #[error("{} cannot be used for --loop: {why}", dir.display())]
    Dir {
        /// Which.
        dir: PathBuf,
        /// Why.
        why: String,
    },
    /// A file or a call failed.
    #[error("cannot {what}: {error}")]
    Call {
        /// What was tried.
        what: String,
        /// What the system said.
        error: io::Error,
    },
    /// A program failed, or is not there.
    #[error("{program} failed: {said}")]
    Program {
        /// Which.
        program: String,
        /// What it said.
        said: String,
    },
    /// Something else hides it.
    #[error(
        "the volume of the recording ({device}) stays at {0}, for something else is mounted over it; umount {0} twice",
        dir.display()
    )]
    Covered {
        /// Where it is mounted.
        dir: PathBuf,
        /// `/dev/loop3`.
        device: String,
    },
    /// The user gave up.
    #[error("interrupted; nothing was recorded")]
    Interrupted,
}

/// A mounted volume; unmounted when it is dropped.
#[derive(Debug)]
pub struct Volume {
    dir: PathBuf,
    /// `/dev/loop3`.
    device: String,
    is_mounted: bool,
    /// Of the file system.
    number: u64,
    /// The directory below, locked: nobody else makes a volume for it meanwhile.
    below: File,
}

/// What a recording that was killed has left.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Leftover {
    /// What it is.
    pub what: String,
    /// The command that removes it.
    pub remedy: String,
    /// Where it is mounted, if it is.
    pub point: Option<PathBuf>,
}

impl Leftover {
    fn is_at(&self, dir: &Path) -> bool {
        self.point.as_deref() == Some(dir)
    }
}

impl Volume {
    /// Makes and mounts one, unless the user gives up meanwhile.
    ///
    /// # Errors
    /// Nothing of it is left then.
    pub fn make(
        options: &VolumeOptions,
        is_given_up: &dyn Fn() -> bool,
    ) -> Result<Self, VolumeError> {
        let (dir, below) = check(options)?;
        let image = Image::new(options)?;
        let device = attach(&image.0)?;
        // It exists as long as it is attached, and needs no name any more.
        drop(image);
        let made = make_file_system(options.file_system, &device, is_given_up)
            .and_then(|()| mount(options.file_system, &device, &dir));
        // From here on the device goes with its last user; at once, if it has none.
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
        volume.take_after()?;
        Ok(volume)
    }

    /// Whether a directory is on it.
    #[must_use]
    pub fn holds(&self, dir: &Path) -> bool {
        number(dir).is_ok_and(|number| number == self.number)
    }

    /// Gives it owner and mode of the directory that it covers, and leaves it as empty as that was.
    fn take_after(&self) -> Result<(), VolumeError> {
        let Self { dir, below, .. } = self;
        let fail = |error| VolumeError::Call {
            what: format!("prepare {}", dir.display()),
            error,
        };
        let below = below.metadata().map_err(fail)?;
        // Databases want an empty directory.
        match fs::remove_dir(dir.join("lost+found")) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(fail(error)),
            _ => {}
        }
        std::os::unix::fs::chown(dir, Some(below.uid()), Some(below.gid())).map_err(fail)?;
        fs::set_permissions(dir, Permissions::from_mode(below.mode() & 0o7777)).map_err(fail)
    }

    /// Unmounts it, with which everything goes. If somebody holds it, it goes with them, and they are named.
    ///
    /// # Errors
    /// It cannot be unmounted at all.
    pub fn remove(mut self) -> Result<Option<String>, VolumeError> {
        self.unmount()
    }

    fn unmount(&mut self) -> Result<Option<String>, VolumeError> {
        if !std::mem::take(&mut self.is_mounted) {
            return Ok(None);
        }
        let dir = &self.dir;
        if !self.holds(dir) {
            return self.hidden();
        }
        let fail = |error: Errno| VolumeError::Call {
            what: format!("unmount {0}; try umount {0}", dir.display()),
            error: error.into(),
        };
        let began = Instant::now();
        loop {
            match rustix::mount::unmount(dir, UnmountFlags::empty()) {
                Ok(()) => return Ok(self.outlived()),
                Err(Errno::BUSY) if began.elapsed() < BUSY => pause(),
                Err(Errno::BUSY) => break,
                Err(error) => return Err(fail(error)),
            }
        }
        let users = users(dir, self.number);
        rustix::mount::unmount(dir, UnmountFlags::DETACH).map_err(fail)?;
        Ok(Some(users))
    }

    /// What is to be said of it when its directory leads elsewhere: whatever that is, it is not ours.
    fn hidden(&self) -> Result<Option<String>, VolumeError> {
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
        // Somebody else has unmounted it.
        Ok(self.outlived())
    }

    /// Waits until the loop device is free; answers who has it, if it does not come to that.
    fn outlived(&self) -> Option<String> {
        let name = self.device.trim_start_matches("/dev/");
        let path = format!("/sys/block/{name}/loop/backing_file");
        let began = Instant::now();
        let is_ours = || {
            let text = fs::read_to_string(&path).unwrap_or_default();
            text.contains(&format!("{PREFIX}{}.img", std::process::id()))
        };
        while is_ours() {
            if began.elapsed() > BUSY {
                return Some("another mount namespace".to_owned());
            }
            pause();
        }
        None
    }
}

/// A short while.
pub(crate) fn pause() {
    let pause = Timespec::try_from(PAUSE).ok();
    // A signal only makes it shorter.
    let _ = poll(&mut [], pause.as_ref());
}

impl Drop for Volume {
    fn drop(&mut self) {
        // Whoever wants to know calls `remove`.
        let _ = self.unmount();
    }
}

/// What recordings that were killed have left, of which an image may lie in `image_dir`.
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
            what: format!(
                "{} is the volume of a recording that was killed",
                point.display()
            ),
            remedy: format!("umount {}", point.display()),
            point: Some((*point).clone()),
        }));
        // One that goes by itself and is mounted nowhere is held by somebody, and no command removes it.
        let goes = fs::read_to_string(entry.path().join("loop/autoclear"));
        if points.is_empty() && goes.is_ok_and(|goes| goes.trim() == "0") {
            found.push(Leftover {
                what: format!("{device} is the loop device of a recording that was killed"),
                remedy: format!("losetup -d {device}"),
                point: None,
            });
        }
    }
    for entry in fs::read_dir(image_dir).into_iter().flatten().flatten() {
        let image = entry.path();
        if is_orphan(&image) {
            found.push(Leftover {
                what: format!(
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

/// Whether it is an image of ours whose process is gone.
fn is_orphan(image: &Path) -> bool {
    let name = image.file_name().unwrap_or_default().to_string_lossy();
    let pid = name
        .strip_prefix(PREFIX)
        .and_then(|rest| rest.strip_suffix(".img"));
    pid.and_then(|pid| pid.parse::<u32>().ok())
        .is_some_and(|pid| !Path::new(&format!("/proc/{pid}")).exists())
}

/// The directory by its real path, and itself, locked: empty, nothing mounted there.
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
            left.what, left.remedy
        )));
    }
    let open = File::open(&real).map_err(|error| unfit(error.to_string()))?;
    match rustix::fs::flock(&open, FlockOperation::NonBlockingLockExclusive) {
        Err(Errno::WOULDBLOCK) => {
            return Err(unfit(
                "another recording makes its volume there; give another directory".to_owned(),
            ));
        }
        locked => locked.map_err(|error| unfit(error.to_string()))?,
    }
    // Once it is locked: who had it before may have mounted his own by now.
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
            "it is not empty ({}); what is in it would be hidden. Give an empty directory, and load the data with --prepare",
            name.to_string_lossy()
        )));
    }
    Ok((real, open))
}

/// The number of the file system that a directory is on.
fn number(dir: &Path) -> Result<u64, VolumeError> {
    let metadata = dir.metadata().map_err(|error| VolumeError::Call {
        what: format!("look at {}", dir.display()),
        error,
    })?;
    Ok(metadata.dev())
}

/// A sparse file that is removed when this is dropped.
#[derive(Debug)]
struct Image(PathBuf);

impl Image {
    fn new(options: &VolumeOptions) -> Result<Self, VolumeError> {
        let name = format!("{PREFIX}{}.img", std::process::id());
        let path = options.image_dir.join(name);
        let fail = |error| VolumeError::Call {
            what: format!("make the image {} (--image-dir says where)", path.display()),
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

/// The loop device that the image got. Never cut short: nobody would know which one it is.
fn attach(image: &Path) -> Result<String, VolumeError> {
    let image = image.to_string_lossy();
    let said = program::run("losetup", &["--find", "--show", &image])?;
    Ok(said.trim().to_owned())
}

fn make_file_system(
    kind: FileSystem,
    device: &str,
    is_given_up: &dyn Fn() -> bool,
) -> Result<(), VolumeError> {
    let (program, words) = match kind {
        FileSystem::Xfs => ("mkfs.xfs", &["-q"][..]),
        // All of it now, so that nothing is initialised while the recording runs.
        FileSystem::Ext4 => (
            "mkfs.ext4",
            &["-q", "-F", "-E", "lazy_itable_init=0,lazy_journal_init=0"][..],
        ),
    };
    program::run_unless(program, &[words, &[device]].concat(), is_given_up)?;
    Ok(())
}

fn mount(kind: FileSystem, device: &str, dir: &Path) -> Result<(), VolumeError> {
    let kind = match kind {
        FileSystem::Xfs => c"xfs",
        FileSystem::Ext4 => c"ext4",
    };
    // What is deleted is told, so that a simulation can do with it or without.
    let mounted = rustix::mount::mount(device, dir, kind, MountFlags::NOATIME, c"discard");
    mounted.map_err(|error| VolumeError::Call {
        what: format!("mount {device} at {}", dir.display()),
        error: error.into(),
    })
}

/// Who has something open below a directory, on the file system of that number: not on what is covered there.
fn users(dir: &Path, device: u64) -> String {
    let mut users = Vec::new();
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if name.parse::<u32>().is_err() {
            continue;
        }
        let process = entry.path();
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
            let comm = fs::read_to_string(process.join("comm")).unwrap_or_default();
            users.push(format!("{} ({name})", comm.trim_end()));
        }
    }
    if users.is_empty() {
        "somebody".to_owned()
    } else {
        users.join(", ")
    }
}
