//! A drive as a directory of log pages that tests rewrite.

use std::fs;
use std::path::PathBuf;

use crate::support::Installation;

/// One MiB in the unit of the counters.
pub(crate) const MIB_4K: u64 = 256;

/// A Huawei drive as a directory of log pages.
pub(crate) struct Drive {
    pub(crate) folder: PathBuf,
}

impl Drive {
    pub(crate) fn new(saiga: &Installation, name: &str, serial: &str) -> Self {
        let folder = saiga.path(name);
        fs::create_dir(&folder).unwrap();
        let drive = Self { folder };
        drive.identity(serial);
        drive
    }

    pub(crate) fn identity(&self, serial: &str) {
        let mut page = vec![b' '; 72];
        page.resize(4096, 0);
        put(&mut page, 0, &[0xe5, 0x19]);
        put(&mut page, 4, serial.as_bytes());
        put(&mut page, 24, b"HWE52P431T6M002N");
        put(&mut page, 64, b"1.07");
        self.page("identity", "identify-controller.bin", &page);
    }

    /// Sets the counters, in units of 4 KiB: host writes, and pages moved by garbage collection.
    pub(crate) fn counts(&self, host: u64, moved: u64) {
        let mut page = vec![0; 512];
        put(&mut page, 0x1c4, &host.to_le_bytes());
        put(&mut page, 0x1d0, &moved.to_le_bytes());
        self.page("counters", "log-c0.bin", &page);
    }

    /// Sets the used percentage of its life, and host writes in units of 512,000 bytes.
    pub(crate) fn health(&self, used_percent: u8, host: u64) {
        let mut page = vec![0; 512];
        put(&mut page, 3, &[98, 10, used_percent]);
        put(&mut page, 48, &host.to_le_bytes());
        self.page("health", "log-02.bin", &page);
    }

    /// Replaces a page atomically.
    pub(crate) fn page(&self, temporary: &str, name: &str, bytes: &[u8]) {
        let new = self.folder.join(temporary);
        fs::write(&new, bytes).unwrap();
        fs::rename(new, self.folder.join(name)).unwrap();
    }
}

fn put(page: &mut [u8], at: usize, bytes: &[u8]) {
    page[at..at + bytes.len()].copy_from_slice(bytes);
}
