//! `saiga bench tpcc`: TPC-C on the tables of BenchmarkSQL 5, from its props files.
//!
//! Each step of the job is a module: `build` makes and loads the tables, `check` says whether
//! they are what the specification wants, `run` puts load on them, `destroy` drops them; `merge` adds
//! up what several load hosts have measured.

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
    /// Without a step the whole job is done on SQLite: folder for its file (default: a private one
    /// that is removed)
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

/// One step of the job.
#[derive(Debug, Subcommand)]
enum Step {
    /// Makes the tables and loads them
    Build(build::Args),
    /// Says whether the tables hold what TPC-C wants
    Check(check::Args),
    /// Puts load on the tables and measures it
    Run(Box<run::Args>),
    /// Adds up what several load hosts have measured
    Merge(run::MergeArgs),
    /// Drops the tables
    Destroy(destroy::Args),
}

/// Runs one step, or the whole job.
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
