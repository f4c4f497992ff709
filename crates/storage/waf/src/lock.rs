//! One watcher per drive and sample file.
//!
//! A lock on one byte of a file beside the samples: the kernel gives it back however the watcher ends, and watchers of
//! other drives take other bytes. Deliberately absent: process numbers in files.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io;
use std::os::fd::AsFd as _;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use crate::room;
use crate::sample::DriveId;
use crate::sys;

/// The lock of one drive; it ends with this value.
#[derive(Debug)]
pub(crate) struct Held {
    path: PathBuf,
    file: File,
}

/// Why this watcher may not put samples of a drive into a file.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// Somebody else does.
    #[error("{drive} is watched already, into {}: end the other watch, or name another --file", file.display())]
    Taken {
        /// Which drive.
        drive: DriveId,
        /// The sample file.
        file: PathBuf,
    },
    /// There is no room for the file of locks.
    #[error("no room for {}: its disk is full", path.display())]
    Full {
        /// The file of locks.
        path: PathBuf,
    },
    /// The lock could not be had.
    #[error("cannot lock {}: {error}", path.display())]
    Failed {
        /// The file of locks.
        path: PathBuf,
        /// What the system said.
        error: io::Error,
    },
}

impl Held {
    /// Takes the lock of a drive in `file`, or says who may not.
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
            Err(error) if room::is_lack(&error) => Err(LockError::Full { path }),
            Err(error) => Err(LockError::Failed { path, error }),
        }
    }
}

impl Held {
    /// Whether the file of locks is still the one that others find; somebody may have removed it.
    pub(crate) fn is_found(&self) -> bool {
        let node = |it: &Metadata| (it.dev(), it.ino());
        let found = fs::metadata(&self.path).ok();
        let own = self.file.metadata().ok();
        found.is_some() && found.as_ref().map(node) == own.as_ref().map(node)
    }
}

/// Which byte stands for a drive (FNV-1a, as it must be the same in every release).
fn byte_of(drive: &DriveId) -> i64 {
    let bytes = drive.to_string().into_bytes();
    let hash = bytes.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    });
    // Offsets of files are positive.
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
        let first = Held::take(&file, &drive("1")).unwrap();
        let error = Held::take(&file, &drive("1")).unwrap_err();
        assert!(matches!(error, LockError::Taken { .. }));
        assert!(error.to_string().starts_with("M 1 is watched already"));
        let _other_drive = Held::take(&file, &drive("2")).unwrap();
        let _other_file = Held::take(&dir.path().join("b.db"), &drive("1")).unwrap();
        assert!(first.is_found());
        drop(first);
        Held::take(&file, &drive("1")).unwrap();
        let held = Held::take(&file, &drive("1")).unwrap();
        fs::remove_file(dir.path().join("waf.db.lock")).unwrap();
        assert!(!held.is_found());
        let nowhere = Held::take(&dir.path().join("no/waf.db"), &drive("1"));
        assert!(matches!(nowhere, Err(LockError::Failed { .. })));
    }
}
