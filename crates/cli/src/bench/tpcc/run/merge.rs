//! `saiga bench tpcc merge`: the parts of several load hosts as one run.
//!
//! If workers are missing, the sum of the others is written and marked as partial, and the exit
//! status is 1, as for every invalid run.

use std::path::PathBuf;
use std::process::ExitCode;

use saiga_tpcc::results::directory::Directory;
use saiga_tpcc::results::{files, merge};

use super::finish::{print, write_page};
use crate::exit;

/// Options of `saiga bench tpcc merge`.
#[derive(Debug, clap::Args)]
pub(in crate::bench::tpcc) struct Args {
    /// Directories with worker-N.json, or such files
    #[arg(value_name = "DIR", required = true)]
    places: Vec<PathBuf>,
    /// New directory for the results, with the page report.html
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Print the record as JSON
    #[arg(long)]
    json: bool,
}

/// Adds up the parts and prints the sum.
pub(in crate::bench::tpcc) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let record = merge::merge(merge::read(&args.places)?)?;
    let dir = args.out.clone().map(Directory::create).transpose()?;
    if let Some(dir) = &dir {
        dir.write("run.properties", &files::run_properties(&record))?;
        files::write_all(dir, &record)?;
    }
    print(&record, None, args.json)?;
    if let Some(dir) = &dir {
        write_page(dir, &record)?;
    }
    if let Some(partial) = &record.partial {
        exit::say(&format!("partial: {}", partial.describe()));
    }
    if let Some(why) = record.early_end() {
        anyhow::bail!("{why}");
    }
    Ok(if record.all_checks_hold() {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(exit::NO)
    })
}
