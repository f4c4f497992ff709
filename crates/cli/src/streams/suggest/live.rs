//! `suggest` from current writes: records a temporary trace and reads it.

use std::fs::Permissions;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context as _;
use saiga_ftl::trace::Trace;
use saiga_process::interrupt::Interrupt;
use saiga_record::Totals;
use tempfile::TempDir;

use super::super::record::recording::record;
use super::super::record::{RecordOptions, summary};
use super::super::trace_file;
use crate::exit;
use saiga_document::number;

pub(super) struct LiveTrace {
    pub(super) trace: Trace,
    interrupt: Interrupt,
    /// Number of signals that ended the recording.
    spent: u64,
}

impl LiveTrace {
    /// Records. The trace is kept only if `keep` names a file.
    pub(super) fn record(wanted: &RecordOptions, keep: Option<&Path>) -> anyhow::Result<Self> {
        let target = wanted.target(&[])?;
        let name = keep.map_or(Ok(PathBuf::new()), std::path::absolute)?;
        let mut options = wanted.options(&target, name)?;
        // For the whole run: temporary files must be removed even after several signals.
        let interrupt = Interrupt::on_signals_without_exit().context("cannot watch for Ctrl-C")?;
        let folder = match keep {
            Some(_) => None,
            None => Some(folder(places(), &options.dirs)?),
        };
        if let Some(folder) = &folder {
            options.out = folder.path().join("trace.csv");
        }
        let recorded = record(&options, &target, &interrupt)?;
        let signals = interrupt.count()?;
        let tally = &recorded.tally;
        if let Some(keep) = keep {
            exit::say(&format!("wrote {}", keep.display()));
        }
        exit::say(&format!("recorded {}", summary::line(tally)));
        if tally.total.written == tally.no_file.written {
            anyhow::bail!("{}", nothing(&recorded.directories, tally));
        }
        for warning in summary::warnings(tally) {
            exit::say(&warning);
        }
        // Checked before the search, which may be too short to check.
        anyhow::ensure!(signals < 2, "interrupted");
        Ok(Self {
            trace: trace_file::read(&options.out)?,
            interrupt,
            spent: signals.min(1),
        })
    }

    /// Whether the user gave up: by one more signal than those that ended the recording.
    pub(super) fn is_given_up(&self) -> bool {
        // An error is not a reason to discard the recording.
        self.interrupt.count().is_ok_and(|count| count > self.spent)
    }
}

/// The error if nothing was written to the directories.
fn nothing(directories: &[String], tally: &Totals) -> String {
    let seen = Duration::from_nanos(tally.duration_ns);
    let seen = match seen.as_secs() {
        0 => Duration::from_millis(u64::from(seen.subsec_millis())),
        seconds => Duration::from_secs(seconds),
    };
    let rest = match tally.no_file.written {
        0 => String::new(),
        bytes => format!(" ({} outside of their files)", number::bytes(bytes)),
    };
    format!(
        "nothing was written below {} in {}{rest}: give the directory that the database writes to, \
             and record while it is under load",
        directories.join(", "),
        humantime::format_duration(seen)
    )
}

/// Directories for the trace, the best first. A trace can be large, and /tmp is often in memory.
fn places() -> Vec<PathBuf> {
    let given = std::env::var_os("TMPDIR").filter(|given| !given.is_empty());
    let given = given.map(PathBuf::from).into_iter();
    given.chain(["/var/tmp".into(), "/tmp".into()]).collect()
}

/// Makes a private directory in the first place that is on none of the file systems of `dirs`, if
/// there is one.
fn folder(places: Vec<PathBuf>, dirs: &[PathBuf]) -> anyhow::Result<TempDir> {
    let mut failed = None;
    for place in elsewhere_first(places, dirs) {
        let made = tempfile::Builder::new()
            .prefix("saiga-recording-")
            .permissions(Permissions::from_mode(0o700))
            .tempdir_in(std::path::absolute(&place)?);
        match made {
            Ok(folder) => return Ok(folder),
            Err(error) => failed = failed.or(Some((place, error))),
        }
    }
    let (place, error) = failed.context("no directory for the trace exists")?;
    Err(error).with_context(|| {
        format!(
            "cannot store the trace in {}; select a directory with TMPDIR, or a file with --keep",
            place.display()
        )
    })
}

fn elsewhere_first(mut places: Vec<PathBuf>, dirs: &[PathBuf]) -> Vec<PathBuf> {
    let device = |path: &PathBuf| path.metadata().map(|metadata| metadata.dev()).ok();
    let recorded: Vec<Option<u64>> = dirs.iter().map(device).collect();
    places.sort_by_key(|place| recorded.contains(&device(place)));
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_trace_prefers_another_file_system() {
        let here = tempfile::tempdir().unwrap();
        let here = here.path().to_owned();
        // /proc is another file system, in which no directory can be made.
        let other = PathBuf::from("/proc");
        let places = vec![here.clone(), other.clone()];
        let dirs = [here.clone()];
        let ordered = elsewhere_first(places.clone(), &dirs);
        assert_eq!(ordered, [other.clone(), here.clone()]);
        assert_eq!(
            elsewhere_first(places.clone(), std::slice::from_ref(&other)),
            places
        );
        let made = folder(places, &dirs).unwrap();
        assert!(made.path().starts_with(&here));
        let mode = made.path().metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o700);
        let error = folder(vec![here.join("no"), other], &dirs).unwrap_err();
        assert!(format!("{error:#}").contains("TMPDIR"), "{error:#}");
    }

    #[test]
    fn the_error_has_the_time_and_the_other_bytes() {
        let mut tally = Totals::default();
        tally.duration_ns = 600_400_000_000;
        let said = nothing(&["/a".to_owned(), "/b".to_owned()], &tally);
        assert!(
            said.starts_with("nothing was written below /a, /b in 10m: "),
            "{said}"
        );
        tally.duration_ns = 20_700_000;
        tally.no_file.written = 4096;
        let said = nothing(&["/a".to_owned()], &tally);
        assert!(
            said.contains("/a in 20ms (4.00 KiB outside of their files): "),
            "{said}"
        );
    }
}
