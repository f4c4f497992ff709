//! Exclusive lock on the campaign's file; an unused new file is removed again.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::flock;
use saiga_process::lock::{FlockOperation, try_lock};

use super::CampaignError;

/// A file that this process has locked.
#[derive(Debug)]
pub(super) struct Locked {
    pub(super) file: File,
    /// Path of the file if this process created it and has not written to it; it is removed on
    /// drop.
    pub(super) unused: Option<PathBuf>,
}

impl Drop for Locked {
    fn drop(&mut self) {
        if let Some(path) = &self.unused {
            // If this fails, the file is empty and the next command uses it.
            let _ = fs::remove_file(path);
        }
        // Closing the file is not enough, because a child between fork and exec holds the same
        // lock. If the unlock fails, the end of this process releases the lock.
        let _ = flock(&self.file, FlockOperation::Unlock);
    }
}

/// Opens and locks the file; creates it if it does not exist.
pub(super) fn locked(path: &Path) -> Result<Locked, CampaignError> {
    let io = |error| CampaignError::Io {
        path: path.to_owned(),
        error,
    };
    loop {
        let (file, is_new) = opened(path).map_err(io)?;
        if !try_lock(&file, FlockOperation::NonBlockingLockExclusive).map_err(io)? {
            let path = path.to_owned();
            return Err(CampaignError::InUse { path });
        }
        let mut locked = Locked { file, unused: None };
        // Another process may have created the file and removed it again before this process got
        // the lock.
        let inode = locked.file.metadata().map_err(io)?.ino();
        if fs::metadata(path).is_ok_and(|current| current.ino() == inode) {
            // Set only now: before, the name could belong to another process's file.
            locked.unused = is_new.then(|| path.to_owned());
            return Ok(locked);
        }
    }
}

/// Opens the file; the second value says whether this call created it.
fn opened(path: &Path) -> io::Result<(File, bool)> {
    let mut options = File::options();
    options.read(true).write(true);
    match options.clone().create_new(true).open(path) {
        Ok(file) => Ok((file, true)),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            let file = options.create(true).truncate(false).open(path)?;
            Ok((file, false))
        }
        Err(error) => Err(error),
    }
}
