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

/// Shorter intervals and stall limits would only waste CPU time.
const SHORTEST: Duration = Duration::from_millis(1);

/// Options of `saiga streams run`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Runs in the foreground, as root or with CAP_SYS_ADMIN and CAP_DAC_READ_SEARCH. The \
log goes to stderr; its first line says whether hints reach the drive with this kernel and file \
system. SIGHUP or a changed rule file reloads the rules; SIGTERM, SIGINT and `saiga streams stop` \
end the labeller.\nExit status: with --once, 1 when a hint could not be set or hints do not reach \
the drive (except with --any-route).")]
pub(super) struct Args {
    /// Data directories; everything below them, and the targets of symbolic links in them, is
    /// labelled
    #[arg(value_name = "DIR", required = true)]
    dirs: Vec<PathBuf>,
    /// Built-in sets or files of rules (see `saiga streams rules`); the first matching rule decides
    #[arg(long, value_name = "NAME|FILE", required = true, num_args = 1..)]
    rules: Vec<String>,
    /// When a file is labelled
    #[arg(long, value_enum, default_value = "notify")]
    mode: ModeName,
    /// Label the existing files and exit
    #[arg(long, conflicts_with = "mode")]
    once: bool,
    /// Replace hints that the database itself has set
    #[arg(long)]
    force: bool,
    /// Check every file at this interval, for hints that were lost
    #[arg(long = "look", value_name = "TIME", default_value = "60s", value_parser = humantime::parse_duration)]
    scan_interval: Duration,
    /// With --mode gate: stop gating for good when one open is held for longer than this
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = humantime::parse_duration)]
    stall_limit: Duration,
    /// Write Prometheus metrics to this file, for node_exporter's textfile collector
    #[arg(long, value_name = "FILE")]
    metrics: Option<PathBuf>,
    /// Keep locks in this directory; the lock allows one labeller per data directory
    #[arg(long, value_name = "DIR", default_value = LOCK_DIR)]
    lock_dir: PathBuf,
    /// With --once: succeed also if hints do not reach the drive
    #[arg(long)]
    any_route: bool,
    /// Write the log to this file instead of stderr; reopened after the file is renamed
    #[arg(long, value_name = "FILE")]
    log: Option<PathBuf>,
    /// Log one line for each file
    #[arg(short, long)]
    verbose: bool,
    /// For tests of the watchdog: stall the gate when a file of this name is opened
    #[arg(long, value_name = "NAME", hide = true)]
    drill: Option<OsString>,
    /// Read proc and sys below this directory
    #[arg(long, value_name = "DIR", default_value = "/", hide = true)]
    system: PathBuf,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum ModeName {
    /// After it has been created
    Notify,
    /// Before the open that creates it returns: every byte has its hint, and each open takes
    /// microseconds longer
    Gate,
}

pub(super) fn run(args: Args) -> anyhow::Result<ExitCode> {
    let Args {
        dirs,
        rules,
        mode,
        once,
        force,
        scan_interval,
        stall_limit,
        metrics,
        lock_dir,
        any_route,
        log,
        verbose,
        drill,
        system,
    } = args;
    for (name, time) in [("--look", scan_interval), ("--stall-limit", stall_limit)] {
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
        scan_interval,
        stall_limit,
        drill,
        metrics,
        lock_dir,
        kept: if once { None } else { notify::kept() },
        system: System::at(system),
    };
    let control = Control::new().context("cannot start the labeller")?;
    control
        .on_signals()
        .context("cannot set up signal handling")?;
    let opened = Log::new(log.as_deref(), verbose);
    let log = opened.with_context(|| {
        let path = log.as_deref().unwrap_or(Path::new("")).display();
        format!("cannot write the log to {path}")
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
