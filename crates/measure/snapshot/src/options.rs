//! Options of take, restore and verify.

use std::num::NonZeroUsize;

use crate::pool;
use crate::running::Unseen;

/// How thoroughly the content of files is checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Check {
    /// `Quick` for files that share extents with the snapshot, `Full` for copied files.
    #[default]
    Auto,
    /// Compares sizes, times, owners and modes, and reads no content.
    Quick,
    /// Compares hashes: of the snapshot before any file is changed, and of the restored files,
    /// which are read back.
    Full,
}

/// Whether files share extents with the snapshot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Reflink {
    /// Share extents if the file system supports it.
    #[default]
    Auto,
    /// Copy all bytes, because the first write to a shared extent is slower than to a private one.
    Never,
}

/// Treatment of symbolic links to files outside of the directories of a snapshot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LinkedFiles {
    /// Refuse the take, because a data file on another disk would be missing.
    #[default]
    Refuse,
    /// Leave the files out. Right if no run changes them.
    Leave,
}

/// Options of all operations; the default suits a stopped server.
#[derive(Debug, Clone, Copy, Default)]
pub struct Options {
    pub check: Check,
    pub reflink: Reflink,
    pub linked_files: LinkedFiles,
    pub unseen: Unseen,
    /// Threads that copy and hash; `None` means one per CPU, and at most eight.
    pub threads: Option<NonZeroUsize>,
}

impl Options {
    pub(crate) fn workers(&self) -> NonZeroUsize {
        self.threads.unwrap_or_else(pool::default_threads)
    }
}
