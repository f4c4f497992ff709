//! Finds the path of a file that another process opens, in the labeller's mount namespace.
//!
//! The kernel's path of an opened file is that in the opener's mounts. If the mount is one of ours,
//! that is our path, too. Containers and services with a sandbox have mounts of their own: then the
//! file is looked up by its handle on our mount, which gives the path there. Neither way opens the
//! file.

use std::os::fd::{AsFd as _, BorrowedFd};
use std::path::PathBuf;

use crate::sys;
use crate::tree;
use crate::view::{Branch, View};

/// Returns the path of an open file on one of our mounts. `None` if the file is on none of them or
/// has no name (O_TMPFILE): rules do not apply to the kernel's placeholder, and a later name is an
/// event of its own.
pub(crate) fn path(view: &View, file: BorrowedFd<'_>) -> Option<PathBuf> {
    let (device, mount) = tree::file_system_and_mount_if_named(file)?;
    let here = |branch: &&Branch| branch.device == device;
    let mut branches = view.branches.iter().filter(here);
    if mount.is_some() && branches.any(|branch| branch.mount == mount) {
        return tree::known_path(file).ok();
    }
    let handle = sys::handle_of(file).ok()?;
    // A mount may show only a part of its file system, so each of ours is tried.
    let mut tried = Vec::new();
    view.branches.iter().filter(here).find_map(|branch| {
        if tried.contains(&branch.mount) {
            return None;
        }
        tried.push(branch.mount);
        let dir = tree::open_dir(&branch.dir).ok()?;
        // Another file system may have been mounted over it since.
        (tree::file_system_and_mount(dir.as_fd()).ok()?.0 == device).then_some(())?;
        let same = sys::open_by_handle(dir.as_fd(), &handle, libc::O_PATH).ok()?;
        let path = tree::known_path(same.as_fd()).ok()?;
        view.branch(&path).is_some().then_some(path)
    })
}
