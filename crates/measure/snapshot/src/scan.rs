//! Everything below a directory, without following links and without leaving its file system.

use std::path::{Path, PathBuf};

use crate::disk::Fault;
use crate::journal;
use crate::stat::{Sort, Stat};
use crate::tree::Tree;

/// What mkfs puts into the root of ext file systems; fsck's, not the server's.
const LOST_FOUND: &str = "lost+found";

/// A name below the root; the root itself has the empty path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) path: PathBuf,
    pub(crate) stat: Stat,
    /// Where it leads, for a link.
    pub(crate) target: Option<PathBuf>,
}

impl Found {
    /// Whether nobody has changed it between two looks. How much of the disk it takes, file systems
    /// change by themselves.
    pub(crate) fn is_same(&self, later: &Self) -> bool {
        let allocated = self.stat.allocated;
        let stat = Stat {
            allocated,
            ..later.stat.clone()
        };
        (&self.path, &self.stat, &self.target) == (&later.path, &stat, &later.target)
    }
}

/// Lists `tree`, folders before what they hold. Our own journal is left out, and what lies below
/// a file system that is mounted inside: only its mount point is listed.
pub(crate) fn scan(tree: &Tree<'_>) -> Result<Vec<Found>, Fault> {
    let mut all = Vec::new();
    let mut open = Vec::new();
    let root = look(tree, Path::new(""))?;
    let is_mounted = root.as_ref().is_some_and(|root| root.stat.is_mount_point);
    if root.is_some() {
        open.push(PathBuf::new());
    }
    all.extend(root);
    while let Some(folder) = open.pop() {
        for name in tree.list(&folder)? {
            let at_root = folder.as_os_str().is_empty();
            if at_root && (name == journal::NAME || is_mounted && name == LOST_FOUND) {
                continue;
            }
            // One that went away meanwhile is found to have changed by the caller.
            let Some(found) = look(tree, &folder.join(name))? else {
                continue;
            };
            if found.stat.sort == Sort::Directory && !found.stat.is_mount_point {
                open.push(found.path.clone());
            }
            all.push(found);
        }
    }
    all.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(all)
}

fn look(tree: &Tree<'_>, path: &Path) -> Result<Option<Found>, Fault> {
    let Some(stat) = tree.stat(path)? else {
        return Ok(None);
    };
    let target = match stat.sort {
        Sort::Symlink => Some(tree.read_link(path)?),
        Sort::Directory | Sort::File | Sort::Special(_) => None,
    };
    Ok(Some(Found {
        path: path.to_owned(),
        stat,
        target,
    }))
}

/// The first file system that is mounted inside, if any.
pub(crate) fn mounted_inside(found: &[Found]) -> Option<&Path> {
    let mut inside = found
        .iter()
        .filter(|found| !found.path.as_os_str().is_empty());
    inside
        .find(|found| found.stat.is_mount_point)
        .map(|found| found.path.as_path())
}
