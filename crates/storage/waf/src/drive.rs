//! The interface of drives, live or recorded: a drive returns pages.

use std::io;
use std::path::{Path, PathBuf};

use crate::live::Live;
use crate::page::Page;
use crate::recorded::Recorded;
use crate::status::Status;

/// A source of pages: an NVMe drive or a recording of one.
pub trait Drive {
    /// Reads a page. Its length and content are not checked.
    ///
    /// # Errors
    /// The drive refuses the page, or the page cannot be read.
    fn read(&mut self, page: Page) -> Result<Vec<u8>, ReadError>;

    /// Returns the namespace if the path of the drive is that of a namespace.
    fn namespace(&self) -> Option<u32>;
}

/// An error of reading a page.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The drive has completed the command with an error status.
    #[error("the drive refuses {}: {status}", page.title())]
    Refused { page: Page, status: Status },
    #[error("the recording has no {}", page.file_name())]
    NotRecorded { page: Page },
    /// The drive was removed.
    #[error("{} is gone: {error}", path.display())]
    Gone { path: PathBuf, error: io::Error },
    #[error("this user may not read pages of {}: run as root (CAP_SYS_ADMIN)", path.display())]
    Forbidden { path: PathBuf },
    /// The system call failed.
    #[error("cannot read {} from {}: {error}", page.title(), path.display())]
    Failed {
        page: Page,
        path: PathBuf,
        error: io::Error,
    },
}

impl ReadError {
    /// Whether the drive certainly lacks the page.
    #[must_use]
    pub fn is_absence(&self) -> bool {
        match self {
            Self::Refused { page: _, status } => status.is_absence(),
            Self::NotRecorded { .. } => true,
            Self::Gone { .. } | Self::Forbidden { .. } | Self::Failed { .. } => false,
        }
    }
}

/// An error of opening a drive or a recording.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error(
        "there is no {}: name an NVMe drive (/dev/nvme0, /dev/nvme0n1) or the folder of a recording",
        path.display()
    )]
    Missing { path: PathBuf },
    #[error(
        "{} is not an NVMe drive: name one like /dev/nvme0 or /dev/nvme0n1, or the folder of a \
         recording", path.display()
    )]
    NotNvme { path: PathBuf },
    /// The directory lacks the page of the controller, which every recording has.
    #[error(
        "{} is not a recording of a drive: it has no {}",
        path.display(), Page::Controller.file_name()
    )]
    NoRecording { path: PathBuf },
    #[error("this user may not open {}: run as root", path.display())]
    Forbidden { path: PathBuf },
    #[error("cannot open {}: {error}", path.display())]
    Failed { path: PathBuf, error: io::Error },
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

    /// Whether the path no longer leads to a drive.
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

/// Opens a drive by its device node, or a recording by its directory.
///
/// # Errors
/// The path is neither, or cannot be opened.
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
