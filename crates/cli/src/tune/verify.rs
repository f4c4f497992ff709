//! `saiga tune verify`.

use std::path::Path;
use std::process::ExitCode;

use saiga_process::root::Root;
use saiga_tune::host::LiveHost;
use saiga_tune::verify::{verify, verify_plan};
use serde_json::json;

use super::{JournalDir, read_plan};
use crate::exit;
use crate::print::{print_json, print_text};

#[derive(Debug, clap::Args)]
#[command(after_help = "Changes nothing. Exit status: 1 when a value differs.")]
pub(super) struct Args {
    /// A plan file, or the id that `apply` printed
    #[arg(value_name = "FILE|ID")]
    plan: String,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    journal: JournalDir,
}

pub(super) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let host = LiveHost::new(Root::host());
    let path = Path::new(&args.plan);
    let differences = if path.is_file() {
        verify_plan(&read_plan(path)?, &host)
    } else {
        verify(&args.plan, &host, &args.journal.read_only())?
    };
    if args.json {
        let all = differences
            .iter()
            .map(|one| json!({ "name": one.name, "wanted": one.wanted, "found": one.found }));
        print_json(&json!({ "differences": all.collect::<Vec<_>>() }))?;
    } else if differences.is_empty() {
        print_text("all values are as planned\n")?;
    } else {
        let lines: String = differences.iter().map(|one| format!("{one}\n")).collect();
        print_text(&lines)?;
    }
    Ok(if differences.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(exit::NO)
    })
}
