//! `saiga bench tpcc check`: checks the tables against the rules of TPC-C. The exit status is 1 if
//! a rule is violated.

use std::io::Write;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use indicatif::{ProgressBar, ProgressDrawTarget};
use saiga_process::interrupt::Interrupt;
use saiga_tpcc::check::{Check, Report, Scope};
use saiga_tpcc::target::Target;

use super::target::Targets;
use crate::exit;

/// Maximum number of sessions that check in parallel. Each session keeps a CPU busy.
const MAX_SESSIONS: u32 = 8;

/// Options of `saiga bench tpcc check`.
#[derive(Debug, Default, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    targets: Targets,
    /// Also check the rules for freshly loaded tables, whether or not a run seems to have changed
    /// them
    #[arg(long)]
    after_load: bool,
    /// Check only the twelve conditions of 3.3.2, not the population of 4.3.3.1
    #[arg(long)]
    conditions: bool,
    /// Check only conditions 1 to 7 and 12 of ten warehouses, by key; the time does not depend on
    /// the number of warehouses
    #[arg(long, conflicts_with_all = ["conditions", "after_load"])]
    sample: bool,
    /// Print the checks and violations as JSON, one line for each database
    #[arg(long)]
    json: bool,
}

impl Args {
    fn scope(&self) -> Scope {
        match (self.sample, self.conditions) {
            (true, _) => Scope::Sample,
            (false, true) => Scope::Conditions,
            (false, false) => Scope::All,
        }
    }
}

pub(super) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let targets = args.targets.all()?;
    let interrupt = Interrupt::on_signals().context("cannot watch for Ctrl-C")?;
    let mut all_hold = true;
    for target in &targets {
        all_hold &= check(target, args, &interrupt).with_context(|| target.name())?;
    }
    Ok(if all_hold {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(exit::NO)
    })
}

/// Checks one database and prints the result; returns whether all rules hold.
pub(super) fn check(target: &Target, args: &Args, interrupt: &Interrupt) -> anyhow::Result<bool> {
    let (report, took) = check_tables(
        target,
        args.after_load.then_some(true),
        args.scope(),
        interrupt,
    )?;
    if args.json {
        writeln!(std::io::stdout(), "{}", report.json(&target.name(), took))?;
    } else {
        let text = report.text(&target.name(), took);
        std::io::stdout().write_all(text.as_bytes())?;
    }
    Ok(report.findings.is_empty())
}

/// Checks one database; returns the report and the time that it took.
pub(super) fn check_tables(
    target: &Target,
    after_load: Option<bool>,
    scope: Scope,
    interrupt: &Interrupt,
) -> anyhow::Result<(Report, Duration)> {
    target.must_exist()?;
    let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
    let check = Check {
        open: &|| target.open(),
        sessions: target.props.load_workers.min(MAX_SESSIONS),
        after_load,
        scope,
        stop: &|| interrupt.raised(),
        on_progress: &|all, done| {
            bar.set_length(all as u64);
            bar.set_position(done as u64);
        },
    };
    let before = Instant::now();
    let report = check.run();
    bar.finish_and_clear();
    let (report, took) = (report?, before.elapsed());
    let (there, asked) = (report.loaded.warehouses, target.props.warehouses);
    if there < asked {
        bail!(
            "{} loaded, but warehouses= is {asked}; correct the props file, or destroy and build \
             again",
            if there == 1 {
                "1 warehouse is".to_owned()
            } else {
                format!("{there} warehouses are")
            }
        );
    }
    Ok((report, took))
}
