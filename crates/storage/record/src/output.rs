//! The trace's file: under a name of its own until it is whole, then under the one that was asked for, never over another.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use tempfile::{Builder, NamedTempFile};

/// Why there is no trace.
#[derive(Debug, thiserror::Error)]
pub enum OutputError {
    /// It would overwrite something.
    #[error("{} exists already; name another file, or remove it", .0.display())]
    Exists(PathBuf),
    /// It cannot be made.
    #[error("cannot write {}: {error}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// What the system said.
        error: io::Error,
    },
}

/// A file that is removed unless it is kept. Nobody but its owner may read it.
#[derive(Debug)]
pub(crate) struct Output {
    path: PathBuf,
    file: NamedTempFile,
}

impl Output {
    /// Begins a file that will be `path`.
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
        let parent = path
            .parent()
            .filter(|parent| !parent.as_os_str().is_empty());
        let file = Builder::new()
            .prefix(&prefix)
            .suffix(".part")
            .tempfile_in(parent.unwrap_or(Path::new(".")))
            .map_err(fail)?;
        Ok(Self {
            path: path.to_owned(),
            file,
        })
    }

    /// The file, for writing.
    pub(crate) fn writer(&self) -> Result<File, OutputError> {
        self.file
            .as_file()
            .try_clone()
            .map_err(|error| self.fail(error))
    }

    /// Gives the file its name.
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
        Ok(())
    }

    fn fail(&self, error: io::Error) -> OutputError {
        OutputError::Write {
            path: self.path.clone(),
            error,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn a_file_is_whole_or_not_there_and_nobody_elses() {
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
        // Somebody else was faster.
        let other = folder.path().join("other");
        let late = Output::new(&other).unwrap();
        std::fs::write(&other, "theirs").unwrap();
        assert!(matches!(late.keep(), Err(OutputError::Exists(_))));
        assert_eq!(std::fs::read(&other).unwrap(), b"theirs");
        assert_eq!(names(), 2);
    }
}
