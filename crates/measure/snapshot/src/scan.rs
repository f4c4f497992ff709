//! Lists everything below a directory. Does not follow links and stays on one file system.

use std::path::{Path, PathBuf};

use crate::disk::Fault;
use crate::journal;
use crate::stat::{FileType, Stat};
use crate::tree::Tree;

/// Directory of fsck in the root of an ext file system; it does not belong to the server.
const LOST_FOUND: &str = "lost+found";

/// A name that a scan found, with its metadata. The root has the empty path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) path: PathBuf,
    pub(crate) stat: Stat,
    /// The target of a symbolic link.
    pub(crate) target: Option<PathBuf>,
}

impl Found {
    /// Whether the file is unchanged since this scan. The allocated size is ignored, because file
    /// systems change it on their own.
    pub(crate) fn is_same(&self, later: &Self) -> bool {
        let allocated = self.stat.allocated;
        let stat = Stat {
            allocated,
            ..later.stat.clone()
        };
        (&self.path, &self.stat, &self.target) == (&later.path, &stat, &later.target)
    }
}

/// Lists `tree`, each folder before its entries. Omits the mark of a restore. Of a file system
/// mounted inside only the mount point is listed.
pub(crate) fn scan(tree: &Tree<'_>) -> Result<Vec<Found>, Fault> {
    let mut all = Vec::new();
    let mut open = Vec::new();
    let root = examine(tree, Path::new(""))?;
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
            // A name that was removed since `list` makes the caller's second scan differ.
            let Some(found) = examine(tree, &folder.join(name))? else {
                continue;
            };
            if found.stat.file_type == FileType::Directory && !found.stat.is_mount_point {
                open.push(found.path.clone());
            }
            all.push(found);
        }
    }
    all.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(all)
}

fn examine(tree: &Tree<'_>, path: &Path) -> Result<Option<Found>, Fault> {
    let Some(stat) = tree.stat(path)? else {
        return Ok(None);
    };
    let target = match stat.file_type {
        FileType::Symlink => Some(tree.read_link(path)?),
        FileType::Directory | FileType::File | FileType::Special(_) => None,
    };
    Ok(Some(Found {
        path: path.to_owned(),
        stat,
        target,
    }))
}

/// The first mount point below the root.
pub(crate) fn mounted_inside(found: &[Found]) -> Option<&Path> {
    let mut inside = found
        .iter()
        .filter(|found| !found.path.as_os_str().is_empty());
    inside
        .find(|found| found.stat.is_mount_point)
        .map(|found| found.path.as_path())
}
