//! `saiga streams check`: the present and the expected hint of each file, and the route of hints.

mod handles;
mod placement;
mod traffic;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use rustix::io::Errno;
use saiga_streams::check::{self, Row, Standing};
use saiga_streams::hint::Hint;
use saiga_streams::labels;
use saiga_streams::lock::LOCK_DIR;
use saiga_streams::route::{self, Reach, Report, Route, System};
use saiga_streams::rules::{self, Rules};
use saiga_streams::setter::Fcntl;
use serde_json::{Value, json};

use self::handles::HandleWrites;
use self::placement::PartPlacement;
use self::traffic::Traffic;
use super::{elsewhere, print_json, print_text, report_json};
use crate::exit;
use crate::table::Table;
use saiga_document::number;

/// Options of `saiga streams check`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Changes nothing. The first line says whether hints reach the drive with this \
kernel and file system.\n\
Exit status: 1 when a file lacks the hint that its rule gives; with --for, also when some of its \
bytes were written without that hint; and when hints do not reach the drive (except with \
--any-route).\n\
On FDP namespaces (see --plan) no hints are needed. Exit status there: 1 when two parts of a \
server \
share a reclaim unit handle, when the drive cannot be queried (needs root), or with --for when \
bytes of a part were not counted at its handle."
)]
pub(super) struct Args {
    /// Data directories
    #[arg(value_name = "DIR", required = true)]
    dirs: Vec<PathBuf>,
    /// Built-in sets or files of rules (see `saiga streams rules`); the first matching rule decides
    #[arg(long, value_name = "NAME|FILE", required = true, num_args = 1..)]
    rules: Vec<String>,
    /// Also follow the writes for this time: bytes by hint, and whether each file was written with
    /// its hint (needs root and Linux 6.9). On FDP namespaces: bytes by part and by reclaim unit
    /// handle (needs root)
    #[arg(long = "for", value_name = "TIME", value_parser = humantime::parse_duration, conflicts_with = "plan")]
    time: Option<Duration>,
    /// Succeed also if hints do not reach the drive
    #[arg(long)]
    any_route: bool,
    /// Print, but do not run, the commands that give each kind of file its own FDP namespace, and
    /// the commands that undo this
    #[arg(long)]
    plan: bool,
    /// Directory with the labeller's lock and the list of labels that it set (readable for its user
    /// and root)
    #[arg(long, value_name = "DIR", default_value = LOCK_DIR)]
    lock_dir: PathBuf,
    /// Print JSON
    #[arg(long, conflicts_with = "plan")]
    json: bool,
    /// Read proc, sys and, for --plan, /etc/fstab and the mount points below this directory
    #[arg(long, value_name = "DIR", default_value = "/", hide = true)]
    system: PathBuf,
}

/// Advice after a permission error.
const AS_ROOT: &str = "; run this as root (or with CAP_DAC_READ_SEARCH)";

struct Checked {
    report: Report,
    spread: Option<PartPlacement>,
    rows: Vec<Row>,
}

impl Checked {
    /// Whether the data of different lifetimes are kept apart.
    fn is_well(&self, any_route: bool) -> bool {
        let Report { route, reach, .. } = self.report;
        // A drive may follow hints without a counter that proves it, but every drive reports its
        // handles.
        let reaches =
            reach == Reach::Yes || (reach == Reach::Unproven && route != Route::Namespaces);
        let rows = || self.rows.iter().all(|row| row.standing.is_well());
        self.report.needs_no_hints() || ((reaches || any_route) && rows())
    }
}

pub(super) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    anyhow::ensure!(
        args.time.is_none_or(|time| !time.is_zero()),
        "--for must be greater than zero"
    );
    let rules = Arc::new(load(&args.rules)?);
    let system = System::at(&args.system);
    let reports = placement::complete(&system, survey(args, &system)?)?;
    // Files are checked during the recording, so that files created meanwhile are included.
    let followed = (args.time).map(|time| follow(&system, args, &reports, time, &rules));
    let followed = followed.transpose()?;
    let all = reports.into_iter();
    let all = all.map(|(report, spread)| check_files(report, spread, &rules, &args.lock_dir));
    let all: Vec<Checked> = all.collect::<anyhow::Result<_>>()?;
    if args.plan {
        return plan(&all, &system);
    }
    let idle = idle(&rules, &all);
    let elsewhere = elsewhere::find(&args.dirs, &System::at(&args.system));
    if args.json {
        let dirs = all.iter().map(|checked| as_json(&rules, checked));
        let mut answer = json!({
            "directories": dirs.collect::<Vec<_>>(),
            "rules_without_files": idle,
            "elsewhere": elsewhere.iter().map(|it| json!({
                "what": it.what,
                "dir": it.dir.display().to_string(),
            })).collect::<Vec<_>>(),
        });
        if let Some(followed) = &followed {
            let (name, value) = followed.as_json();
            answer[name] = value;
        }
        print_json(&answer)?;
    } else {
        for checked in &all {
            print_text(&as_text(&rules, checked))?;
        }
        if let Some(followed) = &followed {
            print_text(&followed.to_text())?;
        }
        warn(&all, &idle);
        for it in &elsewhere {
            exit::say(&format!("warning: {it}"));
        }
    }
    let is_well = all.iter().all(|checked| checked.is_well(args.any_route))
        && followed.is_none_or(|followed| followed.is_well());
    Ok(if is_well {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(exit::NO)
    })
}

/// The writes during `--for`.
enum Followed {
    Hints(Traffic),
    Handles(HandleWrites),
}

impl Followed {
    /// Name and value of the field of the JSON answer.
    fn as_json(&self) -> (&'static str, Value) {
        match self {
            Self::Hints(traffic) => ("traffic", traffic.as_json()),
            Self::Handles(handles) => ("handles", handles.as_json()),
        }
    }

    fn to_text(&self) -> String {
        match self {
            Self::Hints(traffic) => traffic.to_text(),
            Self::Handles(handles) => handles.to_text(),
        }
    }

    fn is_well(&self) -> bool {
        match self {
            Self::Hints(traffic) => traffic.is_well(),
            Self::Handles(handles) => handles.is_well(),
        }
    }
}

/// Follows writes by hint, or by handle if no directory needs hints.
fn follow(
    system: &System,
    args: &Args,
    reports: &[(Report, Option<PartPlacement>)],
    time: Duration,
    rules: &Rules,
) -> anyhow::Result<Followed> {
    if reports.iter().all(|(report, _)| report.needs_no_hints()) {
        let servers = reports.iter().filter_map(|(_, spread)| spread.as_ref());
        Ok(Followed::Handles(handles::follow(system, servers, time)?))
    } else {
        Ok(Followed::Hints(traffic::follow(&args.dirs, time, rules)?))
    }
}

/// Finds the route of hints from each directory.
fn survey(args: &Args, system: &System) -> anyhow::Result<Vec<Report>> {
    let reports = args.dirs.iter().map(|dir| {
        let report = route::probe(system, dir)?;
        if let Some(obstacle) = report.obstacle() {
            anyhow::bail!("{}: {obstacle}", dir.display());
        }
        Ok(report)
    });
    reports.collect()
}

fn check_files(
    report: Report,
    spread: Option<PartPlacement>,
    rules: &Arc<Rules>,
    lock_dir: &Path,
) -> anyhow::Result<Checked> {
    let ours = labels::of(lock_dir, &report.dir);
    let rows = check::check(&report.dir, rules, &ours, &Fcntl).map_err(|error| {
        let advice = if error == Errno::ACCESS { AS_ROOT } else { "" };
        anyhow::anyhow!("cannot check {}: {error}{advice}", report.dir.display())
    })?;
    Ok(Checked {
        report,
        spread,
        rows,
    })
}

fn warn(all: &[Checked], idle: &[String]) {
    for rule in idle {
        exit::say(&format!("warning: {rule} matches no file"));
    }
    let rows = all.iter().flat_map(|checked| &checked.rows);
    let hidden = Standing::Unseen(Errno::ACCESS);
    match rows.filter(|row| row.standing == hidden).count() {
        0 => {}
        count => exit::say(&format!(
            "warning: {count} files cannot be read by this user{AS_ROOT}"
        )),
    }
}

fn load(names: &[String]) -> anyhow::Result<Rules> {
    let mut joined = Rules::default();
    for name in names {
        let (rules, warnings) = rules::load(name)?;
        for warning in &warnings {
            exit::say(&format!("warning: {warning}"));
        }
        joined.rules.extend(rules.rules);
    }
    Ok(joined)
}

/// The rules that match no file. Built-in rules are excluded: they cover several versions.
fn idle(rules: &Rules, all: &[Checked]) -> Vec<String> {
    let rows = all.iter().flat_map(|checked| &checked.rows);
    let used: BTreeSet<usize> = rows.filter_map(|row| row.rule).collect();
    let rules = rules.rules.iter().enumerate();
    rules
        .filter(|(number, rule)| !used.contains(number) && !rule.origin.is_builtin)
        .map(|(_, rule)| format!("{} `{}`", rule.origin, rule.pattern))
        .collect()
}

fn plan(all: &[Checked], system: &System) -> anyhow::Result<ExitCode> {
    let [Checked { report, rows, .. }] = all else {
        anyhow::bail!("give one directory with --plan");
    };
    let dir = report.dir.display();
    anyhow::ensure!(
        !report.needs_no_hints(),
        "no plan for {dir}: it is already carried out: {}",
        report.why
    );
    let disk = report.disk.as_ref().with_context(|| {
        format!("no plan for {dir}: it is not on an NVMe drive, which --plan needs for namespaces")
    })?;
    let is_unseen = |row: &&Row| matches!(row.standing, Standing::Unseen(_));
    if let Some(unseen) = rows.iter().find(is_unseen) {
        anyhow::bail!(
            "no plan for {dir}: cannot check {}{AS_ROOT}",
            unseen.path.display()
        );
    }
    let outside = route::outside(&report.dir).map_err(|(path, error)| {
        let path = path.display();
        anyhow::anyhow!("no plan for {dir}: cannot check {path}: {error}{AS_ROOT}")
    })?;
    let files = rows.iter().map(|row| (row.path.clone(), row.bytes));
    let data = route::Data {
        dir: &report.dir,
        mount: &report.mount,
        disk: &disk.name,
        files: files
            .chain(outside.into_iter().map(|path| (path, 0)))
            .collect(),
    };
    print_text(&route::plan(system, &data)?)?;
    Ok(ExitCode::SUCCESS)
}

fn as_text(rules: &Rules, checked: &Checked) -> String {
    let Checked {
        report,
        spread,
        rows,
    } = checked;
    let mut out = report.headline() + "\n";
    for note in &report.notes {
        out.push_str(&format!("  {note}\n"));
    }
    if let Some(spread) = spread {
        out.push_str(&format!("{}\n", spread.to_text()));
    }
    let mut table = Table::new(["file", "size", "wanted", "found", "", "rule"]);
    for row in rows {
        let origin = row.rule.and_then(|number| rules.rules.get(number));
        let standing = if let Standing::Unseen(error) = row.standing {
            format!("unseen: {error}")
        } else {
            row.standing.name().to_owned()
        };
        table.row([
            shown(&report.dir, &row.path),
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
    out.push_str(&table.to_string());
    let count = |is: fn(&Row) -> bool| rows.iter().filter(|row| is(row)).count();
    out.push_str(&format!(
        "{} files: {} as they should be, {} not, {} without a rule\n",
        rows.len(),
        count(|row| row.standing.is_well() && row.standing != Standing::Free),
        count(|row| !row.standing.is_well()),
        count(|row| row.standing == Standing::Free),
    ));
    if report.needs_no_hints() {
        out.push_str("hints are not needed here and are not checked\n");
    }
    out
}

fn shown(dir: &Path, path: &Path) -> String {
    path.strip_prefix(dir).unwrap_or(path).display().to_string()
}

fn as_json(rules: &Rules, checked: &Checked) -> Value {
    let rows = checked.rows.iter().map(|row| {
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
        "route": report_json(&checked.report),
        "parts": checked.spread.as_ref().map(PartPlacement::as_json),
        "files": rows.collect::<Vec<_>>(),
    })
}
