//! One round of a watch: ask a drive, keep the sample.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};

use crate::drive::{self, OpenError, ReadError};
use crate::identity::{self, IdentityError};
use crate::lock::{Held, LockError};
use crate::moment::Moment;
use crate::sample::{DriveId, Sample, plain};
use crate::source::{self, NoSource, Source};
use crate::store::{Store, StoreError};
use crate::wear;

/// Puts samples of drives into one file.
#[derive(Debug)]
pub struct Watcher {
    file: PathBuf,
    wanted: Option<Source>,
    held: BTreeMap<DriveId, Lock>,
}

/// The lock of a drive that was seen.
#[derive(Debug)]
struct Lock {
    held: Held,
    /// What it was called then.
    path: PathBuf,
}

/// One look at all drives.
#[derive(Debug, Default)]
struct Round {
    /// Drives that answered, by which name.
    seen: BTreeMap<DriveId, PathBuf>,
    /// Names behind which there is nothing.
    gone: BTreeSet<PathBuf>,
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
        match self {
            Self::Store(error) => error.is_passing(),
            Self::Lock(error) => matches!(error, LockError::Full { .. }),
            Self::Open(_)
            | Self::Identity { .. }
            | Self::NoSource { .. }
            | Self::Twice { .. }
            | Self::Moment(_) => false,
        }
    }

    /// Whether the drive is not there any more.
    fn is_gone(&self) -> bool {
        match self {
            Self::Open(error) => error.is_gone(),
            Self::Identity { error, path: _ } => {
                matches!(error, IdentityError::Read(ReadError::Gone { .. }))
            }
            Self::NoSource { .. }
            | Self::Lock(_)
            | Self::Twice { .. }
            | Self::Store(_)
            | Self::Moment(_) => false,
        }
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

    /// Takes one sample of each drive, until `is_over`; all of them stay locked for this watcher until they are gone.
    ///
    /// Drives and the file are opened for this round only, so that each may go away and come back. Drives that take long
    /// to fail are no reason to keep whoever wants this to end: those that were not asked have no result.
    pub fn round(
        &mut self,
        paths: &[PathBuf],
        is_over: &dyn Fn() -> bool,
    ) -> Vec<Result<Kept, WatchError>> {
        let mut round = Round::default();
        let mut results = Vec::new();
        for path in paths.iter().take_while(|_| !is_over()) {
            let result = self.sample(path, &mut round.seen);
            if result.as_ref().is_err_and(WatchError::is_gone) {
                round.gone.insert(path.clone());
            }
            results.push(result);
        }
        self.release(&round);
        results
    }

    /// Gives back the locks of drives that have left their names: after a reboot or a change of slots, another watcher
    /// may have been told to watch them. Only at the end of a round, for a drive may just have another name of ours.
    fn release(&mut self, round: &Round) {
        let Round { seen, gone } = round;
        let answers: BTreeSet<&PathBuf> = seen.values().collect();
        self.held.retain(|id, Lock { path, .. }| {
            seen.contains_key(id) || !(answers.contains(path) || gone.contains(path))
        });
    }

    /// Keeps others from watching a drive into the same file.
    fn lock(&mut self, id: &DriveId, path: &Path) -> Result<(), LockError> {
        let path = path.to_owned();
        let own = self.held.remove(id).map(|lock| lock.held);
        let held = match own.filter(Held::is_found) {
            Some(held) => held,
            None => Held::take(&self.file, id)?,
        };
        self.held.insert(id.clone(), Lock { held, path });
        Ok(())
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
        self.lock(&id, path)?;
        let mut store = Store::open(&self.file)?;
        let before = store.last(&id)?;
        let last = before.as_ref().map(|sample| sample.source);
        let (source, counters) = source::choose(drive.as_mut(), &identity, self.wanted, last)
            .map_err(|error| WatchError::NoSource {
                path: path.to_owned(),
                error,
            })?;
        // A drive that keeps its health to itself has a factor all the same.
        let wear = wear::read(drive.as_mut(), &identity).ok();
        let sample = Sample {
            taken: Moment::now().map_err(WatchError::Moment)?,
            path: plain(&path.display().to_string()),
            drive: id,
            firmware: identity.firmware,
            source,
            steps: source.steps(),
            counters,
            wear,
        };
        store.put(&sample)?;
        Ok(Kept { before, sample })
    }
}

#[cfg(test)]
mod tests;
