//! `saiga streams`: gives database files write-lifetime hints, records writes, and simulates SSDs.

mod check;
mod device_options;
mod elsewhere;
mod log;
pub(crate) mod notify;
mod record;
mod rules;
mod run;
mod simulate;
mod stderr;
mod stop;
mod suggest;
mod suggested;
mod trace_file;
mod unit;

use std::process::ExitCode;

/// Options of `saiga streams`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, clap::Subcommand)]
enum Verb {
    /// Labels the files of databases with write-lifetime hints, in the foreground
    Run(run::Args),
    /// Stops the labeller of a directory, or all labellers
    Stop(stop::Args),
    /// Prints a systemd unit for a labeller without root, or installs or removes the unit
    Unit(unit::Args),
    /// Shows the present and the expected hint of every file, and whether hints reach the drive
    Check(check::Args),
    /// Prints a rule set as TOML, or lists the built-in sets
    Rules(rules::Args),
    /// Records the blocks that a database writes, and the files they belong to, for `simulate`
    Record(Box<record::Args>),
    /// Proposes rules from the measured lifetime of the pages of each file
    Suggest(suggest::Args),
    /// Predicts write amplification on a simulated SSD
    Simulate(simulate::Args),
}

pub(crate) fn run(args: Args) -> anyhow::Result<ExitCode> {
    match args.verb {
        Verb::Run(args) => run::run(args),
        Verb::Stop(args) => stop::run(&args),
        Verb::Unit(args) => unit::run(&args),
        Verb::Check(args) => check::run(&args),
        Verb::Rules(args) => rules::run(&args),
        Verb::Record(args) => record::run(*args),
        Verb::Suggest(args) => suggest::run(&args),
        Verb::Simulate(args) => simulate::run(&args),
    }
}
