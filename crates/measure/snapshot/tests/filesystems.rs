//! Snapshots on real file systems: shared extents, full disks, mount points.
//!
//! Needs root. Each test mounts its file systems in a mount namespace of its own thread, which the
//! host does not see and which ends with the test.
#![expect(
    unsafe_code,
    reason = "unshare(2) is unsafe in rustix: the thread no longer shares state with the others"
)]
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::ops::ControlFlow;
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};

use saiga_snapshot::{
    Check, Options, Progress, Reflink, RestoreError, Restored, Snapshot, TakeError, check_ready,
    drop_caches, verify,
};

/// Keeps tests apart. Between fork and exec, `mkfs` and `mount` have all files of this process
/// open, so `check_not_running` would find them in the directories of other tests.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// A temporary folder whose mounts only this thread sees.
struct Mounts {
    folder: tempfile::TempDir,
    _lock: MutexGuard<'static, ()>,
}

impl Mounts {
    fn new() -> Self {
        let lock = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
        // SAFETY: this thread has no open file whose path is relative to its working directory.
        let unshared =
            unsafe { rustix::thread::unshare_unsafe(rustix::thread::UnshareFlags::NEWNS) };
        unshared.expect("mounting needs root");
        run("mount", &["--make-rprivate", "/"]);
        Self {
            folder: tempfile::tempdir().unwrap(),
            _lock: lock,
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().canonicalize().unwrap().join(name)
    }

    /// Makes a file system of `kind` with `size_mib` MiB in a file and mounts it at `name`.
    fn disk(&self, kind: &str, size_mib: u64, name: &str) -> PathBuf {
        let (image, place) = (self.path(&format!("{name}.img")), self.path(name));
        fs::File::create(&image)
            .unwrap()
            .set_len(size_mib << 20)
            .unwrap();
        let mkfs = format!("/usr/sbin/mkfs.{kind}");
        let quiet = if kind == "xfs" { "-q" } else { "-qF" };
        run(&mkfs, &[quiet, text(&image)]);
        fs::create_dir(&place).unwrap();
        run("mount", &["-o", "loop", text(&image), text(&place)]);
        place
    }

    fn memory(&self, size: &str, name: &str) -> PathBuf {
        let place = self.path(name);
        fs::create_dir(&place).unwrap();
        run(
            "mount",
            &[
                "-t",
                "tmpfs",
                "-o",
                &format!("size={size}"),
                "none",
                text(&place),
            ],
        );
        place
    }
}

impl Drop for Mounts {
    fn drop(&mut self) {
        for name in ["disk", "data", "small", "part"] {
            let place = self.path(name);
            if place.exists() {
                // Without mounts the folder can be removed. A name that was never mounted fails.
                let _ = Command::new("umount").arg("-l").arg(&place).output();
            }
        }
    }
}

fn run(program: &str, args: &[&str]) {
    let output = Command::new(program).args(args).output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program} {args:?}: {stderr}");
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

fn quiet(_: Progress) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

fn take(part: &Path, to: &Path, options: &Options) -> Result<Snapshot, TakeError> {
    saiga_snapshot::take(&[part.to_owned()], to, options, &quiet)
}

fn restore(snapshot: &Snapshot, options: &Options) -> Result<Restored, RestoreError> {
    saiga_snapshot::restore(snapshot, options, &quiet)
}

/// Used bytes of the file system of `path`, after a sync.
fn used(path: &Path) -> u64 {
    run("sync", &["-f", text(path)]);
    let space = rustix::fs::statvfs(path).unwrap();
    (space.f_blocks - space.f_bfree) * space.f_frsize
}

#[test]
fn xfs_shares_extents_and_copies_on_request() {
    let mounts = Mounts::new();
    let disk = mounts.disk("xfs", 400, "disk");
    let data = disk.join("data");
    fs::create_dir(&data).unwrap();
    let table = data.join("table");
    fs::write(&table, vec![42; 40 << 20]).unwrap();
    let when = fs::metadata(&table).unwrap().modified().unwrap();
    let before = used(&disk);
    let options = Options::default();
    let snapshot = take(&data, &disk.join("snapshot"), &options).unwrap();
    assert!(
        used(&disk) - before < 4 << 20,
        "the snapshot occupies almost no space"
    );
    assert_eq!(verify(&snapshot, &options, &quiet).unwrap(), []);
    // A change of the original does not change the snapshot.
    let file = fs::OpenOptions::new().write(true).open(&table).unwrap();
    file.write_all_at(b"a page", 10 << 20).unwrap();
    drop(file);
    assert_eq!(verify(&snapshot, &options, &quiet).unwrap(), []);
    for check in [Check::Auto, Check::Full] {
        fs::write(data.join("stranger"), "x").unwrap();
        let options = Options { check, ..options };
        let restored = restore(&snapshot, &options).unwrap();
        assert_eq!(
            (restored.shared_bytes, restored.written_bytes),
            (40 << 20, 0)
        );
        assert_eq!(fs::read(&table).unwrap(), vec![42; 40 << 20]);
        assert_eq!(fs::metadata(&table).unwrap().modified().unwrap(), when);
        assert!(!data.join("stranger").exists());
    }
    assert!(used(&disk) - before < 8 << 20);
    let copied = Options {
        reflink: Reflink::Never,
        ..options
    };
    let file = fs::OpenOptions::new().write(true).open(&table).unwrap();
    file.write_all_at(b"a page", 10 << 20).unwrap();
    drop(file);
    let restored = restore(&snapshot, &copied).unwrap();
    assert_eq!(
        (restored.shared_bytes, restored.written_bytes),
        (0, 1 << 20)
    );
    let second = take(&data, &disk.join("second"), &copied).unwrap();
    assert!(used(&disk) - before > 38 << 20);
    assert_eq!(second.fingerprint(), snapshot.fingerprint());
}

/// The data are on one disk and the snapshot is on another one.
#[test]
fn extents_are_not_shared_between_disks() {
    let mounts = Mounts::new();
    let (disk, small) = (
        mounts.disk("xfs", 320, "disk"),
        mounts.memory("20m", "small"),
    );
    let data = disk.join("data");
    fs::create_dir(&data).unwrap();
    fs::write(data.join("table"), vec![1; 5 << 20]).unwrap();
    let snapshot = take(&data, &small.join("snapshot"), &Options::default()).unwrap();
    fs::write(data.join("table"), vec![2; 5 << 20]).unwrap();
    let restored = restore(&snapshot, &Options::default()).unwrap();
    assert_eq!(
        (restored.shared_bytes, restored.written_bytes),
        (0, 5 << 20)
    );
}

#[test]
fn a_full_disk_is_reported_before_anything_is_copied() {
    let mounts = Mounts::new();
    let small = mounts.memory("4m", "small");
    let data = mounts.path("stopped");
    fs::create_dir(&data).unwrap();
    fs::write(data.join("table"), vec![1; 6 << 20]).unwrap();
    let place = small.join("snapshot");
    let error = take(&data, &place, &Options::default()).unwrap_err();
    assert!(matches!(error, TakeError::Space { .. }), "{error}");
    assert!(!place.exists());
    // A restore to a disk that another file has filled.
    let part = small.join("data");
    fs::create_dir(&part).unwrap();
    fs::write(part.join("table"), vec![1; 2 << 20]).unwrap();
    let snapshot = take(&part, &mounts.path("snapshot"), &Options::default()).unwrap();
    fs::remove_file(part.join("table")).unwrap();
    fs::write(small.join("stranger"), vec![1; 3 << 20]).unwrap();
    let error = restore(&snapshot, &Options::default()).unwrap_err();
    assert!(matches!(error, RestoreError::Space { .. }), "{error}");
    check_ready(std::slice::from_ref(&part)).unwrap();
    fs::remove_file(small.join("stranger")).unwrap();
    restore(&snapshot, &Options::default()).unwrap();
    assert_eq!(fs::read(part.join("table")).unwrap(), vec![1; 2 << 20]);
}

/// The disk becomes full after the check of its free space.
#[test]
fn a_disk_that_becomes_full_leaves_no_snapshot() {
    let mounts = Mounts::new();
    let small = mounts.memory("8m", "small");
    let data = mounts.path("stopped");
    fs::create_dir(&data).unwrap();
    fs::write(data.join("a"), vec![1; 3 << 20]).unwrap();
    fs::write(data.join("b"), vec![2; 3 << 20]).unwrap();
    let (place, stranger) = (small.join("snapshot"), small.join("stranger"));
    let fill = |_: Progress| {
        if !stranger.exists() {
            fs::write(&stranger, vec![3; 4 << 20]).unwrap();
        }
        ControlFlow::Continue(())
    };
    let one = Options {
        threads: std::num::NonZeroUsize::new(1),
        ..Options::default()
    };
    let error = saiga_snapshot::take(std::slice::from_ref(&data), &place, &one, &fill).unwrap_err();
    assert!(
        error.to_string().contains("No space left on device"),
        "{error}"
    );
    assert!(!place.exists());
    fs::remove_file(&stranger).unwrap();
    take(&data, &place, &one).unwrap();
}

#[test]
fn a_part_may_be_a_mount_point_and_must_stay_one() {
    let mounts = Mounts::new();
    let disk = mounts.disk("ext4", 32, "disk");
    fs::write(disk.join("table"), "rows").unwrap();
    let lost_found = fs::metadata(disk.join("lost+found")).unwrap().ino();
    let snapshot = take(&disk, &mounts.path("snapshot"), &Options::default()).unwrap();
    fs::write(disk.join("table"), "changed").unwrap();
    restore(&snapshot, &Options::default()).unwrap();
    assert_eq!(fs::read(disk.join("table")).unwrap(), b"rows");
    assert_eq!(
        fs::metadata(disk.join("lost+found")).unwrap().ino(),
        lost_found
    );
    run("umount", &[text(&disk)]);
    let error = restore(&snapshot, &Options::default()).unwrap_err();
    assert!(matches!(error, RestoreError::NotMounted(_)), "{error}");
    assert_eq!(fs::read_dir(&disk).unwrap().count(), 0);
}

#[test]
fn take_and_restore_refuse_a_mount_inside_a_part() {
    let mounts = Mounts::new();
    let part = mounts.path("stopped");
    fs::create_dir(&part).unwrap();
    fs::write(part.join("table"), "rows").unwrap();
    let snapshot = take(&part, &mounts.path("snapshot"), &Options::default()).unwrap();
    let inside = part.join("inside");
    fs::create_dir(&inside).unwrap();
    // A bind mount of the same file system has the same device number.
    let other = mounts.path("other");
    fs::create_dir(&other).unwrap();
    fs::write(other.join("precious"), "precious").unwrap();
    run("mount", &["--bind", text(&other), text(&inside)]);
    let error = restore(&snapshot, &Options::default()).unwrap_err();
    assert!(matches!(error, RestoreError::MountInside(_)), "{error}");
    let error = take(&part, &mounts.path("second"), &Options::default()).unwrap_err();
    assert!(matches!(error, TakeError::MountInside(_)), "{error}");
    assert!(inside.join("precious").exists());
    run("umount", &[text(&inside)]);
    restore(&snapshot, &Options::default()).unwrap();
    assert!(!inside.exists());
}

#[test]
fn an_immutable_file_is_reported_before_any_change() {
    let mounts = Mounts::new();
    let disk = mounts.disk("ext4", 32, "disk");
    let part = disk.join("data");
    fs::create_dir(&part).unwrap();
    fs::write(part.join("table"), "rows").unwrap();
    let snapshot = take(&part, &mounts.path("snapshot"), &Options::default()).unwrap();
    fs::write(part.join("table"), "changed").unwrap();
    run("chattr", &["+i", text(&part.join("table"))]);
    let error = restore(&snapshot, &Options::default()).unwrap_err();
    assert!(matches!(error, RestoreError::Immutable(_)), "{error}");
    check_ready(std::slice::from_ref(&part)).unwrap();
    run("chattr", &["-i", text(&part.join("table"))]);
    restore(&snapshot, &Options::default()).unwrap();
}

/// Before the drop a read comes from the cache, afterwards from the disk.
#[test]
fn caches_are_dropped() {
    let mounts = Mounts::new();
    let path = mounts.disk("ext4", 32, "disk").join("file");
    fs::write(&path, vec![1; 1 << 20]).unwrap();
    let file = fs::File::open(&path).unwrap();
    let read_from_disk = || {
        let mut bytes = vec![0; 1 << 20];
        let before = io_read_bytes();
        file.read_exact_at(&mut bytes, 0).unwrap();
        io_read_bytes() - before
    };
    assert_eq!(read_from_disk(), 0);
    drop_caches().expect("dropping caches needs root");
    assert!(read_from_disk() >= 1 << 20);
}

/// Bytes that this thread has read from disks.
fn io_read_bytes() -> u64 {
    let io = fs::read_to_string("/proc/thread-self/io").unwrap();
    let read = io
        .lines()
        .find_map(|line| line.strip_prefix("read_bytes: "));
    read.unwrap().parse().unwrap()
}
