//! One process at a time: a lock on the campaign's file, which goes again when nothing was written into it.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use super::CampaignError;

/// A file that only this process works on.
#[derive(Debug)]
pub(super) struct Locked {
    pub(super) file: File,
    /// Where it is when this process has made it and not written into it: then it goes again.
    pub(super) unused: Option<PathBuf>,
}

impl Drop for Locked {
    fn drop(&mut self) {
        if let Some(path) = &self.unused {
            // Should it stay, it holds nothing, and the next command begins in it.
            let _ = fs::remove_file(path);
        }
        // Closing would not do: a child between fork and exec holds the same lock. When even this
        // fails, the end of this process frees it.
        let _ = flock(&self.file, FlockOperation::Unlock);
    }
}

/// The file, made if need be.
pub(super) fn locked(path: &Path) -> Result<Locked, CampaignError> {
    let io = |error| CampaignError::Io {
        path: path.to_owned(),
        error,
    };
    loop {
        let (file, is_new) = opened(path).map_err(io)?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(Errno::WOULDBLOCK) => {
                let path = path.to_owned();
                return Err(CampaignError::InUse { path });
            }
            Err(errno) => return Err(io(errno.into())),
        }
        let mut locked = Locked { file, unused: None };
        // Who had made it may have taken it away again before we had the lock.
        let inode = locked.file.metadata().map_err(io)?.ino();
        if fs::metadata(path).is_ok_and(|there| there.ino() == inode) {
            // Not before: what has that name by now may be somebody else's.
            locked.unused = is_new.then(|| path.to_owned());
            return Ok(locked);
        }
    }
}

/// The file, and whether this process has made it.
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
