//! `saiga compare`: kernel TCP, AF_UNIX and Saiga on this machine, in pairs.
//!
//! Prints the result to stdout, writes `result.json` and `report.html` into `--out`.
//! Exit 1 when `--expect faster` is not met. A first Ctrl-C keeps what was measured.

mod finish;
mod options;
mod plan;
pub(crate) mod probe;
mod progress;

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, bail};
use saiga_experiment::arm::ArmKind;
use saiga_experiment::interrupt::Interrupt;
use saiga_experiment::plan::Plan;
use saiga_experiment::result::Verdict;
use saiga_experiment::workload::Workload;
use saiga_experiment::{engine, output};
use saiga_redis::{RedisArm, RedisWorkload};
use saiga_sql::SqlWorkload;

use crate::exit;
use options::Expectation;
pub(crate) use options::{Args, ArmName, EngineName, HogName, TestName, TopologyName, seconds};
pub(crate) use plan::{
    arm_kinds, check_arms, check_connections, check_idle, check_test, raise_descriptor_limit,
    this_tool,
};
use progress::Progress;

/// Runs the comparison, or with `--dry-run` says what it would run.
pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    match args.workload.as_str() {
        "redis" => redis(args),
        "sql" => sql(args),
        other => {
            bail!("compare {other}: not in this version; `saiga compare redis` and `sql` are")
        }
    }
}

fn redis(args: &Args) -> anyhow::Result<ExitCode> {
    if !args.engine.is_empty() {
        bail!("--engine is for `saiga compare sql`");
    }
    let topology = args.topology();
    plan::check_arms(args.arms(), topology)?;
    let plan = plan::redis(args)?;
    let loads = plan.cells.iter().map(|cell| &cell.load);
    plan::check_idle(args.idle, args.arms(), loads)?;
    let arms = redis_arms(args)?;
    if args.dry_run {
        let workload = RedisWorkload::without_programs(arms, topology, args.port, this_tool()?);
        return plan::print_steps(&workload, &plan);
    }
    let out = out(args)?;
    let probe = Some(probe::status_pages());
    let workload = RedisWorkload::new(arms, topology, args.port, this_tool()?, probe)?;
    experiment(&workload, &plan, args, out)
}

fn sql(args: &Args) -> anyhow::Result<ExitCode> {
    if args.idle > 0 {
        bail!("--idle is for `saiga compare redis`");
    }
    let engines = plan::engines(args)?;
    let (plan, window) = plan::sql(args, &engines)?;
    let kinds = arms(args)?;
    if args.dry_run {
        let workload = SqlWorkload::without_programs(&engines, &kinds, args.port, window);
        return plan::print_steps(&workload, &plan);
    }
    let out = out(args)?;
    let probe = Some(probe::status_pages());
    let workload = SqlWorkload::new(&engines, &kinds, args.port, window, probe)?;
    experiment(&workload, &plan, args, out)
}

/// Every arm, with `--idle` each without idle connections and beside them.
fn redis_arms(args: &Args) -> anyhow::Result<Vec<RedisArm>> {
    if args.idle == 0 {
        return Ok(RedisArm::named(&arms(args)?));
    }
    let plain = RedisArm::named(&arm_kinds(args.arms())?);
    let both = |arm: RedisArm| {
        let beside = arm.beside(args.idle);
        [arm, beside]
    };
    Ok(plain.into_iter().flat_map(both).collect())
}

fn arms(args: &Args) -> anyhow::Result<Vec<ArmKind>> {
    let kinds = arm_kinds(args.arms())?;
    if kinds.len() < 2 {
        bail!("--arms needs two arms at least, such as kernel,saiga");
    }
    Ok(kinds)
}

fn out(args: &Args) -> anyhow::Result<&Path> {
    match &args.out {
        Some(out) => Ok(out),
        None => bail!("--out DIR is missing: the folder for result.json and report.html"),
    }
}

/// Runs a plan, writes what came out, and says what holds.
fn experiment<W: Workload>(
    workload: &W,
    plan: &Plan<W::Load>,
    args: &Args,
    out: &Path,
) -> anyhow::Result<ExitCode> {
    output::claim_folder(out)?;
    raise_descriptor_limit();
    let interrupt = Interrupt::on_signals().context("cannot watch for Ctrl-C")?;
    let mut progress = Progress::new(plan);
    let outcome = engine::execute(workload, plan, &interrupt, &mut |event| progress.on(&event))?;
    progress.finish();
    let stopped = outcome.stopped.clone();
    let (result, verdict) = finish::result(workload, plan, outcome, args);
    finish::write(&result, out, args.json)?;
    if let Some(reason) = stopped {
        bail!(
            "{reason}; what was measured until then is in {}",
            out.display()
        );
    }
    if result.headline.is_empty() {
        let reason = finish::first_cause(&result);
        bail!(
            "no pair of runs counts ({}); all runs are in {}",
            reason.unwrap_or("none was made"),
            out.display()
        );
    }
    match args.expect {
        Some(Expectation::Faster) if verdict != Verdict::Faster => {
            exit::say("expected faster, and the headline comparison does not show it");
            Ok(ExitCode::from(exit::NO))
        }
        Some(Expectation::Faster) | None => Ok(ExitCode::SUCCESS),
    }
}
