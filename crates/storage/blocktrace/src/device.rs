//! Block devices by their numbers, and the partitions of a disk, from sysfs.

use std::fmt;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// The number of a block device: a disk or a partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Device {
    pub major: u32,
    pub minor: u32,
}

/// The error for a device that sysfs does not have.
#[derive(Debug, thiserror::Error)]
#[error("this host has no block device {device}: {}: {error}", path.display())]
pub struct UnknownDevice {
    pub device: Device,
    /// The device's path in sysfs.
    pub path: PathBuf,
    pub error: std::io::Error,
}

/// Number of bits of the minor number in the kernel's `dev_t` (`linux/kdev_t.h`).
const MINOR_BITS: u32 = 20;

impl Device {
    /// Returns the device that holds a file. For btrfs and other file systems with several devices
    /// the result is not a block device.
    ///
    /// # Errors
    /// Fails if stat(2) of `path` fails.
    pub fn of_file(path: &Path) -> std::io::Result<Self> {
        let number = fs::metadata(path)?.dev();
        Ok(Self {
            major: rustix::fs::major(number),
            minor: rustix::fs::minor(number),
        })
    }

    /// Converts from the kernel's `dev_t`.
    pub(crate) fn from_kernel(number: u32) -> Self {
        Self {
            major: number >> MINOR_BITS,
            minor: number & ((1 << MINOR_BITS) - 1),
        }
    }

    /// Converts to the kernel's `dev_t`; `None` if a number is out of range.
    pub(crate) fn kernel(self) -> Option<u32> {
        let fits = self.major < 1 << (32 - MINOR_BITS) && self.minor < 1 << MINOR_BITS;
        fits.then_some(self.major << MINOR_BITS | self.minor)
    }

    fn folder(self) -> PathBuf {
        PathBuf::from(format!("/sys/dev/block/{self}"))
    }

    /// Returns the address of the device's first byte on the whole disk: 0 except for a partition.
    ///
    /// # Errors
    /// Fails if the device does not exist.
    pub fn start_bytes(self) -> Result<u64, UnknownDevice> {
        let folder = self.real_folder()?;
        let start = fs::read_to_string(folder.join("start")).unwrap_or_default();
        // sysfs counts in units of 512 bytes, whatever the sector size of the disk is.
        Ok(start.trim().parse().unwrap_or(0) * 512)
    }

    /// Returns the size of the device in bytes.
    ///
    /// # Errors
    /// Fails if the device does not exist.
    pub fn length_bytes(self) -> Result<u64, UnknownDevice> {
        let folder = self.real_folder()?;
        let size = fs::read_to_string(folder.join("size")).unwrap_or_default();
        Ok(size.trim().parse().unwrap_or(0) * 512)
    }

    /// Returns the kernel's name of the device, such as `nvme0n1p2`.
    ///
    /// # Errors
    /// Fails if the device does not exist.
    pub fn name(self) -> Result<String, UnknownDevice> {
        let folder = self.real_folder()?;
        let name = folder.file_name().unwrap_or_default();
        Ok(name.to_string_lossy().into_owned())
    }

    /// Returns the disk of a partition; a disk returns itself.
    ///
    /// # Errors
    /// Fails if the device does not exist.
    pub fn disk(self) -> Result<Self, UnknownDevice> {
        let folder = self.real_folder()?;
        if !folder.join("partition").exists() {
            return Ok(self);
        }
        let disk = folder.parent().and_then(number_in);
        Ok(disk.unwrap_or(self))
    }

    /// Returns the disk of this device, followed by all partitions of the disk: writes are
    /// submitted to each of them.
    ///
    /// # Errors
    /// Fails if the device does not exist.
    pub fn disk_and_partitions(self) -> Result<Vec<Self>, UnknownDevice> {
        let disk = self.disk()?;
        let mut all = vec![disk];
        let entries = fs::read_dir(disk.real_folder()?).into_iter().flatten();
        for entry in entries.flatten() {
            if entry.path().join("partition").exists() {
                all.extend(number_in(&entry.path()));
            }
        }
        Ok(all)
    }

    fn real_folder(self) -> Result<PathBuf, UnknownDevice> {
        let path = self.folder();
        path.canonicalize().map_err(|error| UnknownDevice {
            device: self,
            path,
            error,
        })
    }
}

/// Reads the number of the device that sysfs shows in this folder.
fn number_in(folder: &Path) -> Option<Device> {
    let text = fs::read_to_string(folder.join("dev")).ok()?;
    let (major, minor) = text.trim().split_once(':')?;
    Some(Device {
        major: major.parse().ok()?,
        minor: minor.parse().ok()?,
    })
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.major, self.minor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_converted_to_and_from_dev_t() {
        for (major, minor, expected) in [
            (8, 1, Some(0x0080_0001)),
            (259, 0xf_ffff, Some(0x103f_ffff)),
            (4095, 0, Some(0xfff0_0000)),
            (4096, 0, None),
            (8, 1 << 20, None),
        ] {
            let device = Device { major, minor };
            assert_eq!(device.kernel(), expected);
            if let Some(number) = expected {
                assert_eq!(Device::from_kernel(number), device);
            }
        }
    }
}
