//! Whether a disk has room, or this user a quota left.
//!
//! A file system that is full has blocks which it gives to nobody, a quota counts for some users only, and SQLite says
//! "I/O error" for both: so room is asked for, with a file that has no name.

use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

/// A new file of samples with its journal takes less.
const ENOUGH: usize = 64 << 10;

/// Whether an error says that there is no room: no block, no inode, no quota.
pub(crate) fn is_lack(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::ENOSPC | libc::EDQUOT))
}

/// Whether there is no room beside a file. Where file systems have no files without names, only what they say counts.
pub(crate) fn is_lacking_beside(file: &Path) -> bool {
    let folder = file.parent().filter(|it| !it.as_os_str().is_empty());
    let folder = folder.unwrap_or(Path::new("."));
    rustix::fs::statvfs(folder).is_ok_and(|disk| disk.f_bavail == 0)
        || try_to_write(folder).is_err_and(|error| is_lack(&error))
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
    fn a_lack_of_blocks_inodes_or_quota_is_one() {
        for (errno, is_one) in [
            (libc::ENOSPC, true),
            (libc::EDQUOT, true),
            (libc::EIO, false),
            (libc::EROFS, false),
        ] {
            let error = io::Error::from_raw_os_error(errno);
            assert_eq!(is_lack(&error), is_one, "{error}");
        }
    }

    #[test]
    fn asking_for_room_leaves_nothing() {
        let dir = tempfile::tempdir().unwrap();
        assert!(!is_lacking_beside(&dir.path().join("waf.db")));
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
        assert!(!is_lacking_beside(&dir.path().join("no/waf.db")));
    }
}
