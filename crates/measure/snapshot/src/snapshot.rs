//! A finished snapshot on disk.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::disk::Fault;
use crate::manifest::{Manifest, ManifestError};
use crate::name::shown;
use crate::store;

/// A finished snapshot.
#[derive(Debug, Clone)]
pub struct Snapshot {
    dir: PathBuf,
    manifest: Manifest,
}

/// Why there is no snapshot.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Nothing is there, or something else.
    #[error("{} is not a snapshot: there is no {} in it", shown(.0), store::MANIFEST)]
    None(PathBuf),
    /// `take` did not come to its end.
    #[error(
        "{} is what an interrupted `saiga snapshot take` left; take the snapshot again, into the same directory",
        shown(.0)
    )]
    Unfinished(PathBuf),
    /// The manifest cannot be used.
    #[error("the manifest of the snapshot {} cannot be used: {error}", shown(dir))]
    Manifest {
        /// The snapshot.
        dir: PathBuf,
        /// Why.
        #[source]
        error: ManifestError,
    },
    /// It cannot be read.
    #[error(transparent)]
    Fault(#[from] Fault),
}

impl Snapshot {
    /// Opens the snapshot in `dir` and checks its manifest, not its files.
    ///
    /// # Errors
    /// Why it is none that can be used.
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

    /// Where it lies.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// The hash of the data, in hexadecimal form: equal data have equal fingerprints, whenever
    /// they were put away and wherever their directories lie.
    pub fn fingerprint(&self) -> String {
        self.manifest.fingerprint().to_string()
    }

    /// When it was taken, RFC 3339.
    pub fn taken(&self) -> &str {
        &self.manifest.taken
    }

    /// The directories that it holds.
    pub fn parts(&self) -> Vec<PathBuf> {
        let parts = self.manifest.parts.iter();
        parts.map(|part| part.path.clone()).collect()
    }

    /// What was left out, and why.
    pub fn notes(&self) -> &[String] {
        &self.manifest.notes
    }

    /// Files and bytes, holes included, of each directory.
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
