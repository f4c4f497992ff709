//! The file of the trace. It has a temporary name until it is complete, and replaces no other file.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use saiga_process::replace::sync_folder;
use tempfile::{Builder, NamedTempFile};

/// The reason why the file of the trace could not be created or completed.
#[derive(Debug, thiserror::Error)]
pub enum OutputError {
    #[error("{} exists already; name another file, or remove it", .0.display())]
    Exists(PathBuf),
    #[error("cannot write {}: {error}", path.display())]
    Write { path: PathBuf, error: io::Error },
}

/// A file with mode 0600 that is removed unless [`keep`](Self::keep) is called.
#[derive(Debug)]
pub(crate) struct Output {
    path: PathBuf,
    file: NamedTempFile,
}

impl Output {
    /// Creates a temporary file beside `path`.
    pub(crate) fn new(path: &Path) -> Result<Self, OutputError> {
        if path.symlink_metadata().is_ok() {
            return Err(OutputError::Exists(path.to_owned()));
        }
        let fail = |error| OutputError::Write {
            path: path.to_owned(),
            error,
        };
        let name = path
            .file_name()
            .ok_or_else(|| fail(io::ErrorKind::IsADirectory.into()))?;
        let mut prefix = std::ffi::OsString::from(".");
        prefix.push(name);
        prefix.push(".");
        let file = Builder::new()
            .prefix(&prefix)
            .suffix(".part")
            .tempfile_in(parent_of(path))
            .map_err(fail)?;
        Ok(Self {
            path: path.to_owned(),
            file,
        })
    }

    /// Returns the file for writing.
    pub(crate) fn writer(&self) -> Result<File, OutputError> {
        self.file
            .as_file()
            .try_clone()
            .map_err(|error| self.fail(error))
    }

    /// Syncs the file, renames it to its final path, which must not exist, and syncs the directory.
    pub(crate) fn keep(self) -> Result<(), OutputError> {
        let Self { path, file } = self;
        let fail = |error: io::Error| {
            if error.kind() == io::ErrorKind::AlreadyExists {
                OutputError::Exists(path.clone())
            } else {
                OutputError::Write {
                    path: path.clone(),
                    error,
                }
            }
        };
        file.as_file().sync_all().map_err(fail)?;
        file.persist_noclobber(&path)
            .map_err(|error| fail(error.error))?;
        sync_folder(&path).map_err(fail)
    }

    fn fail(&self, error: io::Error) -> OutputError {
        OutputError::Write {
            path: self.path.clone(),
            error,
        }
    }
}

/// The directory of a file.
fn parent_of(path: &Path) -> &Path {
    let parent = path.parent();
    parent
        .filter(|parent| !parent.as_os_str().is_empty())
        .unwrap_or(Path::new("."))
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn a_file_is_complete_or_missing_and_private() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("trace");
        let names = || std::fs::read_dir(folder.path()).unwrap().count();
        drop(Output::new(&path).unwrap());
        assert_eq!(names(), 0);
        let output = Output::new(&path).unwrap();
        output.writer().unwrap().write_all(b"x").unwrap();
        assert!(!path.exists());
        output.keep().unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"x");
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        assert!(matches!(Output::new(&path), Err(OutputError::Exists(_))));
        // Another program creates the file first.
        let other = folder.path().join("other");
        let late = Output::new(&other).unwrap();
        std::fs::write(&other, "theirs").unwrap();
        assert!(matches!(late.keep(), Err(OutputError::Exists(_))));
        assert_eq!(std::fs::read(&other).unwrap(), b"theirs");
        assert_eq!(names(), 2);
    }
}
