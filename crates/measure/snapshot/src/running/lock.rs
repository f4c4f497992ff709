//! Finds the holder of a record lock on a file, by F_OFD_GETLK (`man 2 fcntl_locking`).
#![expect(
    unsafe_code,
    reason = "fcntl(F_OFD_GETLK) has no safe wrapper: rustix has F_GETLK only, and its pid type \
              cannot represent the -1 of open file descriptions"
)]

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd as _;

/// The holder of a lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Holder {
    Process(u32),
    /// An open file description, or a process in another pid namespace.
    Unknown,
}

/// The holder of the first lock in `file` that conflicts with a write lock on the whole file.
pub(super) fn holder(file: &File) -> io::Result<Option<Holder>> {
    let mut lock = libc::flock {
        l_type: narrow(libc::F_WRLCK),
        l_whence: narrow(libc::SEEK_SET),
        l_start: 0,
        l_len: 0,
        l_pid: 0,
    };
    // SAFETY: the descriptor is open and `lock` is a flock that the kernel may write.
    let rc = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_OFD_GETLK, &raw mut lock) };
    if rc != 0 {
        return match io::Error::last_os_error() {
            // A file system without locks.
            error if error.raw_os_error() == Some(libc::EINVAL) => Ok(None),
            error => Err(error),
        };
    }
    if lock.l_type == narrow(libc::F_UNLCK) {
        return Ok(None);
    }
    Ok(Some(match u32::try_from(lock.l_pid) {
        Ok(pid) if pid > 0 => Holder::Process(pid),
        Ok(_) | Err(_) => Holder::Unknown,
    }))
}

/// Converts a constant of libc, an int, to the type of the fields; all of them are small.
fn narrow(constant: libc::c_int) -> libc::c_short {
    libc::c_short::try_from(constant).unwrap_or_default()
}
