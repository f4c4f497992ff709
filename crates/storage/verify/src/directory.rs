//! The present and the expected hint of each file of a directory, and the route of hints.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::io::Errno;
use saiga_document::number;
use saiga_document::table::Table;
use saiga_streams::check::{self, Row, Standing};
use saiga_streams::hint::Hint;
use saiga_streams::labels;
use saiga_streams::route::{self, Reach, Report, Route, System};
use saiga_streams::rules::Rules;
use saiga_streams::setter::Fcntl;
use serde_json::{Value, json};

use crate::placement::{self, PartPlacement};
use crate::{AS_ROOT, VerifyError};

/// A checked directory.
#[derive(Debug)]
pub struct Directory {
    pub report: Report,
    /// Where the parts of the server are, if they are on several disks.
    pub placement: Option<PartPlacement>,
    pub rows: Vec<Row>,
}

/// Finds the routes of hints and, where the parts of a server are on several disks, their handles.
///
/// # Errors
/// A directory is not on a file system that passes hints, or sysfs cannot be read.
pub fn survey(
    system: &System,
    dirs: &[PathBuf],
) -> Result<Vec<(Report, Option<PartPlacement>)>, VerifyError> {
    let reports = dirs.iter().map(|dir| {
        let report = route::probe(system, dir)?;
        match report.obstacle() {
            None => Ok(report),
            Some(obstacle) => Err(VerifyError::Obstacle {
                dir: dir.clone(),
                obstacle: obstacle.to_string(),
            }),
        }
    });
    placement::complete(system, reports.collect::<Result<_, VerifyError>>()?)
}

impl Directory {
    /// Compares the files of a surveyed directory with their rules. `lock_dir` has the list of
    /// labels that the labeller set.
    ///
    /// # Errors
    /// A file cannot be opened or listed.
    pub fn check(
        report: Report,
        placement: Option<PartPlacement>,
        rules: &Arc<Rules>,
        lock_dir: &Path,
    ) -> Result<Self, VerifyError> {
        let ours = labels::of(lock_dir, &report.dir);
        let rows = check::check(&report.dir, rules, &ours, &Fcntl);
        let rows = rows.map_err(|error| VerifyError::Files {
            dir: report.dir.clone(),
            error,
        })?;
        Ok(Self {
            report,
            placement,
            rows,
        })
    }

    /// Whether the data of different lifetimes are kept apart.
    #[must_use]
    pub fn is_well(&self, any_route: bool) -> bool {
        let Report { route, reach, .. } = self.report;
        // A drive may follow hints without a counter that proves it, but every drive reports its
        // handles.
        let reaches =
            reach == Reach::Yes || (reach == Reach::Unproven && route != Route::Namespaces);
        let rows = || self.rows.iter().all(|row| row.standing.is_well());
        self.report.needs_no_hints() || ((reaches || any_route) && rows())
    }

    /// A table of the files, with the verdict first.
    #[must_use]
    pub fn to_text(&self, rules: &Rules) -> String {
        let mut out = self.report.headline() + "\n";
        for note in &self.report.notes {
            out.push_str(&format!("  {note}\n"));
        }
        if let Some(placement) = &self.placement {
            out.push_str(&format!("{}\n", placement.to_text()));
        }
        out.push_str(&self.files(rules).to_string());
        let count = |is: fn(&Row) -> bool| self.rows.iter().filter(|row| is(row)).count();
        out.push_str(&format!(
            "{} files: {} as they should be, {} not, {} without a rule\n",
            self.rows.len(),
            count(|row| row.standing.is_well() && row.standing != Standing::Free),
            count(|row| !row.standing.is_well()),
            count(|row| row.standing == Standing::Free),
        ));
        if self.report.needs_no_hints() {
            out.push_str("hints are not needed here and are not checked\n");
        }
        out
    }

    fn files(&self, rules: &Rules) -> Table<6> {
        let mut table = Table::new(["file", "size", "wanted", "found", "", "rule"]);
        for row in &self.rows {
            let origin = row.rule.and_then(|number| rules.rules.get(number));
            let standing = if let Standing::Unseen(error) = row.standing {
                format!("unseen: {error}")
            } else {
                row.standing.name().to_owned()
            };
            let name = row.path.strip_prefix(&self.report.dir).unwrap_or(&row.path);
            table.row([
                name.display().to_string(),
                number::bytes(row.bytes),
                row.wanted.to_string(),
                row.found
                    .map_or_else(|| "?".to_owned(), |hint| hint.to_string()),
                standing,
                origin.map_or_else(String::new, |rule| {
                    format!("{} {}", rule.origin, rule.pattern)
                }),
            ]);
        }
        table
    }

    #[must_use]
    pub fn as_json(&self, rules: &Rules) -> Value {
        let rows = self.rows.iter().map(|row| {
            let rule = row.rule.and_then(|number| rules.rules.get(number));
            let wanted = Some(row.wanted).filter(|hint| *hint != Hint::NotSet);
            json!({
                "path": row.path.display().to_string(),
                "bytes": row.bytes,
                "rule": rule.map(|rule| json!({
                    "origin": rule.origin.to_string(),
                    "path": rule.pattern.to_string(),
                    "why": rule.why,
                })),
                "wanted": wanted.map(Hint::name),
                "found": row.found.filter(|hint| *hint != Hint::NotSet).map(Hint::name),
                "standing": row.standing.name(),
                "is_well": row.standing.is_well(),
            })
        });
        json!({
            "route": report_json(&self.report),
            "parts": self.placement.as_ref().map(PartPlacement::as_json),
            "files": rows.collect::<Vec<_>>(),
        })
    }
}

/// The rules that match no file. Built-in rules are excluded: they cover several versions.
#[must_use]
pub fn unused_rules(rules: &Rules, all: &[Directory]) -> Vec<String> {
    let rows = all.iter().flat_map(|directory| &directory.rows);
    let used: BTreeSet<usize> = rows.filter_map(|row| row.rule).collect();
    let rules = rules.rules.iter().enumerate();
    rules
        .filter(|(number, rule)| !used.contains(number) && !rule.origin.is_builtin)
        .map(|(_, rule)| format!("{} `{}`", rule.origin, rule.pattern))
        .collect()
}

/// The warning about files that this user cannot read, if there are any.
#[must_use]
pub fn unreadable(all: &[Directory]) -> Option<String> {
    let rows = all.iter().flat_map(|directory| &directory.rows);
    let hidden = Standing::Unseen(Errno::ACCESS);
    match rows.filter(|row| row.standing == hidden).count() {
        0 => None,
        count => Some(format!(
            "{count} files cannot be read by this user{AS_ROOT}"
        )),
    }
}

fn report_json(report: &Report) -> Value {
    json!({
        "dir": report.dir.display().to_string(),
        "mount": report.mount.point.display().to_string(),
        "file_system": report.mount.kind,
        "disk": report.disk.as_ref().map(|disk| &disk.name),
        "max_write_streams": report.disk.as_ref().and_then(|disk| disk.max_write_streams),
        "kernel": report.kernel.to_string(),
        "route": report.route.name(),
        "reaches": report.reach.name(),
        "why": report.why,
        "notes": report.notes,
    })
}
