//! Whether a directory is what the snapshot says: everything but the bytes.

use std::collections::HashMap;
use std::fmt;
use std::path::{Path, PathBuf};

use crate::disk::Fault;
use crate::manifest::{Dress, Entry, Kind, Part};
use crate::name::shown;
use crate::scan::Found;
use crate::stat::{Identity, Sort, Stat};
use crate::tree::{Access, Tree};

/// One thing that is not as it was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// Where.
    pub path: PathBuf,
    /// What: `its size`, `it is missing`.
    pub what: &'static str,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", shown(&self.path), self.what)
    }
}

/// Whether the owner of files can be the snapshot's: root may give files away.
pub(crate) fn are_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// All differences of names, kinds, links, sizes, modes, owners, times and attributes.
///
/// `identities` are of the files that have further names, filled part by part.
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
    let mut tell = |path: &Path, what| {
        let path = tree.whole(path);
        differences.push(Difference { path, what });
    };
    for entry in &part.entries {
        let Some(found) = present.remove(entry.path.as_path()) else {
            tell(&entry.path, "it is missing");
            continue;
        };
        if let Kind::File(_) = &entry.kind {
            identities.insert((index, entry.path.clone()), found.stat.identity);
        }
        let what = match kind(entry, found, identities) {
            None => dress(tree, entry, &found.stat)?,
            what => what,
        };
        if let Some(what) = what {
            tell(&entry.path, what);
        }
    }
    for found in found
        .iter()
        .filter(|found| present.contains_key(found.path.as_path()))
    {
        tell(&found.path, "it is not in the snapshot");
    }
    Ok(differences)
}

fn kind(
    entry: &Entry,
    found: &Found,
    identities: &HashMap<(usize, PathBuf), Identity>,
) -> Option<&'static str> {
    let is_same = match (&entry.kind, found.stat.sort) {
        (Kind::Directory, Sort::Directory) => true,
        (Kind::Symlink(target), Sort::Symlink) => {
            return (found.target.as_ref() != Some(target)).then_some("where it leads");
        }
        (Kind::File(contents), Sort::File) => {
            return (contents.size != found.stat.size).then_some("its size");
        }
        (Kind::HardLink { part, path }, Sort::File) => {
            let first = identities.get(&(*part, path.clone()));
            return (first != Some(&found.stat.identity)).then_some("which file it names");
        }
        (Kind::Directory | Kind::Symlink(_) | Kind::File(_) | Kind::HardLink { .. }, _) => false,
    };
    (!is_same).then_some("what kind of file it is")
}

fn dress(tree: &Tree<'_>, entry: &Entry, stat: &Stat) -> Result<Option<&'static str>, Fault> {
    let Dress {
        mode,
        uid,
        gid,
        mtime,
        attributes,
    } = &entry.dress;
    if (*uid, *gid) != (stat.uid, stat.gid) {
        return Ok(Some("its owner"));
    }
    let is_root = entry.path.as_os_str().is_empty();
    let present = match &entry.kind {
        // The mode of a link means nothing, and its target says the rest.
        Kind::Symlink(_) => {
            return Ok((*mtime != stat.mtime).then_some("its time"));
        }
        Kind::HardLink { .. } => return Ok(None),
        Kind::Directory => tree.folder_handle(&entry.path)?.attributes()?,
        Kind::File(_) => tree.file(&entry.path, Access::Read)?.attributes()?,
    };
    Ok(if *mode != stat.mode {
        Some("its mode")
    } else if present != *attributes {
        Some("its extended attributes")
    } else if *mtime != stat.mtime && !is_root {
        // The mark of a restore comes and goes in the root; its time is nobody's data.
        Some("its time")
    } else {
        None
    })
}
