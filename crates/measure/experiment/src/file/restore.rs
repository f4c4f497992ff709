//! Parses `[restore]`: how the data are restored before each run.

use std::path::PathBuf;

use super::hook::{Hook, hook};
use super::reader::{Problems, Table};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Restore {
    pub how: How,
    /// Whether the page cache is dropped before the servers start.
    pub drop_caches: bool,
}

/// The kind of restore.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum How {
    /// The data are not restored; the report warns of that.
    None,
    /// Directories are restored from a snapshot while no server runs.
    Snapshot {
        /// The directories that the snapshot contains and replaces.
        parts: Vec<PathBuf>,
        /// The directory of the snapshot.
        snapshot: PathBuf,
        reflink: Reflink,
        linked_files: LinkedFiles,
    },
    /// Commands restore the data while the servers run.
    Logical(Vec<Hook>),
    /// FLUSHALL; before GETs all keys are set.
    FlushAll,
}

/// Whether restored files share blocks with the snapshot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reflink {
    /// Share blocks if the file system supports it.
    Auto,
    /// Copy all bytes.
    Never,
}

/// Treatment of links to files outside of the snapshot, which are not restored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LinkedFiles {
    /// The campaign ends, because a run could see changes of the run before it.
    Refuse,
    /// The files are ignored; the user states that no run changes them.
    Leave,
}

impl LinkedFiles {
    /// The name in the file.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Refuse => "refuse",
            Self::Leave => "leave",
        }
    }
}

impl Reflink {
    /// The name in the file.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Never => "never",
        }
    }
}

impl Restore {
    /// Parses `[restore]`; without it the data are not restored.
    pub(super) fn read(table: Option<&Table<'_>>, problems: &Problems) -> Self {
        let Some(table) = table else {
            return Self {
                how: How::None,
                drop_caches: false,
            };
        };
        let kinds = ["none", "snapshot", "logical", "flushall"];
        table.require("kind");
        let named: Vec<(&str, &str)> = kinds.iter().map(|kind| (*kind, *kind)).collect();
        let how = match table.choice("kind", &named) {
            Some("snapshot") => snapshot(table),
            Some("logical") => {
                table.require("commands");
                let values = table.values("commands").into_iter();
                How::Logical(
                    values
                        .filter_map(|value| hook(table, "commands", value, problems))
                        .collect(),
                )
            }
            Some("flushall") => How::FlushAll,
            Some(_) | None => How::None,
        };
        let drop_caches = table.flag("drop_caches").unwrap_or(false);
        table.finish();
        Self { how, drop_caches }
    }
}

fn snapshot(table: &Table<'_>) -> How {
    table.require("parts");
    let parts: Vec<PathBuf> = table
        .texts("parts")
        .into_iter()
        .map(PathBuf::from)
        .collect();
    let snapshot = table.required_text("snapshot").map(PathBuf::from);
    let snapshot = snapshot.unwrap_or_default();
    for path in parts.iter().chain([&snapshot]) {
        if path.is_relative() && !path.as_os_str().is_empty() {
            let what = format!("{} is not an absolute path", path.display());
            table.note(table.line(), &what);
        }
    }
    if let Some(part) = parts.iter().find(|part| snapshot.starts_with(part)) {
        let what = format!("is inside {}, which the restore replaces", part.display());
        table.problem("snapshot", &what);
    }
    let choices = [Reflink::Auto, Reflink::Never].map(|one| (one.name(), one));
    let linked = [LinkedFiles::Refuse, LinkedFiles::Leave].map(|one| (one.name(), one));
    How::Snapshot {
        parts,
        snapshot,
        reflink: table.choice("reflink", &choices).unwrap_or(Reflink::Auto),
        linked_files: table
            .choice("linked_files", &linked)
            .unwrap_or(LinkedFiles::Refuse),
    }
}
