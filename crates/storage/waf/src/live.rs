//! Reads pages of an NVMe drive of this host by ioctl.

use std::fs::{self, File, Metadata};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use crate::drive::{Drive, OpenError, ReadError};
use crate::page::Page;
use crate::sys::{self, Failure};

/// An open drive, by the device of its controller or of a namespace.
#[derive(Debug)]
pub struct Live {
    path: PathBuf,
    device: File,
    namespace: Option<u32>,
}

impl Live {
    /// Opens a device. Devices of other drivers are refused without any command.
    ///
    /// # Errors
    /// The device is missing, is not an NVMe drive, or cannot be opened.
    pub fn open(path: &Path) -> Result<Self, OpenError> {
        let not_nvme = || OpenError::NotNvme {
            path: path.to_owned(),
        };
        let fault = |error| OpenError::new(path, error);
        // Checked before the open, which could start a watchdog device or block on a pipe, and
        // again after it, because the path may lead to another file by then.
        if !is_nvme(&path.metadata().map_err(fault)?) {
            return Err(not_nvme());
        }
        let device = File::open(path).map_err(fault)?;
        if !is_nvme(&device.metadata().map_err(fault)?) {
            return Err(not_nvme());
        }
        Ok(Self {
            path: path.to_owned(),
            namespace: sys::namespace(device.as_fd()),
            device,
        })
    }
}

/// Whether the kernel's name of a device begins with nvme. Other drivers may give the request
/// another meaning.
fn is_nvme(node: &Metadata) -> bool {
    let kind = node.file_type();
    let folder = match (kind.is_char_device(), kind.is_block_device()) {
        (true, _) => "char",
        (_, true) => "block",
        _ => return false,
    };
    let (major, minor) = (
        rustix::fs::major(node.rdev()),
        rustix::fs::minor(node.rdev()),
    );
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
    fn other_devices_than_nvme_drives_are_refused() {
        for path in ["/dev/null", "/proc/self/status"] {
            let error = Live::open(Path::new(path)).unwrap_err();
            assert!(matches!(error, OpenError::NotNvme { .. }), "{error:?}");
            assert!(error.to_string().starts_with(path), "{error}");
        }
        let dir = tempfile::tempdir().unwrap();
        let pipe = dir.path().join("pipe");
        rustix::fs::mknodat(
            rustix::fs::CWD,
            &pipe,
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::RUSR,
            0,
        )
        .unwrap();
        assert!(matches!(Live::open(&pipe), Err(OpenError::NotNvme { .. })));
        let error = Live::open(Path::new("/dev/nvme99")).unwrap_err();
        assert!(matches!(error, OpenError::Missing { .. }), "{error:?}");
    }
}
