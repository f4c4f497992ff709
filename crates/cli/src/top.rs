//! `saiga top`.

use std::process::ExitCode;

/// Options of `saiga top`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {}

/// Replaced within the hour.
pub(crate) fn run(_args: Args) -> anyhow::Result<ExitCode> {
    anyhow::bail!("top: not in this build")
}
