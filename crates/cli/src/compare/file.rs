//! `saiga compare FILE.toml`: a campaign from an experiment file.
//!
//! The keys of the file are in `saiga_experiment::file`.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use saiga_experiment::campaign::Claim;
use saiga_experiment::file::Experiment;
use saiga_experiment::result::{ExperimentResult, Verdict};
use saiga_job::{Job, ThisMachine};
use saiga_program::library;

use crate::exit;

use super::finish::{self, Description};
use super::options::{Common, Expectation, FileArgs};
use super::plan::this_tool;
use super::{conduct, out, probe};

/// Directory of the files of each run, beside `result.json`.
const RUNS: &str = "runs";

/// Runs the campaign, or prints its steps.
pub(super) fn run(args: FileArgs) -> anyhow::Result<ExitCode> {
    let file = Experiment::read(&args.file, &args.set)?;
    campaign(file, args.common)
}

/// Like [`run`], for an experiment that did not come from a file.
pub(crate) fn campaign(file: Experiment, common: Common) -> anyhow::Result<ExitCode> {
    campaign_by(this_tool()?, file, common, Prepared::default())
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
    mut common: Common,
    prepared: Prepared,
) -> anyhow::Result<ExitCode> {
    file.plan.max_foreign_cores = common.pace.max_foreign.or(file.plan.max_foreign_cores);
    let library = library::find().ok();
    if common.pace.pairs.is_none() {
        common.stopping.until = common.stopping.until.or(file.plan.until);
    }
    let pairs = common
        .stopping
        .pairs(common.pace.pairs.unwrap_or(file.plan.pairs));
    let given = common.pace.seed.or(file.plan.seed);
    let seed = common.stopping.seed(given, common.out.as_deref())?;
    let describe = |job: &Job| {
        let plan = job.plan(pairs, seed);
        common.stopping.check(&plan.cells).map(|()| plan)
    };
    if common.dry_run {
        let job = Job::described(file, tool, library.as_deref())?;
        let text = saiga_job::dry_run(&job, &describe(&job)?, &ThisMachine);
        std::io::stdout().lock().write_all(text.as_bytes())?;
        return Ok(ExitCode::SUCCESS);
    }
    let out = out(&common)?;
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
    let (result, verdict) = conduct(&job, &plan, &common, out, description, prepared.claim)?;
    judge(job.file(), &common, &result, verdict)
}

/// Prints which expectations are not met.
fn judge(
    file: &Experiment,
    common: &Common,
    result: &ExperimentResult,
    verdict: Verdict,
) -> anyhow::Result<ExitCode> {
    let expected = file.expectations.iter();
    let mut unmet: Vec<String> = expected.flat_map(|one| one.unmet(result)).collect();
    if common.expect == Some(Expectation::Faster) {
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
