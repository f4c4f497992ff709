//! `saiga streams run`: the labeller in the foreground.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use clap::ValueEnum;
use saiga_streams::control::Control;
use saiga_streams::labeller::{self, Database, Level, Mode, Options};
use saiga_streams::lock::LOCK_DIR;
use saiga_streams::route::{Reach, System};
use saiga_streams::rules::RuleSet;
use saiga_streams::setter::Fcntl;

use super::log::Log;
use super::{elsewhere, notify};
use crate::exit;

/// Looking more often, or taking less for a stall, would only heat the machine.
const SHORTEST: Duration = Duration::from_millis(1);

/// Options of `saiga streams run`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Runs in the foreground, as root or with CAP_SYS_ADMIN and CAP_DAC_READ_SEARCH; log lines go to stderr. SIGHUP, \
and a changed rule file, make it read its rules again; SIGTERM, SIGINT and `saiga streams stop` end it. The first line says what becomes of hints on this kernel and drive.\nExit status: \
with --once, 1 when a hint did not take or hints reach nothing here (--any-route does not mind the latter)."
)]
pub(super) struct Args {
    /// Data directories; everything below them, and what links in them lead to, is labelled
    #[arg(value_name = "DIR", required = true)]
    dirs: Vec<PathBuf>,
    /// Built-in sets or files (see `saiga streams rules`), the first rule that matches decides
    #[arg(long, value_name = "NAME|FILE", required = true, num_args = 1..)]
    rules: Vec<String>,
    /// When files are labelled
    #[arg(long, value_enum, default_value = "notify")]
    mode: ModeName,
    /// Label what is there and end
    #[arg(long, conflicts_with = "mode")]
    once: bool,
    /// Overwrite hints that the database has set itself
    #[arg(long)]
    force: bool,
    /// Look at every file this often, for hints that were lost
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = humantime::parse_duration)]
    scan_interval: Duration,
    /// With --mode gate: open the gate for good when it is at one open for longer than this
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = humantime::parse_duration)]
    stall_limit: Duration,
    /// Write Prometheus metrics to this file, for node_exporter's textfile collector
    #[arg(long, value_name = "FILE")]
    metrics: Option<PathBuf>,
    /// Keep locks in this directory: a data directory has one labeller
    #[arg(long, value_name = "DIR", default_value = LOCK_DIR)]
    lock_dir: PathBuf,
    /// With --once: do not mind where hints reach nothing
    #[arg(long)]
    any_route: bool,
    /// Log into this file instead of stderr; a renamed one is begun anew
    #[arg(long, value_name = "FILE")]
    log: Option<PathBuf>,
    /// Log a line for each file
    #[arg(short, long)]
    verbose: bool,
    /// Stall the gate when a file of this name is opened, to see the watchdog at work
    #[arg(long, value_name = "NAME", hide = true)]
    drill: Option<OsString>,
    /// Take proc and sys from below this directory
    #[arg(long, value_name = "DIR", default_value = "/", hide = true)]
    system: PathBuf,
}

/// When files are labelled, as a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum ModeName {
    /// Once they are there
    Notify,
    /// Before the open that makes them returns: not a byte is missed, and each open takes microseconds longer
    Gate,
}

/// Labels until it is ended.
pub(super) fn run(args: Args) -> anyhow::Result<ExitCode> {
    let Args {
        dirs,
        rules,
        mode,
        once,
        force,
        look,
        stall_limit,
        metrics,
        lock_dir,
        any_route,
        log,
        verbose,
        drill,
        system,
    } = args;
    for (name, time) in [("--look", look), ("--stall-limit", stall_limit)] {
        anyhow::ensure!(time >= SHORTEST, "{name} must be at least {SHORTEST:?}");
    }
    let rules: Vec<RuleSet> = rules.into_iter().map(RuleSet::Named).collect();
    let databases = dirs.into_iter().map(|dir| Database {
        dir,
        rules: rules.clone(),
    });
    let options = Options {
        databases: databases.collect(),
        mode: match mode {
            ModeName::Notify => Mode::Notify,
            ModeName::Gate => Mode::Gate,
        },
        once,
        force,
        scan_interval: look,
        stall_limit,
        drill,
        metrics,
        lock_dir,
        kept: if once { None } else { notify::kept() },
        system: System::at(system),
    };
    let control = Control::new().context("cannot begin")?;
    control.on_signals().context("cannot watch for signals")?;
    let opened = Log::new(log.as_deref(), verbose);
    let log = opened.with_context(|| {
        let path = log.as_deref().unwrap_or(Path::new("")).display();
        format!("cannot log into {path}")
    })?;
    let dirs: Vec<PathBuf> = options.databases.iter().map(|it| it.dir.clone()).collect();
    for it in elsewhere::find(&dirs, &options.system) {
        log.say(Level::Warn, &it.to_string());
    }
    let ended = labeller::run(&options, Arc::new(Fcntl), &control, &|level, text| {
        log.say(level, text);
        if level == Level::Begun {
            notify::ready();
        }
    })?;
    let reaches = |reach| any_route || reach != Reach::No;
    let is_well =
        ended.counted.refused == 0 && ended.reports.iter().all(|report| reaches(report.reach));
    Ok(if once && !is_well {
        ExitCode::from(exit::NO)
    } else {
        ExitCode::SUCCESS
    })
}
