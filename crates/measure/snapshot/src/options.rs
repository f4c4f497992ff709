//! How the operations go about it.

use std::num::NonZeroUsize;

use crate::pool;
use crate::running::Unseen;

/// How thoroughly bytes are checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Check {
    /// `Quick` where files share extents with the snapshot, `Full` where they are copied.
    #[default]
    Auto,
    /// Sizes, times, owners and modes; no bytes are read for the sake of a check.
    Quick,
    /// Fingerprints of all bytes: of the snapshot before anything is touched, and of what was
    /// written, read back.
    Full,
}

/// Whether files may share extents with the snapshot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Reflink {
    /// Where the file system can.
    #[default]
    Auto,
    /// Never: the first write to a shared extent costs more than one to an own extent.
    Never,
}

/// What a take does about links that lead to files outside of its directories.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LinkedFiles {
    /// It refuses: a data file on another disk would be missing.
    #[default]
    Refuse,
    /// The files stay out of the snapshot: no run changes them.
    Leave,
}

/// Choices of the caller; the default is right for a stopped server.
#[derive(Debug, Clone, Copy, Default)]
pub struct Options {
    /// How thoroughly a restore checks bytes.
    pub check: Check,
    /// Whether extents are shared.
    pub reflink: Reflink,
    /// Whether a take may leave files out to which links lead.
    pub linked_files: LinkedFiles,
    /// What to do about processes that this user may not see.
    pub unseen: Unseen,
    /// Threads that copy and hash; `None`: as many as CPUs, eight at most.
    pub threads: Option<NonZeroUsize>,
}

impl Options {
    pub(crate) fn workers(&self) -> NonZeroUsize {
        self.threads.unwrap_or_else(pool::default_threads)
    }
}
