//! `saiga streams`: write-lifetime labels for SSDs, and what they would be worth.

mod simulate;

use std::process::ExitCode;

/// Options of `saiga streams`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, clap::Subcommand)]
enum Verb {
    /// Predicts write amplification on a simulated SSD
    Simulate(simulate::Args),
}

/// Does what is asked.
pub(crate) fn run(args: Args) -> anyhow::Result<ExitCode> {
    match args.verb {
        Verb::Simulate(args) => simulate::run(&args),
    }
}
