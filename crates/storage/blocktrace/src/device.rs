//! Block devices by their numbers, and the parts of a disk.

use std::fmt;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// The number of a block device: a disk or a partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Device {
    /// Which driver.
    pub major: u32,
    /// Which of its devices.
    pub minor: u32,
}

/// There is no such block device in sysfs.
#[derive(Debug, thiserror::Error)]
#[error("{device} is not a block device here: {}: {error}", path.display())]
pub struct UnknownDevice {
    /// Which.
    pub device: Device,
    /// Where it should be.
    pub path: PathBuf,
    /// What the kernel said.
    pub error: std::io::Error,
}

/// How many bits of a kernel's `dev_t` are the minor number (`linux/kdev_t.h`).
const MINOR_BITS: u32 = 20;

impl Device {
    /// The device on which a file lies; that of btrfs and others is not a block device.
    ///
    /// # Errors
    /// When the file cannot be looked at.
    pub fn below(path: &Path) -> std::io::Result<Self> {
        let number = fs::metadata(path)?.dev();
        Ok(Self {
            major: rustix::fs::major(number),
            minor: rustix::fs::minor(number),
        })
    }

    /// From what the kernel has in memory.
    pub(crate) fn from_kernel(number: u32) -> Self {
        Self {
            major: number >> MINOR_BITS,
            minor: number & ((1 << MINOR_BITS) - 1),
        }
    }

    /// As the kernel has it in memory; `None` for numbers that no device can have.
    pub(crate) fn kernel(self) -> Option<u32> {
        let fits = self.major < 1 << (32 - MINOR_BITS) && self.minor < 1 << MINOR_BITS;
        fits.then_some(self.major << MINOR_BITS | self.minor)
    }

    /// Where sysfs has it.
    fn folder(self) -> PathBuf {
        PathBuf::from(format!("/sys/dev/block/{self}"))
    }

    /// Its first byte on the whole disk: 0, unless it is a partition.
    ///
    /// # Errors
    /// When there is no such device.
    pub fn start_bytes(self) -> Result<u64, UnknownDevice> {
        let folder = self.real_folder()?;
        let start = fs::read_to_string(folder.join("start")).unwrap_or_default();
        // sysfs counts in sectors of 512 bytes, whatever those of the disk are.
        Ok(start.trim().parse().unwrap_or(0) * 512)
    }

    /// Its length in bytes.
    ///
    /// # Errors
    /// When there is no such device.
    pub fn length_bytes(self) -> Result<u64, UnknownDevice> {
        let folder = self.real_folder()?;
        let size = fs::read_to_string(folder.join("size")).unwrap_or_default();
        Ok(size.trim().parse().unwrap_or(0) * 512)
    }

    /// As the kernel calls it: `nvme0n1p2`.
    ///
    /// # Errors
    /// When there is no such device.
    pub fn name(self) -> Result<String, UnknownDevice> {
        let folder = self.real_folder()?;
        let name = folder.file_name().unwrap_or_default();
        Ok(name.to_string_lossy().into_owned())
    }

    /// The disk that it is, or is a partition of.
    ///
    /// # Errors
    /// When there is no such device.
    pub fn disk(self) -> Result<Self, UnknownDevice> {
        let folder = self.real_folder()?;
        if !folder.join("partition").exists() {
            return Ok(self);
        }
        let disk = folder.parent().and_then(number_in);
        Ok(disk.unwrap_or(self))
    }

    /// The disk that it is, or is a partition of, and all partitions of that: writes are submitted to any of them.
    ///
    /// # Errors
    /// When there is no such device.
    pub fn disk_and_partitions(self) -> Result<Vec<Self>, UnknownDevice> {
        let disk = self.disk()?;
        let mut all = vec![disk];
        let inside = fs::read_dir(disk.real_folder()?).into_iter().flatten();
        for entry in inside.flatten() {
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

/// The number of the device that has this folder in sysfs.
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
    fn numbers_are_packed_as_the_kernel_packs_them() {
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
