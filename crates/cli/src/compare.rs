//! `saiga compare`.

use std::process::ExitCode;

/// Options of `saiga compare`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {}

/// Refuses: this build has no workload.
pub(crate) fn run(_args: Args) -> anyhow::Result<ExitCode> {
    anyhow::bail!("compare: this build contains no workload")
}
