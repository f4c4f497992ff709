//! Verifies and restores the snapshot of an experiment file.
//!
//! In: the paths of `[restore]`. Out: directories as they are in the snapshot, or a [`Failure`]
//! that ends the campaign. The copying itself is in `saiga-snapshot`.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use saiga_experiment::file::{LinkedFiles, Reflink};
use saiga_experiment::workload::Failure;
use saiga_process::interrupt::Interrupt;
use saiga_snapshot::{Check, Options, Progress, RestoreError, Snapshot};

/// The snapshot or the restored data cannot be used for this experiment.
#[derive(Debug, thiserror::Error)]
enum SnapshotError {
    #[error("{snapshot} holds {holds}, but restore.parts is {named}; name the same directories")]
    Parts {
        snapshot: String,
        holds: String,
        named: String,
    },
    #[error("the snapshot {snapshot} is damaged: {first} ({count} in all); take another one")]
    Damaged {
        snapshot: String,
        first: String,
        count: usize,
    },
    #[error(
        "the target of the link {link} is not in {snapshot}, so it is not restored; if no run \
         changes it, set linked_files = \"leave\" in [restore]; otherwise move it into one of the \
         directories and take the snapshot again"
    )]
    Linked { snapshot: String, link: String },
    #[error("the data differ from {snapshot}: {first} ({count} differences)")]
    Differs {
        snapshot: String,
        first: String,
        count: usize,
    },
}

/// Reads all of `snapshot` and compares it with its fingerprints. Later restores need to check only
/// the bytes that they write.
pub(crate) fn check(snapshot: &Path, interrupt: &Interrupt) -> Result<(), Failure> {
    let opened = Snapshot::open(snapshot).map_err(Failure::impossible)?;
    let options = Options {
        check: Check::Full,
        ..Options::default()
    };
    let report = |_: Progress| continue_unless(interrupt);
    let damages = saiga_snapshot::verify(&opened, &options, &report)
        .map_err(|error| failure_of(interrupt, error))?;
    match damages.first() {
        None => Ok(()),
        Some(first) => Err(Failure::impossible(SnapshotError::Damaged {
            snapshot: snapshot.display().to_string(),
            first: first.to_string(),
            count: damages.len(),
        })),
    }
}

/// Restores `parts` from `snapshot`; fails while a process uses one of the directories.
/// `keeps_data` says that the directories remain after the experiment: then the error of an
/// interrupted restore names the directories that are only partly restored.
pub(crate) fn restore(
    snapshot: &Path,
    parts: &[PathBuf],
    (reflink, linked_files): (Reflink, LinkedFiles),
    keeps_data: bool,
    interrupt: &Interrupt,
) -> Result<(), Failure> {
    let snapshot = open(snapshot, parts)?;
    let options = Options {
        reflink: match reflink {
            Reflink::Auto => saiga_snapshot::Reflink::Auto,
            Reflink::Never => saiga_snapshot::Reflink::Never,
        },
        ..Options::default()
    };
    let report = |_: Progress| continue_unless(interrupt);
    saiga_snapshot::restore(&snapshot, &options, &report)
        .map_err(|error| restore_failure(error, keeps_data, interrupt))?;
    if linked_files == LinkedFiles::Leave {
        return Ok(());
    }
    let linked = saiga_snapshot::linked_files(&snapshot).map_err(Failure::impossible)?;
    match linked.first() {
        None => Ok(()),
        Some(first) => Err(Failure::impossible(SnapshotError::Linked {
            snapshot: snapshot.dir().display().to_string(),
            link: first.link.display().to_string(),
        })),
    }
}

/// Compares names, sizes, times, owners and modes of the files in `parts` with `snapshot`.
pub(crate) fn verify(
    snapshot: &Path,
    parts: &[PathBuf],
    interrupt: &Interrupt,
) -> Result<(), Failure> {
    let opened = open(snapshot, parts)?;
    // Contents need no check: the restore has verified the bytes that it wrote.
    let options = Options {
        check: Check::Quick,
        ..Options::default()
    };
    let report = |_: Progress| continue_unless(interrupt);
    let differences = saiga_snapshot::compare_parts(&opened, &options, &report)
        .map_err(|error| failure_of(interrupt, error))?;
    match differences.first() {
        None => Ok(()),
        Some(first) => Err(Failure::impossible(SnapshotError::Differs {
            snapshot: snapshot.display().to_string(),
            first: first.to_string(),
            count: differences.len(),
        })),
    }
}

/// Opens the snapshot in `dir`; fails unless it holds exactly the directories `named`.
fn open(dir: &Path, named: &[PathBuf]) -> Result<Snapshot, Failure> {
    let snapshot = Snapshot::open(dir).map_err(Failure::impossible)?;
    let real = |path: &PathBuf| path.canonicalize().unwrap_or_else(|_| path.clone());
    let (mut holds, mut wanted) = (snapshot.parts(), named.iter().map(real).collect::<Vec<_>>());
    holds.sort();
    wanted.sort();
    if holds == wanted {
        return Ok(snapshot);
    }
    let list = |paths: &[PathBuf]| {
        let shown: Vec<String> = paths
            .iter()
            .map(|path| path.display().to_string())
            .collect();
        shown.join(", ")
    };
    Err(Failure::impossible(SnapshotError::Parts {
        snapshot: dir.display().to_string(),
        holds: list(&holds),
        named: list(named),
    }))
}

fn continue_unless(interrupt: &Interrupt) -> ControlFlow<()> {
    if interrupt.raised() {
        ControlFlow::Break(())
    } else {
        ControlFlow::Continue(())
    }
}

/// The failure of a restore. A partial restore is an error even after an interrupt, because the
/// user must know that the data are incomplete, unless the data are removed anyway.
fn restore_failure(error: RestoreError, keeps_data: bool, interrupt: &Interrupt) -> Failure {
    let is_partial = matches!(error, RestoreError::Partial { .. });
    if is_partial && keeps_data {
        return Failure::impossible(error);
    }
    if let RestoreError::Partial { why, .. } = error {
        return failure_of(interrupt, *why);
    }
    failure_of(interrupt, error)
}

/// The failure for `error`; an error during an interrupt is a consequence of the interrupt.
fn failure_of(
    interrupt: &Interrupt,
    error: impl std::error::Error + Send + Sync + 'static,
) -> Failure {
    if interrupt.raised() {
        Failure::Interrupted
    } else {
        Failure::impossible(error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_partial_restore_is_reported_if_the_data_remain() {
        let partial = || RestoreError::Partial {
            dirs: vec![PathBuf::from("/data")],
            why: Box::new(RestoreError::Cancelled),
        };
        let message =
            |keeps_data| restore_failure(partial(), keeps_data, &Interrupt::never()).to_string();
        assert!(
            message(true).contains("/data is partly restored"),
            "{}",
            message(true)
        );
        assert_eq!(message(false), "interrupted");
    }
}
