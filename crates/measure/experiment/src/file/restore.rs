//! How the data are as they were before each run.

use std::path::PathBuf;

use super::hook::{Hook, hook};
use super::reader::{Problems, Table};

/// What is done about the data before a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Restore {
    /// How they are restored.
    pub how: How,
    /// Whether the kernel's caches are dropped before the servers start.
    pub drop_caches: bool,
}

/// Ways to restore data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum How {
    /// Not at all, which the report says.
    None,
    /// A snapshot of directories, while no server runs.
    Snapshot {
        /// The directories that it holds, and that it replaces.
        parts: Vec<PathBuf>,
        /// Where it lies.
        snapshot: PathBuf,
        /// Whether blocks are shared with it.
        reflink: Reflink,
        /// Whether links may lead to files that it does not hold.
        linked_files: LinkedFiles,
    },
    /// Commands, while the servers run.
    Logical(Vec<Hook>),
    /// FLUSHALL, and for GET as many keys as it asks for.
    FlushAll,
}

/// Whether blocks are shared with a snapshot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reflink {
    /// Where the file system can.
    Auto,
    /// Every byte is copied.
    Never,
}

/// What is done about links to files outside of a snapshot, which is not restored with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LinkedFiles {
    /// The campaign ends: the next run would find what this one left.
    Refuse,
    /// They are as they are: no run changes them.
    Leave,
}

impl LinkedFiles {
    /// As in the file.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Refuse => "refuse",
            Self::Leave => "leave",
        }
    }
}

impl Reflink {
    /// As in the file.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Never => "never",
        }
    }
}

impl Restore {
    /// Reads `[restore]`; without it nothing is restored.
    pub(super) fn read(table: Option<&Table<'_>>, problems: &Problems) -> Self {
        let Some(table) = table else {
            return Self {
                how: How::None,
                drop_caches: false,
            };
        };
        let kinds = ["none", "snapshot", "logical", "flushall"];
        table.needed("kind");
        let named: Vec<(&str, &str)> = kinds.iter().map(|kind| (*kind, *kind)).collect();
        let how = match table.choice("kind", &named) {
            Some("snapshot") => snapshot(table),
            Some("logical") => {
                table.needed("commands");
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
    table.needed("parts");
    let parts: Vec<PathBuf> = table
        .texts("parts")
        .into_iter()
        .map(PathBuf::from)
        .collect();
    let snapshot = table.needed_text("snapshot").map(PathBuf::from);
    let snapshot = snapshot.unwrap_or_default();
    for path in parts.iter().chain([&snapshot]) {
        if path.is_relative() && !path.as_os_str().is_empty() {
            let what = format!("{} does not begin with /", path.display());
            table.note(table.line(), &what);
        }
    }
    if let Some(part) = parts.iter().find(|part| snapshot.starts_with(part)) {
        let what = format!("lies in {}, which it replaces", part.display());
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
