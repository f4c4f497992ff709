//! Making directories what they were: check, mark, change what differs, check again, unmark.
//!
//! Until everything that can be known beforehand has been checked, nothing is touched. From then
//! on the parts are marked: whatever happens, they are either as the snapshot has them, or no
//! server is started on them, and the same restore goes on where the first one ended.

mod carry;
mod owners;
mod plan;
mod proof;

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

/// Why directories were not restored. The text says whether they were touched.
#[derive(Debug, thiserror::Error)]
pub enum RestoreError {
    /// The directories are no longer what a snapshot may hold.
    #[error(transparent)]
    Part(#[from] PartError),
    /// A server is at work.
    #[error(transparent)]
    InUse(#[from] InUse),
    /// Another restore is at work, or one of another snapshot unfinished.
    #[error(transparent)]
    NotReady(#[from] NotReady),
    /// A link or a file has taken the place of the directory, or of one above it.
    #[error("{} is not a directory any more, or a link leads there; put the directory back", shown(.0))]
    Moved(PathBuf),
    /// The disk that was mounted there is not.
    #[error("a file system was mounted on {} when the snapshot was taken, and is not now; mount it", shown(.0))]
    NotMounted(PathBuf),
    /// A file system is mounted inside.
    #[error("a file system is mounted at {}, inside of what is to be replaced; unmount it", shown(.0))]
    MountInside(PathBuf),
    /// chattr's flags.
    #[error("{} is immutable or append-only; see chattr(1)", shown(.0))]
    Immutable(PathBuf),
    /// Somebody else's files.
    #[error(
        "{} belongs to user {uid}; only root can give it back to that user",
        shown(path)
    )]
    Owner {
        /// The first such file.
        path: PathBuf,
        /// Its owner.
        uid: u32,
    },
    /// Files of a group that only root can give them.
    #[error(
        "{} belongs to group {gid}, of which this user is not a member; only root can give it back to that group",
        shown(path)
    )]
    Group {
        /// The first such file.
        path: PathBuf,
        /// Its group.
        gid: u32,
    },
    /// Too little space.
    #[error(
        "the file system of {} has {free} bytes free and the restore needs about {needed} more",
        shown(path)
    )]
    Space {
        /// The part.
        path: PathBuf,
        /// Bytes that are free.
        free: u64,
        /// Bytes that it needs beyond what the present files take.
        needed: u64,
    },
    /// The snapshot's own copy is not what was put away.
    #[error("the snapshot is damaged: {0}; take another one")]
    Damaged(PathShown),
    /// What was written does not read back.
    #[error(
        "the restored data are not those of the snapshot ({0}); is the disk failing? restore again"
    )]
    Differs(Difference),
    /// Somebody wrote there while it was compared.
    #[error("{} changed while it was compared with the snapshot; stop what writes there, then restore again", shown(.0))]
    Changed(PathBuf),
    /// The listener ended it.
    #[error("interrupted")]
    Cancelled,
    /// Whatever ended it, this restore or an earlier one has replaced a part of the data.
    #[error("{why}; {}", journal::half_restored(dirs))]
    Half {
        /// The directories that are marked.
        dirs: Vec<PathBuf>,
        /// What ended it.
        #[source]
        why: Box<RestoreError>,
    },
    /// A disk or the system failed.
    #[error(transparent)]
    Fault(#[from] Fault),
}

/// A path in a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathShown(pub PathBuf);

impl std::fmt::Display for PathShown {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&shown(&self.0))
    }
}

impl From<Cancelled> for RestoreError {
    fn from(_: Cancelled) -> Self {
        Self::Cancelled
    }
}

/// What a restore did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Restored {
    /// Bytes of all files of the snapshot.
    pub bytes: u64,
    /// Bytes that were written.
    pub written_bytes: u64,
    /// Bytes of files that share the snapshot's extents now.
    pub shared_bytes: u64,
    /// Names that were removed because the snapshot does not have them, or has them otherwise.
    pub removed: u64,
}

/// Makes the directories of `snapshot` what they were when it was taken.
///
/// # Errors
/// See [`RestoreError`]. When anything was changed, [`crate::check_ready`] fails until the same
/// snapshot has been restored.
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
        // One that is not ready says itself whose restore is at work or unfinished.
        if dirs.is_empty() || matches!(why, RestoreError::NotReady(_)) {
            return why;
        }
        let why = Box::new(why);
        RestoreError::Half { dirs, why }
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
        journal::check_mine(path, &id)?;
    }
    running::check_not_running(&paths, options.unseen)?;
    let plan = Plan::new(disk, snapshot, options, report)?;
    let trees = open(disk, &plan, &id)?;
    let journal = Journal::begin(&trees, snapshot.dir(), &id)?;
    if let Err(error) = is_still(&plan, &trees, &paths) {
        // Nothing was replaced by us: what we marked is as ready as it was. Marks that cannot be
        // removed are told beside the error.
        let _ = journal.withdraw(&trees);
        return Err(error);
    }
    let done = carry::out(&plan, &trees, report)?;
    for tree in &trees {
        tree.flush()?;
    }
    proof::of(&plan, &trees, report)?;
    // A server that was started meanwhile has read what is not a state of its data.
    running::check_not_running(&paths, options.unseen)?;
    journal.finish(&trees)?;
    Ok(done)
}

/// Whether the parts are what the plan was made of, and in nobody's use. Comparing takes hours: a
/// server that was started meanwhile may be at work, or have changed what was found to be right.
fn is_still(
    plan: &Plan<'_, '_>,
    trees: &[Tree<'_>],
    paths: &[PathBuf],
) -> Result<(), RestoreError> {
    running::check_not_running(paths, plan.options.unseen)?;
    plan.check_unchanged(trees)
}

/// Opens the parts; makes those that are missing.
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
