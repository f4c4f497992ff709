//! `saiga compare FILE.toml`: a campaign from an experiment file.
//!
//! Options that describe private servers and their loads are refused, because the file describes
//! them. The keys of the file are in `saiga_experiment::file`.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::bail;
use saiga_experiment::campaign::Claim;
use saiga_experiment::file::Experiment;
use saiga_experiment::result::{ExperimentResult, Verdict};
use saiga_job::{Job, ThisMachine};
use saiga_program::library;

use crate::exit;

use super::finish::{self, Description};
use super::options::{Args, Expectation, TopologyName};
use super::plan::this_tool;
use super::{conduct, out, probe};

/// Directory of the files of each run, beside `result.json`.
const RUNS: &str = "runs";

/// Whether the workload on the command line names a file.
pub(super) fn is_file(workload: &str) -> bool {
    Path::new(workload)
        .extension()
        .is_some_and(|end| end == "toml")
        || workload.contains('/')
}

/// Runs the campaign, or prints its steps.
pub(super) fn run(args: Args) -> anyhow::Result<ExitCode> {
    refuse_others(&args)?;
    let file = Experiment::read(Path::new(&args.workload), &args.set)?;
    campaign(file, args)
}

/// Like [`run`], for an experiment that did not come from a file.
pub(super) fn campaign(file: Experiment, args: Args) -> anyhow::Result<ExitCode> {
    campaign_by(this_tool()?, file, args, Prepared::default())
}

/// State of an experiment that did not come from a file.
#[derive(Debug, Default)]
pub(super) struct Prepared {
    /// Its campaign, claimed before its files were written.
    pub(super) claim: Option<Claim>,
    /// Whether this process made the data.
    pub(super) makes_data_anew: bool,
}

/// Like [`campaign`], with a copy of this tool that other users can execute.
pub(super) fn campaign_by(
    tool: PathBuf,
    mut file: Experiment,
    mut args: Args,
    prepared: Prepared,
) -> anyhow::Result<ExitCode> {
    file.plan.max_foreign_cores = args.pace.max_foreign.or(file.plan.max_foreign_cores);
    let library = library::find().ok();
    if args.pace.pairs.is_none() {
        args.stopping.until = args.stopping.until.or(file.plan.until);
    }
    let pairs = args
        .stopping
        .pairs(args.pace.pairs.unwrap_or(file.plan.pairs));
    let given = args.pace.seed.or(file.plan.seed);
    let seed = args.stopping.seed(given, args.out.as_deref())?;
    let describe = |job: &Job| {
        let plan = job.plan(pairs, seed);
        args.stopping.check(&plan.cells).map(|()| plan)
    };
    if args.dry_run {
        let job = Job::described(file, tool, library.as_deref())?;
        let text = saiga_job::dry_run(&job, &describe(&job)?, &ThisMachine);
        std::io::stdout().lock().write_all(text.as_bytes())?;
        return Ok(ExitCode::SUCCESS);
    }
    let out = out(&args)?;
    let job = Job::new(
        file,
        tool,
        library.as_deref(),
        &ThisMachine,
        probe::status_pages(),
        out.join(RUNS),
    )?;
    let job = if prepared.makes_data_anew {
        job.with_generated_data()
    } else {
        job
    };
    let plan = describe(&job)?;
    if let Some(checks) = job.check_time_notice(&plan) {
        exit::say(&checks);
    }
    let description = Description {
        experiment: job.file().name.clone(),
        goal: job.file().goal.clone(),
        load_file: job.load_file(),
        expected: job.file().expectations.clone(),
    };
    let (result, verdict) = conduct(&job, &plan, &args, out, description, prepared.claim)?;
    judge(job.file(), &args, &result, verdict)
}

/// Prints which expectations are not met.
fn judge(
    file: &Experiment,
    args: &Args,
    result: &ExperimentResult,
    verdict: Verdict,
) -> anyhow::Result<ExitCode> {
    let expected = file.expectations.iter();
    let mut unmet: Vec<String> = expected.flat_map(|one| one.unmet(result)).collect();
    if args.expect == Some(Expectation::Faster) {
        unmet.extend(finish::unmet(verdict));
    }
    for what in &unmet {
        exit::say(&format!("expectation not met: {what}"));
    }
    Ok(if unmet.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(exit::NO)
    })
}

/// Refuses options for values that the file sets.
fn refuse_others(args: &Args) -> anyhow::Result<()> {
    let load = args.load.first_load_flag();
    let given = [
        ("--full", args.full),
        ("--engine", !args.engine.is_empty()),
        ("--topology", args.topology != TopologyName::Standalone),
        ("--cluster", args.load.cluster),
        ("--idle", args.idle > 0),
        ("--library", !args.library.is_empty()),
        ("--hog", !args.hog.is_empty()),
        ("--arms", !args.arms.is_empty()),
        ("--only", !args.only.is_empty()),
        ("--port", args.port.is_some()),
        ("--seconds", args.pace.seconds.is_some()),
        ("--requests", args.pace.requests.is_some()),
        (load.unwrap_or(""), load.is_some()),
    ];
    match given.iter().find(|(_, given)| *given) {
        Some((flag, _)) => bail!(
            "{flag} is not allowed here: {} describes the arms and the load",
            args.workload
        ),
        None => Ok(()),
    }
}
