//! Locks that allow one watcher for each drive and sample file.
//!
//! A watcher locks one byte of a file beside the samples; watchers of other drives lock other
//! bytes. The kernel releases the lock when the watcher ends in any way. Deliberately absent: PIDs
//! in files.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io;
use std::os::fd::AsFd as _;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use crate::disk_space;
use crate::sample::DriveId;
use crate::sys;

/// The lock of one drive, released when this value is dropped.
#[derive(Debug)]
pub(crate) struct DriveLock {
    path: PathBuf,
    file: File,
}

/// An error of locking a drive for a sample file.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// Another watcher has the lock for this sample file.
    #[error(
        "{drive} is watched already, into {}: end the other watch, or name another --file",
        file.display()
    )]
    Taken { drive: DriveId, file: PathBuf },
    /// There is no space for the file of locks.
    #[error("cannot create {}: its disk is full", path.display())]
    Full { path: PathBuf },
    #[error("cannot lock {}: {error}", path.display())]
    Failed { path: PathBuf, error: io::Error },
}

impl DriveLock {
    /// Takes the lock of a drive for the sample file `file`.
    pub(crate) fn take(file: &Path, drive: &DriveId) -> Result<Self, LockError> {
        let mut name = file.as_os_str().to_owned();
        name.push(".lock");
        let path = PathBuf::from(name);
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(false).mode(0o600);
        let taken = options
            .open(&path)
            .and_then(|lock| Ok((sys::lock_byte(lock.as_fd(), byte_of(drive))?, lock)));
        match taken {
            Ok((true, file)) => Ok(Self { path, file }),
            Ok((false, _)) => Err(LockError::Taken {
                drive: drive.clone(),
                file: file.to_owned(),
            }),
            Err(error) if disk_space::is_exhausted(&error) => Err(LockError::Full { path }),
            Err(error) => Err(LockError::Failed { path, error }),
        }
    }
}

impl DriveLock {
    /// Whether the lock file still has its name. If it was removed, other watchers lock a new file.
    pub(crate) fn has_its_name(&self) -> bool {
        let node = |it: &Metadata| (it.dev(), it.ino());
        let found = fs::metadata(&self.path).ok();
        let own = self.file.metadata().ok();
        found.is_some() && found.as_ref().map(node) == own.as_ref().map(node)
    }
}

/// Returns the offset of a drive's byte (FNV-1a, the same in every release).
fn byte_of(drive: &DriveId) -> i64 {
    let bytes = drive.to_string().into_bytes();
    let hash = bytes.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    });
    // File offsets must not be negative.
    i64::try_from(hash >> 2).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_drive_is_locked_once_per_file() {
        let dir = tempfile::tempdir().unwrap();
        let drive = |serial: &str| DriveId {
            model: "M".to_owned(),
            serial: serial.to_owned(),
            group: None,
        };
        let file = dir.path().join("waf.db");
        let first = DriveLock::take(&file, &drive("1")).unwrap();
        let error = DriveLock::take(&file, &drive("1")).unwrap_err();
        assert!(matches!(error, LockError::Taken { .. }));
        assert!(error.to_string().starts_with("M 1 is watched already"));
        let _other_drive = DriveLock::take(&file, &drive("2")).unwrap();
        let _other_file = DriveLock::take(&dir.path().join("b.db"), &drive("1")).unwrap();
        assert!(first.has_its_name());
        drop(first);
        DriveLock::take(&file, &drive("1")).unwrap();
        let held = DriveLock::take(&file, &drive("1")).unwrap();
        fs::remove_file(dir.path().join("waf.db.lock")).unwrap();
        assert!(!held.has_its_name());
        let nowhere = DriveLock::take(&dir.path().join("no/waf.db"), &drive("1"));
        assert!(matches!(nowhere, Err(LockError::Failed { .. })));
    }
}
