//! Bytes that the kernel has written to a disk, from `stat` in sysfs
//! (Documentation/block/stat.rst).

use std::io;

use super::{RouteError, System};

/// Size in bytes of a sector in `stat`, the same for every disk.
const SECTOR: u64 = 512;

/// Writes to a disk since its detection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Written {
    /// Bytes of completed writes.
    pub bytes: u64,
    /// Whether requests are in flight.
    pub is_busy: bool,
}

impl System {
    /// Returns the size of a disk's logical block in bytes.
    ///
    /// # Errors
    /// sysfs has no valid size.
    pub fn block_bytes(&self, disk: &str) -> Result<u64, RouteError> {
        let path = format!("sys/class/block/{disk}/queue/logical_block_size");
        let bytes = self.read(&path)?.trim().parse();
        let bytes = bytes.ok().filter(|bytes| *bytes > 0);
        bytes.ok_or_else(|| self.invalid(&path, "it does not contain a positive number"))
    }

    /// Returns the writes to a disk. Kernels before 6.3 count writes to a namespace with native
    /// multipath on its paths only; these are summed up then.
    ///
    /// # Errors
    /// sysfs has no statistics of the disk, or `queue/iostats` is 0.
    pub fn written(&self, disk: &str) -> Result<Written, RouteError> {
        let counting = format!("sys/class/block/{disk}/queue/iostats");
        if self.read(&counting).is_ok_and(|text| text.trim() == "0") {
            return Err(self.invalid(&counting, "writes are not counted; write 1 to it"));
        }
        let own = self.stat(disk)?;
        let mut paths = Vec::new();
        for path in self.paths(disk) {
            paths.push(self.stat(&path)?);
        }
        let bytes = paths
            .iter()
            .fold(0, |sum: u64, it| sum.saturating_add(it.bytes));
        Ok(Written {
            bytes: own.bytes.max(bytes),
            is_busy: own.is_busy || paths.iter().any(|path| path.is_busy),
        })
    }

    fn stat(&self, disk: &str) -> Result<Written, RouteError> {
        let path = format!("sys/class/block/{disk}/stat");
        let text = self.read(&path)?;
        let numbers = text.split_whitespace().map(str::parse);
        let numbers: Result<Vec<u64>, _> = numbers.collect();
        match numbers.as_deref() {
            Ok([_, _, _, _, _, _, sectors, _, in_flight, ..]) => Ok(Written {
                bytes: sectors.saturating_mul(SECTOR),
                is_busy: *in_flight > 0,
            }),
            _ => Err(self.invalid(&path, "it has no count of written sectors")),
        }
    }

    /// Returns the paths to a namespace with native multipath: `nvme0c1n1` is a path to `nvme0n1`.
    fn paths(&self, disk: &str) -> Vec<String> {
        let Some((drive, namespace)) = disk.rsplit_once('n').filter(|_| disk.starts_with("nvme"))
        else {
            return Vec::new();
        };
        let entries = std::fs::read_dir(self.root().join("sys/class/block"));
        let names = entries.into_iter().flatten().flatten();
        let names = names.filter_map(|entry| entry.file_name().into_string().ok());
        let is_path = |name: &String| {
            let rest = name
                .strip_prefix(drive)
                .and_then(|rest| rest.strip_prefix('c'));
            rest.and_then(|rest| rest.split_once('n'))
                .is_some_and(|(controller, number)| {
                    controller.bytes().all(|it| it.is_ascii_digit()) && number == namespace
                })
        };
        names.filter(is_path).collect()
    }

    fn invalid(&self, path: &str, why: &'static str) -> RouteError {
        RouteError::Read {
            path: self.root().join(path),
            error: io::Error::new(io::ErrorKind::InvalidData, why),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn system(files: &[(&str, &str)]) -> (tempfile::TempDir, System) {
        let root = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = root.path().join("sys/class/block").join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let system = System::at(root.path());
        (root, system)
    }

    const IDLE: &str = "1 2 3 4 0 0 0 0 0 5 6\n";

    #[test]
    fn bytes_are_those_of_the_disk_or_of_its_paths() {
        let (_root, system) = system(&[
            ("nvme0n1/stat", "9 9 9 9 9 9    16 9 0 9 9 9 9 9 9 9 9\n"),
            ("nvme0n2/stat", IDLE),
            ("nvme0c0n2/stat", "0 0 0 0 0 0 3 0 0 0 0\n"),
            ("nvme0c11n2/stat", "0 0 0 0 0 0 4 0 1 0 0\n"),
            ("nvme0c0n12/stat", "0 0 0 0 0 0 100 0 0 0 0\n"),
            ("nvme01c0n2/stat", "0 0 0 0 0 0 100 0 0 0 0\n"),
        ]);
        let written = |disk| system.written(disk).unwrap();
        assert_eq!(
            (written("nvme0n1").bytes, written("nvme0n1").is_busy),
            (8192, false)
        );
        assert_eq!(
            (written("nvme0n2").bytes, written("nvme0n2").is_busy),
            (3584, true)
        );
    }

    #[test]
    fn a_missing_count_is_an_error() {
        let (_root, system) = system(&[
            ("sda/stat", "1 2 3\n"),
            ("sdb/stat", IDLE),
            ("sdb/queue/iostats", "0\n"),
            ("sdb/queue/logical_block_size", "0\n"),
        ]);
        let error = |disk| system.written(disk).unwrap_err().to_string();
        assert!(error("sda").ends_with("sda/stat: it has no count of written sectors"));
        assert!(error("sdb").ends_with("queue/iostats: writes are not counted; write 1 to it"));
        assert!(error("sdc").contains("sdc/stat"), "{}", error("sdc"));
        assert!(system.block_bytes("sdb").is_err());
    }
}
