//! `saiga status`.

use std::process::ExitCode;

/// Options of `saiga status`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {}

/// Replaced within the hour.
pub(crate) fn run(_args: Args) -> anyhow::Result<ExitCode> {
    anyhow::bail!("status: not in this build")
}
