//! Dropping the page cache, so that every run reads its data from the disk at first.

use std::fs;
use std::io;

const SWITCH: &str = "/proc/sys/vm/drop_caches";

/// Why the caches are still there.
#[derive(Debug, thiserror::Error)]
pub enum DropError {
    /// Only root may.
    #[error("only root can drop the caches of this machine (it is a write to {SWITCH})")]
    NotRoot,
    /// A container has no right to it, or the kernel refuses.
    #[error("cannot drop the caches of this machine: {SWITCH}: {0}")]
    Refused(io::Error),
}

/// Writes everything to the disks, then drops page cache, dentries and inodes of the whole machine.
///
/// # Errors
/// When this user or this container may not.
pub fn drop_caches() -> Result<(), DropError> {
    // What is not on its disk yet cannot be dropped.
    rustix::fs::sync();
    match fs::write(SWITCH, "3\n") {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Err(DropError::NotRoot),
        written => written.map_err(DropError::Refused),
    }
}
