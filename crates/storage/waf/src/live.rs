//! An NVMe drive of this host, asked by ioctl.

use std::fs::{self, File};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use crate::drive::{Drive, OpenError, ReadError};
use crate::page::Page;
use crate::sys::{self, Failure};

/// A drive by its controller's device or by one of its namespaces.
#[derive(Debug)]
pub struct Live {
    path: PathBuf,
    device: File,
    namespace: Option<u32>,
}

impl Live {
    /// Opens a device; nothing is sent to one that is not NVMe's.
    ///
    /// # Errors
    /// [`OpenError`].
    pub fn open(path: &Path) -> Result<Self, OpenError> {
        let device = File::open(path).map_err(|error| OpenError::new(path, error))?;
        // Of what was opened, not of the name: that may lead elsewhere by now.
        let kind = device
            .metadata()
            .map_err(|error| OpenError::new(path, error))?;
        let folder = if kind.file_type().is_char_device() {
            "char"
        } else {
            "block"
        };
        if !is_nvme(folder, kind.rdev()) {
            return Err(OpenError::NotNvme {
                path: path.to_owned(),
            });
        }
        Ok(Self {
            path: path.to_owned(),
            namespace: sys::namespace(device.as_fd()),
            device,
        })
    }
}

/// Whether the kernel calls this device nvme-something: other drivers may understand our request otherwise.
fn is_nvme(folder: &str, device: u64) -> bool {
    let (major, minor) = (rustix::fs::major(device), rustix::fs::minor(device));
    fs::read_link(format!("/sys/dev/{folder}/{major}:{minor}")).is_ok_and(|target| {
        let name = target.file_name().and_then(|name| name.to_str());
        name.is_some_and(|name| name.starts_with("nvme"))
    })
}

impl Drive for Live {
    fn read(&mut self, page: Page) -> Result<Vec<u8>, ReadError> {
        sys::read_page(self.device.as_fd(), page).map_err(|failure| match failure {
            Failure::Drive(status) => ReadError::Refused { page, status },
            Failure::System(error) => failed(&self.path, page, error),
        })
    }

    fn namespace(&self) -> Option<u32> {
        self.namespace
    }
}

fn failed(path: &Path, page: Page, error: io::Error) -> ReadError {
    let path = path.to_owned();
    match error.raw_os_error() {
        Some(libc::EACCES | libc::EPERM) => ReadError::Forbidden { path },
        Some(libc::ENODEV | libc::ENXIO | libc::ENOENT) => ReadError::Gone { path, error },
        _ => ReadError::Failed { page, path, error },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_nvme_drive_is_not_asked() {
        for path in ["/dev/null", "/proc/self/status"] {
            let error = Live::open(Path::new(path)).unwrap_err();
            assert!(matches!(error, OpenError::NotNvme { .. }), "{error:?}");
            assert!(error.to_string().starts_with(path), "{error}");
        }
        let error = Live::open(Path::new("/dev/nvme99")).unwrap_err();
        assert!(matches!(error, OpenError::Missing { .. }), "{error:?}");
    }
}
