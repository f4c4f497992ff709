//! `saiga bench tpcc check`: checks the tables against the rules of TPC-C. The exit status is 1 if
//! a rule is violated.

use std::io::Write;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use indicatif::{ProgressBar, ProgressDrawTarget};
use saiga_experiment::interrupt::Interrupt;
use saiga_tpcc::check::{Check, CheckedRule, Finding, Report, Scope};
use serde_json::json;

use super::target::{Target, Targets};
use crate::exit;
use saiga_document::number::{counted, time};

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
        writeln!(std::io::stdout(), "{}", as_json(target, &report, took))?;
    } else {
        print(target, &report, took)?;
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

fn print(target: &Target, report: &Report, took: Duration) -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    let what = if report.after_load {
        "as loaded"
    } else {
        "after a run"
    };
    let all = || counted(report.loaded.warehouses, "warehouse");
    let warehouses = report.sample().unwrap_or_else(all);
    let (checks, took) = (report.checked.len(), time(took));
    let verdict = match report.findings.len() {
        0 => "all rules hold".to_owned(),
        1 => "1 rule is violated".to_owned(),
        many => format!("{many} rules are violated"),
    };
    let name = target.name();
    writeln!(
        out,
        "{name}: {warehouses}, {what}; {checks} checks, {took}: {verdict}"
    )?;
    for finding in &report.findings {
        let Finding {
            clause,
            rule,
            count,
            examples,
        } = finding;
        writeln!(out, "  {clause}  {rule}")?;
        for example in examples {
            writeln!(out, "      {example}")?;
        }
        if *count > examples.len() as u64 {
            writeln!(out, "      and {} more", count - examples.len() as u64)?;
        }
    }
    Ok(())
}

fn as_json(target: &Target, report: &Report, took: Duration) -> serde_json::Value {
    let Report {
        loaded,
        after_load,
        sampled,
        checked,
        findings,
    } = report;
    let checked = checked.iter().map(|CheckedRule { clause, rule, took }| {
        json!({ "clause": clause, "rule": rule, "seconds": took.as_secs_f64() })
    });
    let findings = findings.iter().map(
        |Finding {
             clause,
             rule,
             count,
             examples,
         }| {
            json!({ "clause": clause, "rule": rule, "count": count, "examples": examples })
        },
    );
    json!({
        "database": target.name(),
        "warehouses": loaded.warehouses,
        "seed": loaded.origin.map(|origin| origin.seed),
        "after_load": after_load,
        "sampled": (!sampled.is_empty()).then_some(sampled),
        "seconds": took.as_secs_f64(),
        "checked": checked.collect::<Vec<_>>(),
        "findings": findings.collect::<Vec<_>>(),
    })
}
