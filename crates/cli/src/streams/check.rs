//! `saiga streams check`: the present and the expected hint of each file, and the route of hints.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use saiga_streams::lock::LOCK_DIR;
use saiga_streams::route::{Report, System};
use saiga_streams::rules::{self, Rules};
use saiga_verify::directory::{self, Directory};
use saiga_verify::handles::{self, HandleWrites};
use saiga_verify::placement::PartPlacement;
use saiga_verify::plan;
use saiga_verify::traffic::{self, Traffic};
use serde_json::{Value, json};

use super::elsewhere;
use crate::exit;
use crate::print::{print_json, print_text};

/// Options of `saiga streams check`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Changes nothing. The first line says whether hints reach the drive with this \
kernel and file system.\n\
Exit status: 1 when a file lacks the hint that its rule gives; with --for, also when some of its \
bytes were written without that hint, or none were written; and when hints do not reach the drive (except with \
--any-route).\n\
On FDP namespaces (see --plan) no hints are needed. Exit status there: 1 when two parts of a \
server \
share a reclaim unit handle, when the drive cannot be queried (needs root), or with --for when \
bytes of a part were not counted at its handle, or nothing was written."
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

pub(super) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    anyhow::ensure!(
        args.time.is_none_or(|time| !time.is_zero()),
        "--for must be greater than zero"
    );
    let rules = Arc::new(load(&args.rules)?);
    let system = System::at(&args.system);
    let reports = directory::survey(&system, &args.dirs)?;
    // Files are checked after the recording, so that files created in that time are included.
    let followed = (args.time).map(|time| follow(&system, args, &reports, time, &rules));
    let followed = followed.transpose()?;
    let all = reports
        .into_iter()
        .map(|(report, placement)| Directory::check(report, placement, &rules, &args.lock_dir));
    let all: Vec<Directory> = all.collect::<Result<_, _>>()?;
    if args.plan {
        let [directory] = &all[..] else {
            anyhow::bail!("give one directory with --plan");
        };
        print_text(&plan::plan(directory, &system)?)?;
        return Ok(ExitCode::SUCCESS);
    }
    let unused = directory::unused_rules(&rules, &all);
    let elsewhere = elsewhere::find(&args.dirs, &System::at(&args.system));
    if args.json {
        let dirs = all.iter().map(|directory| directory.as_json(&rules));
        let mut answer = json!({
            "directories": dirs.collect::<Vec<_>>(),
            "rules_without_files": unused,
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
        for directory in &all {
            print_text(&directory.to_text(&rules))?;
        }
        if let Some(followed) = &followed {
            print_text(&followed.to_text())?;
        }
        for rule in &unused {
            exit::say(&format!("warning: {rule} matches no file"));
        }
        if let Some(warning) = directory::unreadable(&all) {
            exit::say(&format!("warning: {warning}"));
        }
        for it in &elsewhere {
            exit::say(&format!("warning: {it}"));
        }
    }
    let is_well = all
        .iter()
        .all(|directory| directory.is_well(args.any_route))
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
        let writes = handles::follow(system, servers, time, &mut exit::say)?;
        Ok(Followed::Handles(writes))
    } else {
        let traffic = traffic::follow(&args.dirs, time, rules, &mut exit::say)?;
        Ok(Followed::Hints(traffic))
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
