//! Detects a full disk or an exhausted quota.
//!
//! SQLite reports "I/O error" for both. Free blocks may be reserved for root, and quotas count for
//! some users only, so that statvfs(3) is not enough: a file without a name (O_TMPFILE) is written.

use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

/// Bytes of the test file: more than a new sample file with its journal needs.
const ENOUGH: usize = 64 << 10;

/// Whether an error means that blocks, inodes or the quota are exhausted.
pub(crate) fn is_exhausted(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::ENOSPC | libc::EDQUOT))
}

/// Whether the disk or quota is exhausted in the directory of a file. On file systems without
/// O_TMPFILE, only statvfs(3) counts.
pub(crate) fn is_exhausted_beside(file: &Path) -> bool {
    let folder = file.parent().filter(|it| !it.as_os_str().is_empty());
    let folder = folder.unwrap_or(Path::new("."));
    rustix::fs::statvfs(folder).is_ok_and(|disk| disk.f_bavail == 0)
        || try_to_write(folder).is_err_and(|error| is_exhausted(&error))
}

fn try_to_write(folder: &Path) -> io::Result<()> {
    let mut options = OpenOptions::new();
    let mut file = options
        .write(true)
        .custom_flags(libc::O_TMPFILE)
        .mode(0o600)
        .open(folder)?;
    file.write_all(&[1; ENOUGH])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exhausted_blocks_inodes_and_quotas_are_recognised() {
        for (errno, is_one) in [
            (libc::ENOSPC, true),
            (libc::EDQUOT, true),
            (libc::EIO, false),
            (libc::EROFS, false),
        ] {
            let error = io::Error::from_raw_os_error(errno);
            assert_eq!(is_exhausted(&error), is_one, "{error}");
        }
    }

    #[test]
    fn the_test_leaves_no_file() {
        let dir = tempfile::tempdir().unwrap();
        assert!(!is_exhausted_beside(&dir.path().join("waf.db")));
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
        assert!(!is_exhausted_beside(&dir.path().join("no/waf.db")));
    }
}
