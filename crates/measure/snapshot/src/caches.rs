//! Drops the page cache, so that every run first reads its data from the disk.

use std::fs;
use std::io;

/// `man 5 proc_sys_vm`: writing 3 drops page cache, dentries and inodes.
const DROP_CACHES: &str = "/proc/sys/vm/drop_caches";

/// The caches could not be dropped.
#[derive(Debug, thiserror::Error)]
pub enum DropError {
    #[error("cannot drop the caches of this machine: only root can write to {DROP_CACHES}")]
    NotRoot,
    /// Another failure, such as a read-only `/proc` in a container.
    #[error("cannot drop the caches of this machine: {DROP_CACHES}: {0}")]
    Refused(io::Error),
}

/// Writes all dirty pages to the disks, then drops the caches of the whole machine.
pub fn drop_caches() -> Result<(), DropError> {
    // The kernel drops clean pages only.
    rustix::fs::sync();
    match fs::write(DROP_CACHES, "3\n") {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Err(DropError::NotRoot),
        written => written.map_err(DropError::Refused),
    }
}
