//! One round of a watch: ask a drive, keep the sample.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use crate::drive::{self, OpenError};
use crate::identity::{self, IdentityError};
use crate::lock::{Held, LockError};
use crate::moment::Moment;
use crate::sample::{DriveId, Sample, plain};
use crate::source::{self, NoSource, Source};
use crate::store::{Store, StoreError};

/// Puts samples of drives into one file.
#[derive(Debug)]
pub struct Watcher {
    file: PathBuf,
    wanted: Option<Source>,
    held: BTreeMap<DriveId, Held>,
}

/// Why there is no sample this time.
#[derive(Debug, thiserror::Error)]
pub enum WatchError {
    /// There is no drive.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// It does not say which one it is.
    #[error("{}: {error}", path.display())]
    Identity {
        /// The drive.
        path: PathBuf,
        /// Why.
        error: IdentityError,
    },
    /// It has no counters.
    #[error("{}: {error}", path.display())]
    NoSource {
        /// The drive.
        path: PathBuf,
        /// Why.
        error: NoSource,
    },
    /// Somebody else watches it.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// It was named twice.
    #[error("{} and {} are one drive: name it once", first.display(), second.display())]
    Twice {
        /// One name.
        first: PathBuf,
        /// The other.
        second: PathBuf,
    },
    /// The sample could not be kept.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The time could not be had.
    #[error("cannot read /proc/sys/kernel/random/boot_id: {0}")]
    Moment(io::Error),
}

impl WatchError {
    /// Whether waiting may help, as far as the sample file goes; of a drive's faults nobody knows.
    #[must_use]
    pub fn is_passing(&self) -> bool {
        matches!(self, Self::Store(error) if error.is_passing())
    }
}

/// A sample that is on the disk, and the one before it.
#[derive(Debug)]
pub struct Kept {
    /// The newest of this drive before.
    pub before: Option<Sample>,
    /// The new one.
    pub sample: Sample,
}

impl Watcher {
    /// A watcher that has not looked yet; `wanted` keeps it to one source.
    #[must_use]
    pub fn new(file: &Path, wanted: Option<Source>) -> Self {
        Self {
            file: file.to_owned(),
            wanted,
            held: BTreeMap::new(),
        }
    }

    /// Takes one sample of each drive; all of them stay locked for this watcher.
    ///
    /// Drives and the file are opened for this round only, so that each may go away and come back.
    pub fn round(&mut self, paths: &[PathBuf]) -> Vec<Result<Kept, WatchError>> {
        let mut seen = BTreeMap::new();
        let all = paths.iter();
        all.map(|path| self.sample(path, &mut seen)).collect()
    }

    /// On an error the file is as it was.
    fn sample(
        &mut self,
        path: &Path,
        seen: &mut BTreeMap<DriveId, PathBuf>,
    ) -> Result<Kept, WatchError> {
        let mut drive = drive::open(path)?;
        let identity =
            identity::identify(drive.as_mut()).map_err(|error| WatchError::Identity {
                path: path.to_owned(),
                error,
            })?;
        let id = DriveId {
            model: identity.model.clone(),
            serial: identity.serial.clone(),
            group: identity.group.one(),
        };
        if let Some(first) = seen.insert(id.clone(), path.to_owned()) {
            return Err(WatchError::Twice {
                first,
                second: path.to_owned(),
            });
        }
        if !self.held.get(&id).is_some_and(Held::is_found) {
            self.held.remove(&id);
            let held = Held::take(&self.file, &id)?;
            self.held.insert(id.clone(), held);
        }
        let mut store = Store::open(&self.file)?;
        let before = store.last(&id)?;
        let last = before.as_ref().map(|sample| sample.source);
        let (source, counters) = source::choose(drive.as_mut(), &identity, self.wanted, last)
            .map_err(|error| WatchError::NoSource {
                path: path.to_owned(),
                error,
            })?;
        let sample = Sample {
            taken: Moment::now().map_err(WatchError::Moment)?,
            path: plain(&path.display().to_string()),
            drive: id,
            firmware: identity.firmware,
            source,
            steps: source.steps(),
            counters,
        };
        store.put(&sample)?;
        Ok(Kept { before, sample })
    }
}
