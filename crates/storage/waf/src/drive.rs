//! What a drive is to this crate: something that answers with pages.

use std::io;
use std::path::{Path, PathBuf};

use crate::live::Live;
use crate::page::Page;
use crate::recorded::Recorded;
use crate::status::Status;

/// A drive, or what stands for one.
pub trait Drive {
    /// The bytes of a page, as they are: of any length, with anything in them.
    ///
    /// # Errors
    /// [`ReadError`].
    fn read(&mut self, page: Page) -> Result<Vec<u8>, ReadError>;

    /// The namespace that was named, where it was not the whole drive.
    fn namespace(&self) -> Option<u32>;
}

/// Why a page could not be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The drive answered, but not with the page.
    #[error("the drive refuses {}: {status}", page.title())]
    Refused {
        /// What was asked for.
        page: Page,
        /// Its answer.
        status: Status,
    },
    /// A recording has no file of that name.
    #[error("the recording has no {}", page.file_name())]
    NotRecorded {
        /// What was asked for.
        page: Page,
    },
    /// The drive went away.
    #[error("{} is gone: {error}", path.display())]
    Gone {
        /// The drive.
        path: PathBuf,
        /// What the system said.
        error: io::Error,
    },
    /// This user may not ask drives.
    #[error("this user may not ask {} for its pages: run as root (CAP_SYS_ADMIN)", path.display())]
    Forbidden {
        /// The drive.
        path: PathBuf,
    },
    /// The command did not reach the drive, or its answer us.
    #[error("cannot read {} from {}: {error}", page.title(), path.display())]
    Failed {
        /// What was asked for.
        page: Page,
        /// The drive.
        path: PathBuf,
        /// What the system said.
        error: io::Error,
    },
}

impl ReadError {
    /// Whether the drive has no such page; otherwise it might have one.
    #[must_use]
    pub fn is_absence(&self) -> bool {
        match self {
            Self::Refused { page: _, status } => status.is_absence(),
            Self::NotRecorded { .. } => true,
            Self::Gone { .. } | Self::Forbidden { .. } | Self::Failed { .. } => false,
        }
    }
}

/// Why there is no drive to ask.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Nothing has that name.
    #[error("there is no {}: name an NVMe drive (/dev/nvme0, /dev/nvme0n1) or the folder of a recording", path.display())]
    Missing {
        /// What was named.
        path: PathBuf,
    },
    /// Something else than a drive has that name.
    #[error("{} is not an NVMe drive: name one like /dev/nvme0 or /dev/nvme0n1, or the folder of a recording", path.display())]
    NotNvme {
        /// What was named.
        path: PathBuf,
    },
    /// A folder without the one page that a recording must have.
    #[error("{} is not a recording of a drive: it has no {}", path.display(), Page::Controller.file_name())]
    NoRecording {
        /// The folder.
        path: PathBuf,
    },
    /// This user may not open it.
    #[error("this user may not open {}: run as root", path.display())]
    Forbidden {
        /// What was named.
        path: PathBuf,
    },
    /// The system could not open it.
    #[error("cannot open {}: {error}", path.display())]
    Failed {
        /// What was named.
        path: PathBuf,
        /// What the system said.
        error: io::Error,
    },
}

impl OpenError {
    pub(crate) fn new(path: &Path, error: io::Error) -> Self {
        let path = path.to_owned();
        match error.raw_os_error() {
            Some(libc::ENOENT) => Self::Missing { path },
            Some(libc::EACCES | libc::EPERM) => Self::Forbidden { path },
            _ => Self::Failed { path, error },
        }
    }

    /// Whether there is no drive of that name any more.
    pub(crate) fn is_gone(&self) -> bool {
        match self {
            Self::Missing { .. } | Self::NotNvme { .. } | Self::NoRecording { .. } => true,
            Self::Failed { error, path: _ } => {
                matches!(error.raw_os_error(), Some(libc::ENODEV | libc::ENXIO))
            }
            Self::Forbidden { .. } => false,
        }
    }
}

/// Opens a drive by its device, or a recorded one by its folder.
///
/// # Errors
/// [`OpenError`].
pub fn open(path: &Path) -> Result<Box<dyn Drive>, OpenError> {
    let kind = path
        .metadata()
        .map_err(|error| OpenError::new(path, error))?;
    if kind.is_dir() {
        Ok(Box::new(Recorded::open(path)?))
    } else {
        Ok(Box::new(Live::open(path)?))
    }
}
