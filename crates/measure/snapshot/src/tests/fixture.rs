//! Directories for the tests, and short forms of this crate's functions.

use std::fs;
use std::ops::ControlFlow;
use std::os::unix::ffi::OsStringExt as _;
use std::os::unix::fs::{FileExt as _, PermissionsExt as _, chown, symlink};
use std::path::{Path, PathBuf};

use super::test_lock::TestLock;
use crate::{Options, Progress, RestoreError, Restored, Snapshot, TakeError};

/// A temporary folder with parts and a path for a snapshot.
pub(crate) struct Fixture {
    folder: tempfile::TempDir,
    pub(crate) parts: Vec<PathBuf>,
    _lock: TestLock,
}

impl Fixture {
    /// `count` empty parts: `part0`, `part1` ...
    pub(crate) fn bare(count: usize) -> Self {
        Self::within(tempfile::tempdir().unwrap(), count, TestLock::shared())
    }

    /// `count` empty parts in memory, where hundreds of flushes are fast.
    pub(crate) fn in_memory(count: usize) -> Self {
        let folder = tempfile::tempdir_in("/dev/shm").unwrap();
        Self::within(folder, count, TestLock::shared())
    }

    /// `count` empty parts, for a test that starts processes.
    pub(crate) fn alone(count: usize) -> Self {
        Self::within(tempfile::tempdir().unwrap(), count, TestLock::exclusive())
    }

    fn within(folder: tempfile::TempDir, count: usize, lock: TestLock) -> Self {
        let root = folder.path().canonicalize().unwrap();
        let parts: Vec<PathBuf> = (0..count).map(|n| root.join(format!("part{n}"))).collect();
        for part in &parts {
            fs::create_dir(part).unwrap();
        }
        Self {
            folder,
            parts,
            _lock: lock,
        }
    }

    /// A data directory and a tablespace with every kind of file.
    pub(crate) fn full() -> Self {
        Self::bare(2).filled()
    }

    /// As [`Self::full`], in memory.
    pub(crate) fn full_in_memory() -> Self {
        Self::in_memory(2).filled()
    }

    /// As [`Self::full`], for a test that starts processes.
    pub(crate) fn full_alone() -> Self {
        Self::alone(2).filled()
    }

    /// As [`Self::full`], in memory and for a test that starts processes.
    pub(crate) fn full_alone_in_memory() -> Self {
        let folder = tempfile::tempdir_in("/dev/shm").unwrap();
        Self::within(folder, 2, TestLock::exclusive()).filled()
    }

    fn filled(self) -> Self {
        let fixture = self;
        let [data, space] = [0, 1].map(|n| fixture.part(n));
        fs::create_dir_all(data.join("base/1")).unwrap();
        fs::create_dir(data.join("empty")).unwrap();
        fs::write(data.join("PG_VERSION"), "15\n").unwrap();
        fs::write(data.join("base/1/1259"), vec![7; 3 * (1 << 20) + 17]).unwrap();
        fs::write(data.join("base/1/zero-length"), "").unwrap();
        fs::write(space.join("16400"), vec![9; 100_000]).unwrap();
        symlink(&space, data.join("tablespace")).unwrap();
        symlink("base/1/1259", data.join("relative")).unwrap();
        symlink("/nowhere/at/all", data.join("dangling")).unwrap();
        fs::hard_link(data.join("PG_VERSION"), data.join("base/1/PG_VERSION")).unwrap();
        fs::hard_link(data.join("PG_VERSION"), space.join("PG_VERSION")).unwrap();
        for name in [
            &b"odd\nname"[..],
            b"\xff\xfe",
            b"back\\slash",
            b"\x1b[31m",
            b" ",
        ] {
            let name = std::ffi::OsString::from_vec(name.to_vec());
            fs::write(data.join(name), "odd").unwrap();
        }
        sparse(&data.join("sparse"));
        let mode = |path: &str, mode| {
            fs::set_permissions(data.join(path), fs::Permissions::from_mode(mode)).unwrap();
        };
        mode("base/1/zero-length", 0o640);
        mode("empty", 0o1770);
        mode("PG_VERSION", 0o400);
        chown(data.join("base"), Some(12345), Some(54321)).unwrap();
        std::os::unix::fs::lchown(data.join("dangling"), Some(12345), Some(1)).unwrap();
        let old = fs::File::open(data.join("base/1/1259")).unwrap();
        let when = std::time::SystemTime::UNIX_EPOCH
            + std::time::Duration::new(1_234_567_890, 987_654_321);
        old.set_modified(when).unwrap();
        fixture
    }

    pub(crate) fn part(&self, index: usize) -> PathBuf {
        self.parts.get(index).unwrap().clone()
    }

    /// A path in the temporary folder, outside of the parts.
    pub(crate) fn beside(&self, name: &str) -> PathBuf {
        self.folder.path().canonicalize().unwrap().join(name)
    }

    /// Path of the snapshot.
    pub(crate) fn place(&self) -> PathBuf {
        self.beside("snapshot")
    }

    pub(crate) fn take(&self) -> Result<Snapshot, TakeError> {
        self.take_with(&Options::default())
    }

    pub(crate) fn take_with(&self, options: &Options) -> Result<Snapshot, TakeError> {
        crate::take(&self.parts, &self.place(), options, &quiet)
    }
}

/// Restores with the default options.
pub(crate) fn restore(snapshot: &Snapshot) -> Result<Restored, RestoreError> {
    crate::restore(snapshot, &Options::default(), &quiet)
}

pub(crate) fn quiet(_: Progress) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

/// Makes a file of 4 MiB with data only in its second and its last 64 KiB.
pub(crate) fn sparse(path: &Path) {
    let file = fs::File::create(path).unwrap();
    file.set_len(4 << 20).unwrap();
    file.write_all_at(&[1; 1 << 16], 1 << 16).unwrap();
    file.write_all_at(&[2; 1 << 16], (4 << 20) - (1 << 16))
        .unwrap();
    file.sync_all().unwrap();
}

/// Changes files as a server does, and replaces and removes others.
pub(crate) fn damage(fixture: &Fixture) {
    let [data, space] = [0, 1].map(|n| fixture.part(n));
    let table = fs::OpenOptions::new()
        .write(true)
        .open(data.join("base/1/1259"))
        .unwrap();
    table.write_all_at(b"changed", 1 << 20).unwrap();
    table.write_all_at(b"more", 4 << 20).unwrap();
    fs::write(data.join("sparse"), vec![0; 4 << 20]).unwrap();
    fs::remove_file(data.join("PG_VERSION")).unwrap();
    fs::write(data.join("PG_VERSION"), "16\n").unwrap();
    fs::remove_file(data.join("tablespace")).unwrap();
    fs::create_dir(data.join("tablespace")).unwrap();
    fs::write(data.join("tablespace/deep"), "deep").unwrap();
    fs::remove_dir(data.join("empty")).unwrap();
    fs::write(data.join("empty"), "now a file").unwrap();
    fs::write(data.join("stranger"), "stranger").unwrap();
    fs::remove_file(space.join("16400")).unwrap();
    chown(data.join("base"), Some(0), Some(0)).unwrap();
    fs::set_permissions(&data, fs::Permissions::from_mode(0o700)).unwrap();
}
