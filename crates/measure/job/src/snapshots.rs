//! Snapshots of data directories, as campaigns want them.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use saiga_experiment::file::{LinkedFiles, Reflink};
use saiga_experiment::interrupt::Interrupt;
use saiga_experiment::workload::Failure;
use saiga_snapshot::{Check, Options, Progress, RestoreError, Snapshot};

/// What only shows when a snapshot is looked into.
#[derive(Debug, thiserror::Error)]
enum Unfit {
    /// The file and the snapshot name different directories.
    #[error("{snapshot} holds {holds}, and restore.parts names {named}; name the same directories")]
    Parts {
        snapshot: String,
        holds: String,
        named: String,
    },
    /// Its own copies are not what was put away.
    #[error("the snapshot {snapshot} is damaged: {first} ({count} in all); take another one")]
    Damaged {
        snapshot: String,
        first: String,
        count: usize,
    },
    /// Files that no run begins with as they were.
    #[error(
        "what {link} leads to is not in {snapshot}, and so is not restored; if no run changes it, say linked_files \
         = \"leave\" in [restore]; else move it into one of the directories and take the snapshot again"
    )]
    Linked { snapshot: String, link: String },
    /// They are not what was restored.
    #[error("the data are not those of {snapshot}: {first} ({count} differences)")]
    Differs {
        snapshot: String,
        first: String,
        count: usize,
    },
}

/// Reads all of `snapshot` and compares it with its fingerprints: from then on each restore goes by
/// what it writes.
pub(crate) fn check(snapshot: &Path, interrupt: &Interrupt) -> Result<(), Failure> {
    let held = Snapshot::open(snapshot).map_err(Failure::impossible)?;
    let options = Options {
        check: Check::Full,
        ..Options::default()
    };
    let report = |_: Progress| unless(interrupt);
    let damages =
        saiga_snapshot::verify(&held, &options, &report).map_err(|error| told(interrupt, error))?;
    match damages.first() {
        None => Ok(()),
        Some(first) => Err(Failure::impossible(Unfit::Damaged {
            snapshot: snapshot.display().to_string(),
            first: first.to_string(),
            count: damages.len(),
        })),
    }
}

/// Makes `parts` what `snapshot` holds; refuses while a process is at work in one of them. An
/// interrupted restore is finished or refused by the next one, where somebody `keeps_data`.
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
    let report = |_: Progress| unless(interrupt);
    saiga_snapshot::restore(&snapshot, &options, &report)
        .map_err(|error| unrestored(error, keeps_data, interrupt))?;
    if linked_files == LinkedFiles::Leave {
        return Ok(());
    }
    let strays = saiga_snapshot::linked_files(&snapshot).map_err(Failure::impossible)?;
    match strays.first() {
        None => Ok(()),
        Some(stray) => Err(Failure::impossible(Unfit::Linked {
            snapshot: snapshot.dir().display().to_string(),
            link: stray.link.display().to_string(),
        })),
    }
}

/// Compares names, sizes, times, owners and modes of `parts` with `snapshot`.
pub(crate) fn verify(
    snapshot: &Path,
    parts: &[PathBuf],
    interrupt: &Interrupt,
) -> Result<(), Failure> {
    let held = open(snapshot, parts)?;
    // The restore has checked the bytes that it wrote.
    let options = Options {
        check: Check::Quick,
        ..Options::default()
    };
    let report = |_: Progress| unless(interrupt);
    let differences = saiga_snapshot::compare_parts(&held, &options, &report)
        .map_err(|error| told(interrupt, error))?;
    match differences.first() {
        None => Ok(()),
        Some(first) => Err(Failure::impossible(Unfit::Differs {
            snapshot: snapshot.display().to_string(),
            first: first.to_string(),
            count: differences.len(),
        })),
    }
}

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
    Err(Failure::impossible(Unfit::Parts {
        snapshot: dir.display().to_string(),
        holds: list(&holds),
        named: list(named),
    }))
}

fn unless(interrupt: &Interrupt) -> ControlFlow<()> {
    if interrupt.raised() {
        ControlFlow::Break(())
    } else {
        ControlFlow::Continue(())
    }
}

/// Whoever interrupts a restore must know what became of the data, if there are any afterwards.
fn unrestored(error: RestoreError, keeps_data: bool, interrupt: &Interrupt) -> Failure {
    let is_half = matches!(error, RestoreError::Partial { .. });
    if is_half && keeps_data {
        return Failure::impossible(error);
    }
    if let RestoreError::Partial { why, .. } = error {
        return told(interrupt, *why);
    }
    told(interrupt, error)
}

/// What ended because the user wished it is not a fault.
fn told(interrupt: &Interrupt, error: impl std::error::Error + Send + Sync + 'static) -> Failure {
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
    fn what_is_half_restored_is_told_when_it_stays() {
        let half = || RestoreError::Partial {
            dirs: vec![PathBuf::from("/data")],
            why: Box::new(RestoreError::Cancelled),
        };
        let said = |keeps_data| unrestored(half(), keeps_data, &Interrupt::never()).to_string();
        assert!(
            said(true).contains("/data is partly restored"),
            "{}",
            said(true)
        );
        assert_eq!(said(false), "interrupted");
    }
}
