//! Why samples could not be kept or read, and whether it may be different next time.

use std::io;
use std::path::{Path, PathBuf};

use rusqlite::ErrorCode;

use super::row::RowFault;
use crate::room;

/// Why samples could not be kept or read.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// There is none to read.
    #[error("there is no {}: saiga waf watch makes it, or name another --file", path.display())]
    Missing {
        /// The file.
        path: PathBuf,
    },
    /// What there is cannot be reached.
    #[error("cannot read {}: {error}; run as its owner, or name another --file", path.display())]
    Unreachable {
        /// The file.
        path: PathBuf,
        /// What the system said.
        error: io::Error,
    },
    /// Whoever made it had no room for a sample, or was killed at once.
    #[error("{} is empty: saiga waf watch puts the first sample in", path.display())]
    Empty {
        /// The file.
        path: PathBuf,
    },
    /// It could not be made.
    #[error("cannot make {}: {error}", path.display())]
    Create {
        /// The file.
        path: PathBuf,
        /// What the system said.
        error: io::Error,
    },
    /// Its disk is full.
    #[error("no room for a sample in {}: its disk is full", path.display())]
    Full {
        /// The file.
        path: PathBuf,
    },
    /// Another program keeps it locked.
    #[error("{} is locked by another program", path.display())]
    Locked {
        /// The file.
        path: PathBuf,
    },
    /// It is something else.
    #[error("{} is not a file of samples: name another --file", path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
    },
    /// A later Saiga wrote it.
    #[error("{} has format {version}, this saiga reads format 1: use a newer saiga", path.display())]
    Version {
        /// The file.
        path: PathBuf,
        /// Its format.
        version: i32,
    },
    /// A row holds what no sample does.
    #[error("{} is damaged: sample {} has {} {:?}", path.display(), fault.id, fault.column, fault.value)]
    Row {
        /// The file.
        path: PathBuf,
        /// Which and what.
        fault: RowFault,
    },
    /// SQLite says something else.
    #[error("cannot use {}: {error}", path.display())]
    Sqlite {
        /// The file.
        path: PathBuf,
        /// What it says.
        error: rusqlite::Error,
    },
}

impl StoreError {
    /// Whether waiting may help: nothing has to be done to the file itself.
    #[must_use]
    pub fn is_passing(&self) -> bool {
        matches!(self, Self::Full { .. } | Self::Locked { .. })
    }

    pub(super) fn create(path: &Path, error: io::Error) -> Self {
        let path = path.to_owned();
        if room::is_lack(&error) {
            return Self::Full { path };
        }
        Self::Create { path, error }
    }

    /// There is nothing to read, or nobody lets us.
    pub(super) fn missing(path: &Path, error: io::Error) -> Self {
        let path = path.to_owned();
        if error.kind() == io::ErrorKind::NotFound {
            return Self::Missing { path };
        }
        Self::Unreachable { path, error }
    }

    pub(super) fn sqlite(path: &Path, error: rusqlite::Error) -> Self {
        let is_full = || room::is_lacking_beside(path);
        let path = path.to_owned();
        match error.sqlite_error_code() {
            Some(ErrorCode::DiskFull) => Self::Full { path },
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Self::Locked { path },
            Some(ErrorCode::NotADatabase) => Self::Foreign { path },
            // A journal that cannot be made or flushed is reported as such, whatever the reason; so is a quota.
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
