//! Takes samples of drives and stores them, one of each drive in a round.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};

use crate::drive::{self, OpenError, ReadError};
use crate::identity::{self, IdentityError};
use crate::lock::{DriveLock, LockError};
use crate::moment::Moment;
use crate::sample::{DriveId, Sample, plain};
use crate::source::{self, NoSource, Source};
use crate::store::{Store, StoreError};
use crate::wear;

/// Stores samples of drives in one file, and locks the drives against other watchers.
#[derive(Debug)]
pub struct Watcher {
    file: PathBuf,
    wanted: Option<Source>,
    locks: BTreeMap<DriveId, Lock>,
}

/// The lock of a drive.
#[derive(Debug)]
struct Lock {
    lock: DriveLock,
    /// The path of the drive in its last round.
    path: PathBuf,
}

/// The drives of one round.
#[derive(Debug, Default)]
struct Round {
    /// Drives that answered, and their paths.
    seen: BTreeMap<DriveId, PathBuf>,
    /// Paths without a drive.
    gone: BTreeSet<PathBuf>,
}

/// An error of taking a sample.
#[derive(Debug, thiserror::Error)]
pub enum WatchError {
    #[error(transparent)]
    Open(#[from] OpenError),
    #[error("{}: {error}", path.display())]
    Identity { path: PathBuf, error: IdentityError },
    #[error("{}: {error}", path.display())]
    NoSource { path: PathBuf, error: NoSource },
    #[error(transparent)]
    Lock(#[from] LockError),
    /// Two paths lead to one drive.
    #[error("{} and {} are one drive: name it once", first.display(), second.display())]
    Twice { first: PathBuf, second: PathBuf },
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("cannot read /proc/sys/kernel/random/boot_id: {0}")]
    Moment(io::Error),
}

impl WatchError {
    /// Whether an error of the sample file may be temporary. `false` for errors of the drive.
    #[must_use]
    pub fn is_temporary(&self) -> bool {
        match self {
            Self::Store(error) => error.is_temporary(),
            Self::Lock(error) => matches!(error, LockError::Full { .. }),
            Self::Open(_)
            | Self::Identity { .. }
            | Self::NoSource { .. }
            | Self::Twice { .. }
            | Self::Moment(_) => false,
        }
    }

    /// Whether the path no longer leads to a drive.
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

/// A stored sample, and the previous one.
#[derive(Debug)]
pub struct StoredSample {
    /// The previous sample of the drive.
    pub before: Option<Sample>,
    pub sample: Sample,
}

impl Watcher {
    /// Creates a watcher without locks. With `wanted`, only this source is used.
    #[must_use]
    pub fn new(file: &Path, wanted: Option<Source>) -> Self {
        Self {
            file: file.to_owned(),
            wanted,
            locks: BTreeMap::new(),
        }
    }

    /// Takes one sample of each drive until `is_over`. The drives stay locked until they are
    /// removed.
    ///
    /// Drives and the file are opened for this round only, so that each may disappear and return. A
    /// drive may take long to fail: `is_over` is checked before each, and drives that were not read
    /// have no result.
    pub fn round(
        &mut self,
        paths: &[PathBuf],
        is_over: &dyn Fn() -> bool,
    ) -> Vec<Result<StoredSample, WatchError>> {
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

    /// Releases the locks of drives that no longer have their paths: after a change of slots,
    /// another watcher may have these paths. Done at the end of a round, because a drive may just
    /// have changed to another of our paths.
    fn release(&mut self, round: &Round) {
        let Round { seen, gone } = round;
        let answers: BTreeSet<&PathBuf> = seen.values().collect();
        self.locks.retain(|id, Lock { path, .. }| {
            seen.contains_key(id) || !(answers.contains(path) || gone.contains(path))
        });
    }

    /// Locks a drive against other watchers with the same file.
    fn lock(&mut self, id: &DriveId, path: &Path) -> Result<(), LockError> {
        let path = path.to_owned();
        let own = self.locks.remove(id).map(|lock| lock.lock);
        let lock = match own.filter(DriveLock::has_its_name) {
            Some(lock) => lock,
            None => DriveLock::take(&self.file, id)?,
        };
        self.locks.insert(id.clone(), Lock { lock, path });
        Ok(())
    }

    /// Takes and stores a sample of the drive at `path`. On an error, the file is unchanged.
    fn sample(
        &mut self,
        path: &Path,
        seen: &mut BTreeMap<DriveId, PathBuf>,
    ) -> Result<StoredSample, WatchError> {
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
        // A drive without a health page still has a factor.
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
        Ok(StoredSample { before, sample })
    }
}

#[cfg(test)]
mod tests;
