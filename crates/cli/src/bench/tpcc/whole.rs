//! `saiga bench tpcc` without a step: build, check, run and check on SQLite, without a server.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::ExitCode;
use std::slice;
use std::time::Duration;

use anyhow::Context;
use saiga_process::interrupt::Interrupt;
use saiga_tpcc::target::Target;

use super::run::{Options, run_all};
use super::target::sqlite;
use super::{build, check};
use crate::exit;

/// Measured time of the run.
const LENGTH: Duration = Duration::from_secs(10);

/// Runs all steps in the given directory, or in a temporary one.
pub(super) fn run(out: Option<&Path>) -> anyhow::Result<ExitCode> {
    let interrupt = Interrupt::on_signals().context("cannot watch for Ctrl-C")?;
    let private = match out {
        Some(_) => None,
        None => Some(tempfile::tempdir().context("cannot create a temporary directory")?),
    };
    let folder = out.or(private.as_ref().map(|private| private.path()));
    let folder = folder.unwrap_or(Path::new("."));
    fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
    let target = sqlite(&folder.join("tpcc.db"), 1)?;
    let all_hold = job(&target, &interrupt).with_context(|| target.name())?;
    Ok(if all_hold {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(exit::NO)
    })
}

fn job(target: &Target, interrupt: &Interrupt) -> anyhow::Result<bool> {
    let built = build::build(target, &build::Args::to_completion(), interrupt)?;
    writeln!(std::io::stdout(), "{}: {built}", target.name())?;
    if !check::check(target, &check::Args::default(), interrupt)? {
        return Ok(false);
    }
    let options = Options::of_whole_job(LENGTH);
    let valid = run_all(slice::from_ref(target), &options, interrupt)?;
    Ok(valid & check::check(target, &check::Args::default(), interrupt)?)
}
