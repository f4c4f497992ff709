//! Advisory locks of files (`man 2 flock`).

use std::io;
use std::os::fd::AsFd;

pub use rustix::fs::FlockOperation;
use rustix::io::Errno;

/// Takes the lock of an open file with a `NonBlocking` operation; `false` if another open file
/// description holds it. The lock is held until the description is closed in all processes.
///
/// # Errors
/// The file system has no locks.
pub fn try_lock(file: impl AsFd, operation: FlockOperation) -> io::Result<bool> {
    match rustix::fs::flock(file, operation) {
        Ok(()) => Ok(true),
        Err(Errno::WOULDBLOCK) => Ok(false),
        Err(error) => Err(error.into()),
    }
}
