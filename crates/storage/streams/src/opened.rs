//! Where a file is that somebody opens, by our paths: the opener may see it by others.
//!
//! The kernel names an opened file as its opener sees it. Below one of our own mounts that is our path, too. A container
//! has mounts of its own, and so has a service with a sandbox: then the file is looked up by its handle on our mount,
//! which says how it is called there. Neither opens the file.

use std::os::fd::{AsFd as _, BorrowedFd};
use std::path::PathBuf;

use crate::sys;
use crate::tree;
use crate::view::{Branch, View};

/// The path of an open file on one of our mounts; `None` when it is on none of them, or has no name (O_TMPFILE): what the
/// kernel calls such a file is nothing that rules are about, and a name that it gets is told of.
pub(crate) fn path(view: &View, file: BorrowedFd<'_>) -> Option<PathBuf> {
    let (device, mount) = tree::whereabouts_named(file)?;
    let here = |branch: &&Branch| branch.device == device;
    let mut branches = view.branches.iter().filter(here);
    if mount.is_some() && branches.any(|branch| branch.mount == mount) {
        return tree::known_path(file).ok();
    }
    let handle = sys::handle_of(file).ok()?;
    // A mount shows a part of its file system, so each of ours is asked.
    let mut asked = Vec::new();
    view.branches.iter().filter(here).find_map(|branch| {
        if asked.contains(&branch.mount) {
            return None;
        }
        asked.push(branch.mount);
        let dir = tree::open_dir(&branch.dir).ok()?;
        // Another file system may have been mounted over it meanwhile.
        (tree::whereabouts(dir.as_fd()).ok()?.0 == device).then_some(())?;
        let same = sys::open_by_handle(dir.as_fd(), &handle, libc::O_PATH).ok()?;
        let path = tree::known_path(same.as_fd()).ok()?;
        view.branch(&path).is_some().then_some(path)
    })
}
