//! The root folder of the system in which services are enabled or disabled.

use std::io;
use std::path::{Path, PathBuf};

/// The root folder of a system, free of symbolic links: `/`, or that of an image or a chroot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Root(PathBuf);

/// The root folder does not exist or cannot be searched.
#[derive(Debug, thiserror::Error)]
#[error("cannot use {} as a root folder: {error}", folder.display())]
pub struct RootError {
    pub folder: PathBuf,
    pub error: io::Error,
}

impl Root {
    pub fn new(folder: &Path) -> Result<Self, RootError> {
        match folder.canonicalize() {
            Ok(folder) => Ok(Self(folder)),
            Err(error) => Err(RootError {
                folder: folder.to_owned(),
                error,
            }),
        }
    }

    pub fn as_path(&self) -> &Path {
        &self.0
    }

    /// The file that programs of this system open as `path`, a path from the root.
    pub fn file(&self, path: impl AsRef<Path>) -> PathBuf {
        let path = path.as_ref();
        self.0.join(path.strip_prefix("/").unwrap_or(path))
    }
}
