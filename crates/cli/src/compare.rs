//! `saiga compare`: kernel TCP, AF_UNIX and Saiga on this machine, in pairs.
//!
//! Prints the result to stdout, and writes `result.json` and `report.html` to `--out`. Exit status
//! 1 if `--expect faster` is not met. A first Ctrl-C keeps the finished runs.

mod file;
mod finish;
mod options;
mod outlook;
mod over;
mod plan;
pub(crate) mod probe;
mod progress;
mod stopping;
mod tpcc;
pub(crate) mod words;

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context, bail};
use saiga_experiment::analysis::{percent, widths};
use saiga_experiment::arm::ArmKind;
use saiga_experiment::campaign::{self, Campaign, Claim, Identity};
use saiga_experiment::engine::{self, Decision, Event, Extras, Outcome};
use saiga_experiment::output;
use saiga_experiment::plan::Plan;
use saiga_experiment::result::{ExperimentResult, Run, Verdict};
use saiga_experiment::workload::Workload;
use saiga_process::interrupt::Interrupt;
use saiga_redis::{RedisArm, RedisWorkload};
use saiga_sql::SqlWorkload;

use crate::exit;
use crate::host::{BesideRuns, Host};
use crate::panel::Panel;
pub(crate) use file::campaign;
use finish::Description;
pub(crate) use options::{
    Args, ArmName, Common, EngineName, HogName, TestName, TopologyName, seconds,
};
use options::{Expectation, RedisArgs, SqlArgs, WorkloadArgs};
use outlook::{Outlook, Spreads};
use over::WireName;
pub(crate) use plan::{
    arm_kinds, check_arms, check_clients, check_connections, check_idle, check_rate,
    raise_descriptor_limit, tests, this_tool,
};
use progress::Progress;

/// Runs the comparison, or prints its steps with `--dry-run`.
pub(crate) fn run(args: Args) -> anyhow::Result<ExitCode> {
    match args.workload {
        WorkloadArgs::Redis(args) => redis(&args),
        WorkloadArgs::Sql(args) => sql(&args),
        WorkloadArgs::Tpcc(args) => tpcc::run(*args),
        WorkloadArgs::File(args) => file::run(*args),
    }
}

fn redis(args: &RedisArgs) -> anyhow::Result<ExitCode> {
    let (topology, common) = (args.topology(), &args.common);
    plan::check_arms(args.arms(), topology)?;
    let plan = plan::redis(args)?;
    let loads = plan.cells.iter().map(|cell| &cell.load);
    plan::check_idle(args.idle, args.arms(), loads)?;
    let arms = redis_arms(args)?;
    if common.dry_run {
        let workload = RedisWorkload::without_programs(arms, topology, args.port, this_tool()?);
        return plan::print_steps(&workload, &plan, &announcements(&workload, &plan, common)?);
    }
    if args.over.is_some() {
        over::check_rights()?;
    }
    let out = out(common)?;
    let probe = Some(probe::status_pages());
    let workload = RedisWorkload::new(arms, topology, args.port, this_tool()?, probe)?;
    experiment("redis", &workload, &plan, common, out)
}

fn sql(args: &SqlArgs) -> anyhow::Result<ExitCode> {
    let common = &args.common;
    let engines = plan::engines(args)?;
    let (plan, window) = plan::sql(args, &engines)?;
    let hosts = args.over.map(WireName::over).transpose()?;
    let kinds = match hosts {
        Some(_) => over::kinds(args.arms())?,
        None => at_least_two(kinds(args.arms(), &args.arms.library)?)?,
    };
    if common.dry_run {
        let workload = SqlWorkload::without_programs(&engines, &kinds, args.port, hosts, window);
        return plan::print_steps(&workload, &plan, &announcements(&workload, &plan, common)?);
    }
    if hosts.is_some() {
        over::check_rights()?;
    }
    let out = out(common)?;
    let probe = Some(probe::status_pages());
    let workload = SqlWorkload::new(&engines, &kinds, args.port, hosts, window, probe)?;
    experiment("sql", &workload, &plan, common, out)
}

/// All arms; with `--idle` each without and with idle connections.
fn redis_arms(args: &RedisArgs) -> anyhow::Result<Vec<RedisArm>> {
    if let Some(wire) = args.over {
        return wire.arms(args.arms(), args.topology());
    }
    let kinds = kinds(args.arms(), &args.arms.library)?;
    if args.idle == 0 {
        return Ok(RedisArm::named(&at_least_two(kinds)?));
    }
    let both = |arm: RedisArm| {
        let beside = arm.with_idle(args.idle);
        [arm, beside]
    };
    Ok(RedisArm::named(&kinds).into_iter().flat_map(both).collect())
}

fn at_least_two(kinds: Vec<ArmKind>) -> anyhow::Result<Vec<ArmKind>> {
    if kinds.len() < 2 {
        bail!("--arms needs at least two arms, such as kernel,saiga");
    }
    Ok(kinds)
}

/// The arms of `--arms`, then those of `--library`.
fn kinds(arms: &[ArmName], libraries: &[PathBuf]) -> anyhow::Result<Vec<ArmKind>> {
    let named = arm_kinds(arms)?;
    let builds = plan::builds(libraries, &named)?;
    Ok([named, builds].concat())
}

fn out(common: &Common) -> anyhow::Result<&Path> {
    match &common.out {
        Some(out) => Ok(out),
        None => bail!("give --out DIR, the directory for result.json and report.html"),
    }
}

/// Sentences about the comparison before it runs.
fn announcements<W: Workload>(
    workload: &W,
    plan: &Plan<W::Load>,
    common: &Common,
) -> anyhow::Result<Vec<String>> {
    let mut known = Vec::new();
    if let Some(until) = common.stopping.until() {
        known.push(format!(
            "at most {} pairs, fewer if every interval is within {} %",
            plan.pairs,
            percent(until.half_width)
        ));
    }
    let recorded = match &common.out {
        Some(out) => campaign::recorded(out)?,
        None => None,
    };
    let runs = recorded.map_or_else(Vec::new, |recorded| recorded.runs);
    known.extend(outlook(workload, plan, common, &runs));
    Ok(known)
}

/// The precision that the pairs will give, from the assumed spread or from recorded runs.
fn outlook<W: Workload>(
    workload: &W,
    plan: &Plan<W::Load>,
    common: &Common,
    runs: &[Run],
) -> Option<String> {
    let shown = || {
        Spreads::of(&widths(
            &workload.metrics(),
            &workload.arms(),
            &finish::described(plan),
            runs,
        ))
    };
    let spreads = Spreads::assumed(&common.stopping).or_else(shown)?;
    Some(Outlook::new(&common.stopping, plan.pairs).sentence(&spreads))
}

/// Opens or creates the campaign of this plan in `out`, unless `claim` already holds it. With
/// --resume, prints how many runs are recorded.
fn campaign_in<W: Workload>(
    workload: &W,
    plan: &Plan<W::Load>,
    common: &Common,
    out: &Path,
    claim: Option<Claim>,
) -> anyhow::Result<Campaign> {
    let until = common.stopping.until();
    let claim = match claim {
        Some(claim) => claim,
        None => Claim::take(out, common.stopping.begin())?,
    };
    let identity = Identity::of(workload, plan, until.as_ref(), &finish::host());
    let campaign = claim.of(&identity)?;
    if common.stopping.resume {
        exit::say(
            &match (campaign.recorded().len(), campaign.was_finished()) {
                (0, _) => format!(
                    "nothing to resume in {}: starting a new campaign",
                    out.display()
                ),
                (runs, true) => format!("all {runs} runs are already recorded"),
                (runs, false) => format!("{runs} runs are already recorded"),
            },
        );
    }
    Ok(campaign)
}

/// Runs the remaining pairs of a plan.
fn run_rest<W: Workload>(
    workload: &W,
    plan: &Plan<W::Load>,
    common: &Common,
    campaign: &mut Campaign,
    load_file: Option<&Path>,
) -> anyhow::Result<Outcome> {
    let interrupt = Interrupt::on_signals().context("cannot watch for Ctrl-C")?;
    let (own, arms, cells) = (workload.metrics(), workload.arms(), finish::described(plan));
    let until = common.stopping.until();
    let host = Arc::new(Host::default());
    let panel = (!common.no_dashboard).then(|| Panel::open(&host)).flatten();
    if let (Some(panel), Some(path)) = (&panel, load_file) {
        panel.follow(path);
    }
    let progress = RefCell::new(Progress::new(plan, until.is_some(), panel));
    let mut said = outlook(workload, plan, common, campaign.recorded());
    said.iter()
        .for_each(|sentence| progress.borrow().say(sentence));
    let mut beside = BesideRuns::new(&host, common.out.as_deref());
    let mut decide = |outcome: &Outcome| {
        if said.is_none() {
            said = outlook(workload, plan, common, &outcome.runs);
            said.iter()
                .for_each(|sentence| progress.borrow().say(sentence));
        }
        let Some(until) = &until else {
            return Decision::Continue;
        };
        let open = until.open(&own, &arms, &cells, outcome);
        progress.borrow_mut().on_check(&open);
        if open.is_empty() {
            Decision::Stop
        } else {
            Decision::Continue
        }
    };
    let extras = Extras {
        decide: Some(&mut decide),
        sequential: until.is_some(),
        campaign: Some(campaign),
        observer: Some(&mut beside),
    };
    let mut on = |event: Event<'_>| progress.borrow_mut().on(&event);
    let outcome = engine::execute_with(workload, plan, extras, &interrupt, &mut on)?;
    progress.into_inner().finish();
    beside
        .problem()
        .iter()
        .for_each(|problem| exit::say(problem));
    Ok(outcome)
}

/// Runs a plan, and checks the expectation.
fn experiment<W: Workload>(
    name: &str,
    workload: &W,
    plan: &Plan<W::Load>,
    common: &Common,
    out: &Path,
) -> anyhow::Result<ExitCode> {
    let description = Description {
        experiment: name.to_owned(),
        goal: None,
        load_file: None,
        expected: Vec::new(),
    };
    let (_, verdict) = conduct(workload, plan, common, out, description, None)?;
    let expected = common.expect == Some(Expectation::Faster);
    if let Some(what) = finish::unmet(verdict).filter(|_| expected) {
        exit::say(&what);
        return Ok(ExitCode::from(exit::NO));
    }
    Ok(ExitCode::SUCCESS)
}

/// Runs a plan and writes the result; fails if no run of it is valid.
fn conduct<W: Workload>(
    workload: &W,
    plan: &Plan<W::Load>,
    common: &Common,
    out: &Path,
    description: Description,
    claim: Option<Claim>,
) -> anyhow::Result<(ExperimentResult, Verdict)> {
    output::claim_folder(out)?;
    raise_descriptor_limit();
    let mut campaign = campaign_in(workload, plan, common, out, claim)?;
    let load_file = description.load_file.as_deref();
    let outcome = run_rest(workload, plan, common, &mut campaign, load_file)?;
    let stopped = outcome.stopped.clone();
    let (result, verdict) = finish::result(workload, plan, outcome, common, description);
    let written = finish::write(&result, out)?;
    if stopped.is_none() {
        // Not earlier: a new campaign may overwrite the runs of a finished one.
        campaign.finish(engine::now())?;
    }
    finish::print(&written, common)?;
    finish::check_done(&result, stopped.as_deref(), out)?;
    Ok((result, verdict))
}
