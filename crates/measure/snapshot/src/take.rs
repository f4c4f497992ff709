//! Taking a snapshot: look, copy, look again, and only then call it one.

mod copy;
mod survey;

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::disk::{Disk, Fault};
use crate::journal::{self, NotReady};
use crate::links::{self, Stray};
use crate::manifest::Manifest;
use crate::name::shown;
use crate::options::Options;
use crate::parts::{self, PartError};
use crate::progress::{Cancelled, Report};
use crate::running::{self, InUse};
use crate::snapshot::Snapshot;
use crate::store::{self, Store, StoreError};
use survey::Survey;

/// Why no snapshot was taken; nothing is left that could be taken for one.
#[derive(Debug, thiserror::Error)]
pub enum TakeError {
    /// The directories cannot be a snapshot's.
    #[error(transparent)]
    Part(#[from] PartError),
    /// The snapshot has no place.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A server is at work.
    #[error(transparent)]
    InUse(#[from] InUse),
    /// A restore is not finished.
    #[error(transparent)]
    NotReady(#[from] NotReady),
    /// Links lead to directories that are not named.
    #[error(
        "data outside of the named directories would be missing: {}; name them as well: {}", links::list(.0),
        links::targets(.0)
    )]
    Strays(Vec<Stray>),
    /// Links lead to files that are not in the directories.
    #[error(
        "files outside of the named directories would be missing: {}; move them into one of the directories, or \
         name as well the directories that hold them; if they are no data (certificates, for example), \
         --leave-linked-files leaves them out", links::list(.0)
    )]
    LinkedFiles(Vec<Stray>),
    /// A file system is mounted inside a part.
    #[error(
        "a file system is mounted at {}; a restore could not replace it: move it out of the directory, lead a link \
         to it, and name it as well", shown(.0)
    )]
    MountInside(PathBuf),
    /// Too little space.
    #[error(
        "{} has {free} bytes free and the snapshot needs about {needed}",
        shown(path)
    )]
    Space {
        /// The snapshot's directory.
        path: PathBuf,
        /// Bytes that are free.
        free: u64,
        /// Bytes that the files take.
        needed: u64,
    },
    /// Somebody writes there.
    #[error("{} changed while it was copied; stop what writes there, then take the snapshot again", shown(.0))]
    Changed(PathBuf),
    /// The listener ended it.
    #[error("interrupted; there is no snapshot")]
    Cancelled,
    /// A disk or the system failed.
    #[error(transparent)]
    Fault(#[from] Fault),
}

impl From<Cancelled> for TakeError {
    fn from(_: Cancelled) -> Self {
        Self::Cancelled
    }
}

/// Takes a snapshot of the directories `parts` into the directory `to`, which does not exist yet,
/// is empty, or was left by an interrupted take.
///
/// # Errors
/// See [`TakeError`]. `to` is then gone, or marked as unfinished.
pub fn take(
    parts: &[PathBuf],
    to: &Path,
    options: &Options,
    report: Report<'_>,
) -> Result<Snapshot, TakeError> {
    take_on(&Disk::real(), parts, to, options, report)
}

pub(crate) fn take_on(
    disk: &Disk,
    named: &[PathBuf],
    to: &Path,
    options: &Options,
    report: Report<'_>,
) -> Result<Snapshot, TakeError> {
    let to = store::resolve(to)?;
    let parts = parts::resolve(named, &to)?;
    journal::check_ready(&parts)?;
    running::check_not_running(&parts, options.unseen)?;
    let survey = Survey::of(disk, &parts, options.linked_files)?;
    let store = Store::create(disk, &to)?;
    match fill(&survey, &parts, &store, options, report) {
        Ok(manifest) => Ok(Snapshot::new(to, manifest)),
        Err(error) => {
            store.discard();
            Err(error)
        }
    }
}

/// Copies what was surveyed.
fn fill(
    survey: &Survey<'_>,
    parts: &[PathBuf],
    store: &Store<'_>,
    options: &Options,
    report: Report<'_>,
) -> Result<Manifest, TakeError> {
    let contents = copy::all(survey, store, options, report)?;
    survey.check_unchanged()?;
    // Whoever began meanwhile and has not written yet will.
    running::check_not_running(parts, options.unseen)?;
    let now = humantime::format_rfc3339_seconds(SystemTime::now());
    let manifest = survey.manifest(now.to_string(), contents)?;
    let json = manifest.to_json().map_err(std::io::Error::other);
    let json = json.map_err(Fault::at("write the manifest of", store.tree().path()))?;
    store.finish(&json)?;
    Ok(manifest)
}
