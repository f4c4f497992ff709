//! `saiga config`.

use std::process::ExitCode;

/// Options of `saiga config`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {}

/// Replaced within the hour.
pub(crate) fn run(_args: Args) -> anyhow::Result<ExitCode> {
    anyhow::bail!("config: not in this build")
}
