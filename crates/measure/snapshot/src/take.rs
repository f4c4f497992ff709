//! Takes a snapshot: scans the parts, copies them, scans again, and writes the manifest only if
//! nothing has changed.

mod copy;
mod survey;

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::disk::{Disk, Fault};
use crate::journal::{self, NotReady};
use crate::links::{self, ExternalLink};
use crate::manifest::Manifest;
use crate::name::shown;
use crate::options::Options;
use crate::parts::{self, PartError};
use crate::progress::{Cancelled, Report};
use crate::running::{self, InUse};
use crate::snapshot::Snapshot;
use crate::store::{self, Store, StoreError};
use survey::Survey;

/// No snapshot was taken. No directory is left that could be mistaken for a snapshot.
#[derive(Debug, thiserror::Error)]
pub enum TakeError {
    #[error(transparent)]
    Part(#[from] PartError),
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A process uses the directories.
    #[error(transparent)]
    InUse(#[from] InUse),
    /// A restore into the directories is running or unfinished.
    #[error(transparent)]
    NotReady(#[from] NotReady),
    /// Symbolic links lead to directories that were not named.
    #[error(
        "the snapshot would lack data outside of the named directories: {}; name these \
         directories, too: {}",
        links::list(.0), links::targets(.0)
    )]
    LinkedDirectories(Vec<ExternalLink>),
    /// Symbolic links lead to files outside of the directories.
    #[error(
        "the snapshot would lack files outside of the named directories: {}; move the files into \
         one of the directories, or name the directories that contain them, too; if the files are \
         not data (certificates, for example), add --leave-linked-files",
        links::list(.0)
    )]
    LinkedFiles(Vec<ExternalLink>),
    #[error(
        "a file system is mounted at {}, inside a named directory, and a restore could not replace \
         it; mount it outside of the directory, put a symbolic link in its place, and name the new \
         mount point, too",
        shown(.0)
    )]
    MountInside(PathBuf),
    #[error(
        "the snapshot needs about {needed} bytes, but the file system of {} has {free} bytes free",
        shown(path)
    )]
    Space {
        path: PathBuf,
        free: u64,
        /// Bytes of all files that have to be copied.
        needed: u64,
    },
    /// Another process wrote to the directories during the copy.
    #[error(
        "{} changed while it was copied; stop the program that writes there, then take the \
         snapshot again",
        shown(.0)
    )]
    Changed(PathBuf),
    /// The listener returned `Break`.
    #[error("interrupted; no snapshot was taken")]
    Cancelled,
    #[error(transparent)]
    Fault(#[from] Fault),
}

impl From<Cancelled> for TakeError {
    fn from(_: Cancelled) -> Self {
        Self::Cancelled
    }
}

/// Takes a snapshot of the directories `parts` into the directory `to`, which must be missing,
/// empty, or left behind by an interrupted take. After an error `to` does not exist, or is marked
/// as unfinished.
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

/// Copies all files of the survey and writes the manifest.
fn fill(
    survey: &Survey<'_>,
    parts: &[PathBuf],
    store: &Store<'_>,
    options: &Options,
    report: Report<'_>,
) -> Result<Manifest, TakeError> {
    let contents = copy::all(survey, store, options, report)?;
    survey.check_unchanged()?;
    // A server that was started during the copy may write at any moment.
    running::check_not_running(parts, options.unseen)?;
    let now = humantime::format_rfc3339_seconds(SystemTime::now());
    let manifest = survey.manifest(now.to_string(), contents)?;
    let json = manifest.to_json().map_err(std::io::Error::other);
    let json = json.map_err(Fault::at("write the manifest of", store.tree().path()))?;
    store.finish(&json)?;
    Ok(manifest)
}
