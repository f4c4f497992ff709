//! For tests: file systems on loop devices, mounted in a mount namespace of the calling thread.
//!
//! [`Disks`] unmounts its file systems when it is dropped, and so also when a test fails. The
//! kernel then detaches the loop devices.
#![expect(
    unsafe_code,
    reason = "unshare(2) has no safe wrapper: other threads may rely on state that they share with this thread"
)]
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::thread::UnshareFlags;

/// A folder with image files and mount points of file systems.
#[derive(Debug)]
pub struct Disks {
    folder: tempfile::TempDir,
    /// Mount points in the order of their mounts.
    mounted: Vec<PathBuf>,
    /// Mount point, loop device, and the open loop device. While a loop device is open, no other
    /// process gets its number after an unmount, and files keep their identity at the next mount.
    devices: Vec<(PathBuf, PathBuf, fs::File)>,
    /// Runs one test at a time: tests drop the host's caches and count loop devices and inodes.
    _lock: MutexGuard<'static, ()>,
}

static LOCK: Mutex<()> = Mutex::new(());

impl Default for Disks {
    fn default() -> Self {
        Self::new()
    }
}

impl Disks {
    /// Creates an empty folder, and moves the calling thread into a new mount namespace.
    ///
    /// # Panics
    /// Panics if the process does not run as root.
    #[must_use]
    pub fn new() -> Self {
        let lock = LOCK.lock().unwrap_or_else(PoisonError::into_inner);
        // SAFETY: unsharing the mount namespace also unshares the thread's working directory, and
        // tests use no relative paths.
        let unshared = unsafe { rustix::thread::unshare_unsafe(UnshareFlags::NEWNS) };
        unshared.expect("mounting needs root");
        run("mount", &["--make-rprivate", "/"]);
        Self {
            folder: tempfile::tempdir().unwrap(),
            mounted: Vec::new(),
            devices: Vec::new(),
            _lock: lock,
        }
    }

    /// Returns the path of `name` in the folder.
    #[must_use]
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().canonicalize().unwrap().join(name)
    }

    /// Creates and mounts a file system of `kind` in a file of 400 MiB. Returns the mount point.
    pub fn disk(&mut self, kind: &str) -> PathBuf {
        let mount_point = self.path(kind);
        let image = self.path(&format!("{kind}.img"));
        let file = fs::File::create(&image).unwrap();
        file.set_len(400 << 20).unwrap();
        let quiet = if kind == "xfs" { "-q" } else { "-qF" };
        run(&format!("/usr/sbin/mkfs.{kind}"), &[quiet, text(&image)]);
        fs::create_dir(&mount_point).unwrap();
        self.mount(kind);
        mount_point
    }

    /// Mounts the file system of `kind` again after an unmount, from the same device.
    ///
    /// # Panics
    /// Panics if the mount fails.
    pub fn mount(&mut self, kind: &str) {
        let (mount_point, image) = (self.path(kind), self.path(&format!("{kind}.img")));
        let known = self.devices.iter().find(|(at, _, _)| *at == mount_point);
        if let Some((_, device, _)) = known {
            run("mount", &[text(device), text(&mount_point)]);
        } else {
            run("mount", &["-o", "loop", text(&image), text(&mount_point)]);
            let device = device_of(&mount_point);
            let open = fs::File::open(&device).unwrap();
            self.devices.push((mount_point.clone(), device, open));
        }
        self.mounted.push(mount_point);
    }

    /// Bind-mounts `from` at `to`.
    pub fn bind(&mut self, from: &Path, to: &Path) {
        run("mount", &["--bind", text(from), text(to)]);
        self.mounted.push(to.to_owned());
    }

    /// Mounts a file system without a device, such as tmpfs, at `name` in the folder. Returns the
    /// mount point.
    pub fn mount_as(&mut self, kind: &str, options: &str, name: &str) -> PathBuf {
        let mount_point = self.path(name);
        fs::create_dir_all(&mount_point).unwrap();
        let mount_point_text = text(&mount_point);
        run(
            "mount",
            &["-t", kind, "-o", options, "none", mount_point_text],
        );
        self.mounted.push(mount_point.clone());
        mount_point
    }
}

impl Drop for Disks {
    fn drop(&mut self) {
        for mount_point in self.mounted.iter().rev() {
            let _ = Command::new("umount").arg("-l").arg(mount_point).output();
        }
    }
}

/// Returns the path of the block device that is mounted at `mount_point`.
fn device_of(mount_point: &Path) -> PathBuf {
    let device = rustix::fs::stat(mount_point).unwrap().st_dev;
    let (major, minor) = (rustix::fs::major(device), rustix::fs::minor(device));
    let link = fs::read_link(format!("/sys/dev/block/{major}:{minor}")).unwrap();
    Path::new("/dev").join(link.file_name().unwrap())
}

/// Runs a program and waits for its end.
///
/// # Panics
/// Panics if the program fails.
pub fn run(program: &str, arguments: &[&str]) {
    let output = Command::new(program).args(arguments).output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program} {arguments:?}: {stderr}");
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}
