//! Whether a service's user can read a file: each folder on the way, then the file, by their
//! permission bits. Access control lists are not looked at.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Who a service runs as; a dynamic user is nobody's owner and in no group.
#[derive(Debug, Default)]
pub(super) struct User {
    /// `None`: one that systemd makes up at start.
    pub(super) uid: Option<u32>,
    /// All groups.
    pub(super) gids: Vec<u32>,
}

/// The first folder or file on the way to `file` that `user` may not pass or read.
pub(super) fn closed(file: &Path, user: &User) -> Option<PathBuf> {
    if user.uid == Some(0) {
        return None;
    }
    let mut folders: Vec<&Path> = file.ancestors().skip(1).collect();
    folders.reverse();
    let pass = folders.into_iter().map(|folder| (folder, 0o1));
    pass.chain([(file, 0o4)])
        .find(|(path, bit)| !may(path, *bit, user))
        .map(|(path, _)| path.to_owned())
}

/// Whether the class of permission bits that holds for `user` contains `bit`.
fn may(path: &Path, bit: u32, user: &User) -> bool {
    let Ok(facts) = fs::metadata(path) else {
        return false;
    };
    let shift = if user.uid == Some(facts.uid()) {
        6
    } else if user.gids.contains(&facts.gid()) {
        3
    } else {
        0
    };
    facts.mode() >> shift & bit != 0
}
