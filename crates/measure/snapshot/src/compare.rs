//! Compares a directory with the manifest in everything except the content of files.

use std::collections::HashMap;
use std::fmt;
use std::path::{Path, PathBuf};

use crate::disk::Fault;
use crate::manifest::{Entry, Kind, Metadata, Part};
use crate::name::shown;
use crate::scan::Found;
use crate::stat::{FileType, Identity, Stat};
use crate::tree::{Access, Tree};

/// A path that differs from the snapshot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    pub path: PathBuf,
    /// The first property that differs, in words: `size differs`, `missing`.
    pub what: &'static str,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", shown(&self.path), self.what)
    }
}

/// Whether this process may change the owners of files.
pub(crate) fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// All differences of names, file types, links, sizes, modes, owners, times and attributes.
///
/// Adds the identities of this part's files to `identities`, which the hard links of later parts
/// need.
pub(crate) fn part(
    index: usize,
    part: &Part,
    tree: &Tree<'_>,
    found: &[Found],
    identities: &mut HashMap<(usize, PathBuf), Identity>,
) -> Result<Vec<Difference>, Fault> {
    let mut present: HashMap<&Path, &Found> = found
        .iter()
        .map(|found| (found.path.as_path(), found))
        .collect();
    let mut differences = Vec::new();
    let mut add = |path: &Path, what| {
        let path = tree.full_path(path);
        differences.push(Difference { path, what });
    };
    for entry in &part.entries {
        let Some(found) = present.remove(entry.path.as_path()) else {
            add(&entry.path, "missing");
            continue;
        };
        if let Kind::File(_) = &entry.kind {
            identities.insert((index, entry.path.clone()), found.stat.identity);
        }
        let what = match kind_difference(entry, found, identities) {
            None => metadata_difference(tree, entry, &found.stat)?,
            what => what,
        };
        if let Some(what) = what {
            add(&entry.path, what);
        }
    }
    for found in found
        .iter()
        .filter(|found| present.contains_key(found.path.as_path()))
    {
        add(&found.path, "not in the snapshot");
    }
    Ok(differences)
}

fn kind_difference(
    entry: &Entry,
    found: &Found,
    identities: &HashMap<(usize, PathBuf), Identity>,
) -> Option<&'static str> {
    let is_same = match (&entry.kind, found.stat.file_type) {
        (Kind::Directory, FileType::Directory) => true,
        (Kind::Symlink(target), FileType::Symlink) => {
            return (found.target.as_ref() != Some(target)).then_some("link target differs");
        }
        (Kind::File(contents), FileType::File) => {
            return (contents.size != found.stat.size).then_some("size differs");
        }
        (Kind::HardLink { part, path }, FileType::File) => {
            let first = identities.get(&(*part, path.clone()));
            let is_linked = first == Some(&found.stat.identity);
            return (!is_linked).then_some("hard link to another file");
        }
        (Kind::Directory | Kind::Symlink(_) | Kind::File(_) | Kind::HardLink { .. }, _) => false,
    };
    (!is_same).then_some("file type differs")
}

fn metadata_difference(
    tree: &Tree<'_>,
    entry: &Entry,
    stat: &Stat,
) -> Result<Option<&'static str>, Fault> {
    let Metadata {
        mode,
        uid,
        gid,
        mtime,
        attributes,
    } = &entry.metadata;
    if (*uid, *gid) != (stat.uid, stat.gid) {
        return Ok(Some("owner differs"));
    }
    let is_root = entry.path.as_os_str().is_empty();
    let present = match &entry.kind {
        // Linux ignores the mode of a symbolic link.
        Kind::Symlink(_) => {
            return Ok((*mtime != stat.mtime).then_some("modification time differs"));
        }
        Kind::HardLink { .. } => return Ok(None),
        Kind::Directory => tree.folder_handle(&entry.path)?.attributes()?,
        Kind::File(_) => tree.file(&entry.path, Access::Read)?.attributes()?,
    };
    Ok(if *mode != stat.mode {
        Some("mode differs")
    } else if present != *attributes {
        Some("extended attributes differ")
    } else if *mtime != stat.mtime && !is_root {
        // A restore makes and removes its mark in the root, which changes the root's time.
        Some("modification time differs")
    } else {
        None
    })
}
