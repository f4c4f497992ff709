//! `saiga bench tpcc`: TPC-C on the tables of BenchmarkSQL 5, with its props files or options.
//!
//! Each step has a module: `build` creates and loads the tables, `check` compares them with the
//! specification, `run` puts load on them, and `destroy` drops them. The step `merge`, which adds
//! up the results of several load hosts, is in `run`. Without a step, `whole` runs all steps on
//! SQLite.

mod build;
mod check;
mod destroy;
mod direct;
mod progress;
mod run;
mod target;
mod whole;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Subcommand;

/// Options of `saiga bench tpcc`.
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(super) struct Args {
    #[command(subcommand)]
    step: Option<Step>,
    /// Without a step, all steps run on SQLite: directory of its file (default: a temporary one)
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
enum Step {
    /// Creates the tables and loads the rows
    Build(build::Args),
    /// Checks whether the tables comply with the TPC-C rules
    Check(check::Args),
    /// Puts load on the tables and measures it
    Run(Box<run::Args>),
    /// Adds up the results of several load hosts
    Merge(run::MergeArgs),
    /// Drops the tables
    Destroy(destroy::Args),
}

/// Runs the given step, or all steps if none is given.
pub(super) fn run(args: Args) -> anyhow::Result<ExitCode> {
    match args.step {
        Some(Step::Build(args)) => build::run(&args),
        Some(Step::Check(args)) => check::run(&args),
        Some(Step::Run(args)) => run::run(&args),
        Some(Step::Merge(args)) => run::merge_parts(&args),
        Some(Step::Destroy(args)) => destroy::run(&args),
        None => whole::run(args.out.as_deref()),
    }
}
