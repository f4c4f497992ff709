//! Validates a manifest. A restore writes and deletes what the manifest says, so every field that
//! it relies on is checked.

use std::collections::{BTreeMap, HashSet};
use std::path::{Component, Path, PathBuf};

use super::{Contents, Entry, Kind, Manifest, Part};
use crate::hash::pieces_of;
use crate::name;

/// A manifest is not valid.
#[derive(Debug, thiserror::Error)]
pub enum ManifestError {
    #[error("{0}")]
    Json(#[from] serde_json::Error),
    #[error("it has format {found}, and this version of saiga reads format {known}")]
    Version { found: u64, known: u64 },
    #[error("the field {0} is missing or has a value that saiga never writes")]
    Field(&'static str),
    /// A path outside of its part, a second entry for a path, or an entry before its folder.
    #[error("the path {} is not valid at this position", name::shown(.0))]
    Path(PathBuf),
    /// The hashes do not match: the file was edited, or its disk is failing.
    #[error("its content was changed after the snapshot was taken")]
    Altered,
}

impl Manifest {
    /// Checks everything that a restore relies on.
    pub(super) fn check(&self) -> Result<(), ManifestError> {
        let mut numbers = HashSet::new();
        let mut files: HashSet<(usize, &Path)> = HashSet::new();
        for (index, part) in self.parts.iter().enumerate() {
            part.check()?;
            for entry in &part.entries {
                match &entry.kind {
                    Kind::File(contents) => {
                        check_contents(contents, &mut numbers)?;
                        files.insert((index, &entry.path));
                    }
                    Kind::HardLink { part, path } if files.contains(&(*part, path)) => {}
                    Kind::HardLink { path, .. } => return Err(ManifestError::Path(path.clone())),
                    Kind::Directory | Kind::Symlink(_) => {}
                }
            }
        }
        Ok(())
    }
}

impl Part {
    fn check(&self) -> Result<(), ManifestError> {
        let mut parts = self.path.components();
        let is_plain = parts.next() == Some(Component::RootDir)
            && parts.all(|part| matches!(part, Component::Normal(_)));
        if !is_plain || self.path.parent().is_none() {
            return Err(ManifestError::Path(self.path.clone()));
        }
        let mut seen: BTreeMap<&Path, &Kind> = BTreeMap::new();
        for Entry {
            path,
            kind,
            metadata,
        } in &self.entries
        {
            let out_of_place = || ManifestError::Path(path.clone());
            let is_root = path.as_os_str().is_empty();
            if is_root != seen.is_empty() {
                return Err(out_of_place());
            }
            let folder = path.parent().and_then(|folder| seen.get(folder));
            let is_in_folder = is_root || matches!(folder, Some(Kind::Directory));
            let is_plain = path
                .components()
                .all(|part| matches!(part, Component::Normal(_)));
            // `a//b` and `a/.` have plain components, but are other forms of `a/b` and `a`.
            let is_normal = path.components().collect::<PathBuf>().as_os_str() == path.as_os_str();
            if !is_in_folder || !is_plain || !is_normal || is_root != is_root_kind(path, kind) {
                return Err(out_of_place());
            }
            if metadata.mode > 0o7777 || metadata.mtime.nanos >= 1_000_000_000 {
                return Err(ManifestError::Field("mode or mtime"));
            }
            if seen.insert(path, kind).is_some() {
                return Err(out_of_place());
            }
        }
        if seen.is_empty() {
            return Err(ManifestError::Path(self.path.clone()));
        }
        Ok(())
    }
}

/// Whether this is a valid entry for the root: an empty path and a directory.
fn is_root_kind(path: &Path, kind: &Kind) -> bool {
    path.as_os_str().is_empty() && *kind == Kind::Directory
}

fn check_contents(contents: &Contents, numbers: &mut HashSet<u64>) -> Result<(), ManifestError> {
    let Contents {
        size,
        allocated: _,
        stored,
        pieces,
    } = contents;
    // The largest file of Linux. Below this size offsets cannot overflow.
    if *size > i64::MAX.unsigned_abs() || pieces_of(*size) != pieces.len() as u64 {
        return Err(ManifestError::Field("size"));
    }
    match stored {
        None if *size == 0 => Ok(()),
        Some(number) if *size > 0 && numbers.insert(*number) => Ok(()),
        None | Some(_) => Err(ManifestError::Field("stored")),
    }
}
