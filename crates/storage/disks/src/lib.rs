//! Tests only: disks that only this thread's mount namespace knows.
//!
//! A disk is a file behind a loop device with a file system on it. What was mounted is unmounted when the folder is
//! dropped, also by a test that fails; the loop devices go by themselves then.
#![expect(
    unsafe_code,
    reason = "unshare(2) has no safe wrapper: other threads would rely on what they share with this one"
)]
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::thread::UnshareFlags;

/// A folder for disks.
#[derive(Debug)]
pub struct Disks {
    folder: tempfile::TempDir,
    mounted: Vec<PathBuf>,
    /// Loop devices by where they are mounted. Open, they stay when they are unmounted: no other process gets their
    /// number, which is part of what a file is.
    devices: Vec<(PathBuf, PathBuf, fs::File)>,
    /// One test at a time: they drop the host's caches and count loop devices, inodes and queues.
    _turn: MutexGuard<'static, ()>,
}

static TURN: Mutex<()> = Mutex::new(());

impl Default for Disks {
    fn default() -> Self {
        Self::new()
    }
}

impl Disks {
    /// An empty folder; from here on this thread sees mounts of its own.
    ///
    /// # Panics
    /// Without root.
    #[must_use]
    pub fn new() -> Self {
        let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        // SAFETY: the test's thread has opened nothing by a path relative to its working directory.
        let unshared = unsafe { rustix::thread::unshare_unsafe(UnshareFlags::NEWNS) };
        unshared.expect("mounting needs root");
        run("mount", &["--make-rprivate", "/"]);
        Self {
            folder: tempfile::tempdir().unwrap(),
            mounted: Vec::new(),
            devices: Vec::new(),
            _turn: turn,
        }
    }

    /// A name in the folder.
    #[must_use]
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().canonicalize().unwrap().join(name)
    }

    /// A file system of `kind` in a file of 400 MiB, mounted; where.
    pub fn disk(&mut self, kind: &str) -> PathBuf {
        let place = self.path(kind);
        let image = self.path(&format!("{kind}.img"));
        let file = fs::File::create(&image).unwrap();
        file.set_len(400 << 20).unwrap();
        let quiet = if kind == "xfs" { "-q" } else { "-qF" };
        run(&format!("/usr/sbin/mkfs.{kind}"), &[quiet, text(&image)]);
        fs::create_dir(&place).unwrap();
        self.mount(kind);
        place
    }

    /// Mounts a disk of this folder once more, from the same device.
    ///
    /// # Panics
    /// When it cannot be mounted.
    pub fn mount(&mut self, kind: &str) {
        let (place, image) = (self.path(kind), self.path(&format!("{kind}.img")));
        let known = self.devices.iter().find(|(at, _, _)| *at == place);
        if let Some((_, device, _)) = known {
            run("mount", &[text(device), text(&place)]);
        } else {
            run("mount", &["-o", "loop", text(&image), text(&place)]);
            let device = device_of(&place);
            let open = fs::File::open(&device).unwrap();
            self.devices.push((place.clone(), device, open));
        }
        self.mounted.push(place);
    }

    /// Shows a directory in another place, too.
    pub fn bind(&mut self, from: &Path, to: &Path) {
        run("mount", &["--bind", text(from), text(to)]);
        self.mounted.push(to.to_owned());
    }

    /// Mounts something without a disk at `name`; where.
    pub fn mount_as(&mut self, kind: &str, options: &str, name: &str) -> PathBuf {
        let place = self.path(name);
        fs::create_dir_all(&place).unwrap();
        run("mount", &["-t", kind, "-o", options, "none", text(&place)]);
        self.mounted.push(place.clone());
        place
    }
}

impl Drop for Disks {
    fn drop(&mut self) {
        for place in self.mounted.iter().rev() {
            let _ = Command::new("umount").arg("-l").arg(place).output();
        }
    }
}

/// The block device that is mounted at `place`.
fn device_of(place: &Path) -> PathBuf {
    let device = rustix::fs::stat(place).unwrap().st_dev;
    let (major, minor) = (rustix::fs::major(device), rustix::fs::minor(device));
    let link = fs::read_link(format!("/sys/dev/block/{major}:{minor}")).unwrap();
    Path::new("/dev").join(link.file_name().unwrap())
}

/// Runs a program that must succeed.
///
/// # Panics
/// It does not.
pub fn run(program: &str, words: &[&str]) {
    let output = Command::new(program).args(words).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program} {words:?}: {said}");
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}
