//! `saiga bench`.

use std::process::ExitCode;

/// Options of `saiga bench`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {}

/// Refuses: this build has no workload.
pub(crate) fn run(_args: Args) -> anyhow::Result<ExitCode> {
    anyhow::bail!("bench: this build contains no workload")
}
