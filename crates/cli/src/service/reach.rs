//! Where a service finds the library, and whether its user can read it: each folder on the way,
//! then the file, by their permission bits. Access control lists are not looked at.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::library;

/// The library, as we and as the service find it.
#[derive(Debug)]
pub(super) struct Library {
    /// Its file on this machine.
    pub(super) file: PathBuf,
    /// Its path for a service of the system below a root, in which it may be.
    pub(super) seen: PathBuf,
}

impl Library {
    /// The library of this `saiga` for services of the system below `root`.
    ///
    /// # Errors
    /// When it is missing.
    pub(super) fn find(root: &Path) -> anyhow::Result<Self> {
        let file = library::find()?;
        let seen = match file.strip_prefix(root) {
            Ok(rest) => Path::new("/").join(rest),
            Err(_) => file.clone(),
        };
        Ok(Self { file, seen })
    }

    /// The folder or file that keeps `user` from reading it, as the service would name it.
    pub(super) fn closed_to(&self, user: &User) -> Option<PathBuf> {
        let steps = self.seen.components().count();
        let closed = closed(&self.file, steps, user)?;
        let below = self.file.strip_prefix(&closed).ok()?.components().count();
        self.seen.ancestors().nth(below).map(Path::to_owned)
    }
}

/// Who a service runs as; a dynamic user is nobody's owner and in no group.
#[derive(Debug, Default)]
pub(super) struct User {
    /// `None`: one that systemd makes up at start.
    pub(super) uid: Option<u32>,
    /// All groups.
    pub(super) gids: Vec<u32>,
}

/// The first folder or file among the last `steps` of the way to `file` that `user` may not pass
/// or read.
fn closed(file: &Path, steps: usize, user: &User) -> Option<PathBuf> {
    if user.uid == Some(0) {
        return None;
    }
    let mut folders: Vec<&Path> = file.ancestors().take(steps).skip(1).collect();
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
