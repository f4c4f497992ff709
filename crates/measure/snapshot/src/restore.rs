//! Restores directories from a snapshot: check, mark, change what differs, check again, unmark.
//!
//! Everything that can be checked beforehand is checked before the first change. From then on the
//! parts are marked. After an interruption they are therefore either complete or marked; no server
//! is started on marked parts, and the same restore continues where the first one ended.

mod apply;
mod owners;
mod plan;
mod read_back;

use std::path::PathBuf;

use crate::compare::Difference;
use crate::disk::{Disk, Fault};
use crate::journal::{self, Journal, NotReady};
use crate::name::shown;
use crate::options::Options;
use crate::parts::{self, PartError};
use crate::progress::{Cancelled, Report};
use crate::running::{self, InUse};
use crate::snapshot::Snapshot;
use crate::tree::Tree;
use plan::Plan;

/// A restore failed. Only [`RestoreError::Partial`] means that data were changed.
#[derive(Debug, thiserror::Error)]
pub enum RestoreError {
    #[error(transparent)]
    Part(#[from] PartError),
    /// A process uses the directories.
    #[error(transparent)]
    InUse(#[from] InUse),
    /// Another restore is running, or the restore of another snapshot is unfinished.
    #[error(transparent)]
    NotReady(#[from] NotReady),
    /// A link or a file has replaced the directory or one of its parents.
    #[error(
        "{} is no longer a directory, or its path leads through a symbolic link; put the \
         directory back",
        shown(.0)
    )]
    Moved(PathBuf),
    /// The directory was a mount point, and no file system is mounted there now.
    #[error(
        "a file system was mounted on {} when the snapshot was taken, but none is mounted now; \
         mount it",
        shown(.0)
    )]
    NotMounted(PathBuf),
    #[error("a file system is mounted at {}, inside a directory to restore; unmount it", shown(.0))]
    MountInside(PathBuf),
    /// A file has one of the flags of `chattr +i` and `chattr +a`.
    #[error("{} is immutable or append-only; clear the flag with chattr(1)", shown(.0))]
    Immutable(PathBuf),
    /// A file belongs to another user, and this process is not root.
    #[error(
        "{} belongs to user {uid}; only root can give it back to that user",
        shown(path)
    )]
    Owner { path: PathBuf, uid: u32 },
    /// A file belongs to a group of which this user is not a member.
    #[error(
        "{} belongs to group {gid}, of which this user is not a member; only root can give it back \
         to that group",
        shown(path)
    )]
    Group { path: PathBuf, gid: u32 },
    #[error(
        "the restore needs about {needed} bytes on the file system of {}, which has {free}, \
         including the space of the files to be replaced",
        shown(path)
    )]
    Space {
        /// A part on that file system.
        path: PathBuf,
        /// Free bytes plus the bytes of present files that the restore replaces.
        free: u64,
        /// Bytes of all restored files on that file system.
        needed: u64,
    },
    /// A file of the snapshot does not match the manifest.
    #[error("the snapshot is damaged: {0}; take a new snapshot")]
    Damaged(DisplayPath),
    /// The files read back after the restore do not match the manifest.
    #[error(
        "the restored data differ from the snapshot ({0}); the disk may be failing; restore again"
    )]
    Differs(Difference),
    /// Another process wrote to the directories during the comparison.
    #[error(
        "{} changed while it was compared with the snapshot; stop the program that writes there, \
         then restore again",
        shown(.0)
    )]
    Changed(PathBuf),
    /// The listener returned `Break`.
    #[error("interrupted")]
    Cancelled,
    /// This restore or an earlier one failed after it had changed data.
    #[error("{why}; {}", journal::partly_restored(dirs))]
    Partial {
        /// The directories that hold a mark of the restore.
        dirs: Vec<PathBuf>,
        /// The error that ended this restore.
        #[source]
        why: Box<RestoreError>,
    },
    #[error(transparent)]
    Fault(#[from] Fault),
}

/// A path that a message shows in the text form of `name.rs`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DisplayPath(pub PathBuf);

impl std::fmt::Display for DisplayPath {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&shown(&self.0))
    }
}

impl From<Cancelled> for RestoreError {
    fn from(_: Cancelled) -> Self {
        Self::Cancelled
    }
}

/// Counts of a completed restore.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Restored {
    /// Bytes of all files of the snapshot.
    pub bytes: u64,
    pub written_bytes: u64,
    /// Bytes of the files that now share extents with the snapshot.
    pub shared_bytes: u64,
    /// Number of removed names: not in the snapshot, or of another file type there.
    pub removed: u64,
}

/// Gives the directories of `snapshot` the content and metadata that they had when it was taken.
///
/// After an error that left changes, [`crate::check_ready`] fails until the same snapshot has been
/// restored.
pub fn restore(
    snapshot: &Snapshot,
    options: &Options,
    report: Report<'_>,
) -> Result<Restored, RestoreError> {
    restore_on(&Disk::real(), snapshot, options, report)
}

pub(crate) fn restore_on(
    disk: &Disk,
    snapshot: &Snapshot,
    options: &Options,
    report: Report<'_>,
) -> Result<Restored, RestoreError> {
    attempt(disk, snapshot, options, report).map_err(|why| {
        let dirs = journal::unfinished(&snapshot.parts());
        // The text of `NotReady` already names the unfinished restore.
        if dirs.is_empty() || matches!(why, RestoreError::NotReady(_)) {
            return why;
        }
        let why = Box::new(why);
        RestoreError::Partial { dirs, why }
    })
}

fn attempt(
    disk: &Disk,
    snapshot: &Snapshot,
    options: &Options,
    report: Report<'_>,
) -> Result<Restored, RestoreError> {
    let paths = snapshot.parts();
    let id = snapshot.manifest().id();
    parts::check(&paths, snapshot.dir())?;
    for path in &paths {
        journal::check_own_mark(path, &id)?;
    }
    running::check_not_running(&paths, options.unseen)?;
    let plan = Plan::new(disk, snapshot, options, report)?;
    let trees = open(disk, &plan, &id)?;
    let journal = Journal::begin(&trees, snapshot.dir(), &id)?;
    if let Err(error) = check_unchanged(&plan, &trees, &paths) {
        // This restore has changed nothing, so its marks are removed. A mark that cannot be
        // removed turns the error into `Partial`.
        let _ = journal.withdraw(&trees);
        return Err(error);
    }
    let done = apply::apply(&plan, &trees, report)?;
    for tree in &trees {
        tree.flush()?;
    }
    read_back::check(&plan, &trees, report)?;
    // A server that was started during the restore may have read a mixture of old and new files.
    running::check_not_running(&paths, options.unseen)?;
    journal.finish(&trees)?;
    Ok(done)
}

/// Checks that the parts are as the plan found them and that no process uses them. The comparison
/// may take hours; a server that was started during this time may have changed files that were
/// found to be equal.
fn check_unchanged(
    plan: &Plan<'_, '_>,
    trees: &[Tree<'_>],
    paths: &[PathBuf],
) -> Result<(), RestoreError> {
    running::check_not_running(paths, plan.options.unseen)?;
    plan.check_unchanged(trees)
}

/// Opens the parts, and makes missing ones.
fn open<'d>(
    disk: &'d Disk,
    plan: &Plan<'_, 'd>,
    id: &crate::hash::Hash,
) -> Result<Vec<Tree<'d>>, RestoreError> {
    let mut trees = Vec::new();
    for target in &plan.targets {
        let path = &target.part.path;
        if target.tree.is_none() {
            journal::make_marked(disk, path, plan.snapshot.dir(), id)?;
        }
        trees.push(Tree::open(disk, path)?);
    }
    Ok(trees)
}
