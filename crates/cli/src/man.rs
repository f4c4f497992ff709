//! `saiga man`: manual pages, generated from the definition of the command line.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use clap::CommandFactory;

use crate::args::Cli;

/// Options of `saiga man`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Write saiga.1 and one page for each verb into this directory
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

/// Prints saiga(1), or writes all pages.
pub(crate) fn run(args: Args) -> anyhow::Result<ExitCode> {
    match args.out {
        Some(folder) => clap_mangen::generate_to(Cli::command(), &folder).with_context(|| {
            format!(
                "cannot write manual pages into {}; create the directory first",
                folder.display()
            )
        })?,
        None => {
            let mut page = Vec::new();
            clap_mangen::Man::new(Cli::command()).render(&mut page)?;
            std::io::stdout().write_all(&page)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}
