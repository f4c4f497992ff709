//! Opens a finished snapshot and answers questions about it from its manifest.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::disk::Fault;
use crate::manifest::{Manifest, ManifestError};
use crate::name::shown;
use crate::store;

/// A finished snapshot on disk.
#[derive(Debug, Clone)]
pub struct Snapshot {
    dir: PathBuf,
    manifest: Manifest,
}

/// A directory is not a usable snapshot.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The directory has no manifest.
    #[error("{} is not a snapshot: it has no {}", shown(.0), store::MANIFEST)]
    None(PathBuf),
    /// A take was interrupted.
    #[error(
        "{} is an incomplete snapshot: `saiga snapshot take` was interrupted; take the snapshot \
         again, into the same directory",
        shown(.0)
    )]
    Unfinished(PathBuf),
    #[error("the manifest of the snapshot {} cannot be used: {error}", shown(dir))]
    Manifest {
        dir: PathBuf,
        #[source]
        error: ManifestError,
    },
    #[error(transparent)]
    Fault(#[from] Fault),
}

impl Snapshot {
    /// Opens the snapshot in `dir` and checks its manifest, but not its files.
    pub fn open(dir: &Path) -> Result<Self, OpenError> {
        let dir = dir.canonicalize().map_err(Fault::at("open", dir))?;
        let path = dir.join(store::MANIFEST);
        let json = match fs::read(&path) {
            Ok(json) => json,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(if store::is_unfinished(&dir) {
                    OpenError::Unfinished(dir)
                } else {
                    OpenError::None(dir)
                });
            }
            Err(error) => return Err(Fault::at("read", &path)(error).into()),
        };
        match Manifest::from_json(&json) {
            Ok(manifest) => Ok(Self { dir, manifest }),
            Err(error) => Err(OpenError::Manifest { dir, error }),
        }
    }

    pub(crate) fn new(dir: PathBuf, manifest: Manifest) -> Self {
        Self { dir, manifest }
    }

    pub(crate) fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// The snapshot's own directory, absolute and without symbolic links.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// The hash of the data, in hexadecimal form. Equal data have equal fingerprints; the time of
    /// the snapshot and the paths of the directories do not matter.
    pub fn fingerprint(&self) -> String {
        self.manifest.fingerprint().to_string()
    }

    /// The time of the snapshot, as RFC 3339.
    pub fn taken(&self) -> &str {
        &self.manifest.taken
    }

    /// The directories of which this is a snapshot, by their original paths.
    pub fn parts(&self) -> Vec<PathBuf> {
        let parts = self.manifest.parts.iter();
        parts.map(|part| part.path.clone()).collect()
    }

    /// Files that the snapshot does not contain, each in a sentence with the reason.
    pub fn notes(&self) -> &[String] {
        &self.manifest.notes
    }

    /// Number of files and of bytes, including holes, for each directory of [`Self::parts`].
    pub fn sizes(&self) -> Vec<(u64, u64)> {
        let mut sizes = vec![(0, 0); self.manifest.parts.len()];
        for (part, _, contents) in self.manifest.files() {
            if let Some((files, bytes)) = sizes.get_mut(part) {
                *files += 1;
                *bytes += contents.size;
            }
        }
        sizes
    }
}
