//! Errors of opening, reading and writing the sample file.

use std::io;
use std::path::{Path, PathBuf};

use rusqlite::ErrorCode;

use super::row::RowFault;
use crate::disk_space;

/// Why the sample file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    #[error("there is no {}; create it with `saiga waf watch`, or name another --file", path.display())]
    Missing { path: PathBuf },
    /// The file or its directory cannot be accessed.
    #[error("cannot read {}: {error}; run as its owner, or name another --file", path.display())]
    Unreachable { path: PathBuf, error: io::Error },
    /// The process that created the file ended before it could store a sample.
    #[error("{} is empty; `saiga waf watch` stores the first sample", path.display())]
    Empty { path: PathBuf },
    #[error("cannot create {}: {error}", path.display())]
    Create { path: PathBuf, error: io::Error },
    #[error("cannot store a sample in {}: its disk is full", path.display())]
    Full { path: PathBuf },
    #[error("{} is locked by another program", path.display())]
    Locked { path: PathBuf },
    #[error("{} is not a file of samples; name another --file", path.display())]
    Foreign { path: PathBuf },
    /// The file has the format of a newer release.
    #[error("{} has format {version} and this version of saiga reads format 2; use a newer saiga", path.display())]
    Version { path: PathBuf, version: i32 },
    #[error(
        "{} is damaged: sample {} has {} {:?}",
        path.display(), fault.id, fault.column, fault.value
    )]
    Row { path: PathBuf, fault: RowFault },
    #[error("cannot use {}: {error}", path.display())]
    Sqlite {
        path: PathBuf,
        error: rusqlite::Error,
    },
}

impl StoreError {
    /// Whether the same operation may succeed later.
    #[must_use]
    pub fn is_temporary(&self) -> bool {
        matches!(self, Self::Full { .. } | Self::Locked { .. })
    }

    pub(super) fn create(path: &Path, error: io::Error) -> Self {
        let path = path.to_owned();
        if disk_space::is_exhausted(&error) {
            return Self::Full { path };
        }
        Self::Create { path, error }
    }

    /// Creates the error for a file that does not exist or cannot be accessed.
    pub(super) fn missing(path: &Path, error: io::Error) -> Self {
        let path = path.to_owned();
        if error.kind() == io::ErrorKind::NotFound {
            return Self::Missing { path };
        }
        Self::Unreachable { path, error }
    }

    pub(super) fn sqlite(path: &Path, error: rusqlite::Error) -> Self {
        let is_full = || disk_space::is_exhausted_beside(path);
        let path = path.to_owned();
        match error.sqlite_error_code() {
            Some(ErrorCode::DiskFull) => Self::Full { path },
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Self::Locked { path },
            Some(ErrorCode::NotADatabase) => Self::Foreign { path },
            // SQLite returns one of these codes if it cannot create or flush the journal because
            // the disk or a quota is full.
            Some(ErrorCode::CannotOpen | ErrorCode::SystemIoFailure) if is_full() => {
                Self::Full { path }
            }
            _ => Self::Sqlite { path, error },
        }
    }

    pub(super) fn row(path: &Path, fault: RowFault) -> Self {
        let path = path.to_owned();
        Self::Row { path, fault }
    }
}
