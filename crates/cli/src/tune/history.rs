//! `saiga tune history`.

use std::process::ExitCode;

use anyhow::Context as _;
use saiga_document::table::Table;
use saiga_process::root::Root;
use saiga_tune::history::{Entry, history};
use saiga_tune::host::{Host as _, LiveHost};
use saiga_tune::journal::State;
use serde_json::json;

use super::JournalDir;
use crate::exit;
use crate::print::{print_json, print_text};

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    journal: JournalDir,
}

pub(super) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let dir = &args.journal.dir;
    let entries = history(&args.journal.read_only())
        .with_context(|| format!("cannot read {}", dir.display()))?;
    let boot = LiveHost::new(Root::host()).boot_id().unwrap_or_default();
    let state = |entry: &Entry| state(entry, entry.boot == boot);
    if args.json {
        let all = entries.iter().map(|entry| {
            json!({
                "id": entry.id,
                "applied_unix_s": entry.at_s,
                "steps": entry.steps,
                "to_undo": entry.open,
                "state": state(entry),
            })
        });
        print_json(&all.collect::<Vec<_>>())?;
        return Ok(ExitCode::SUCCESS);
    }
    if entries.is_empty() {
        exit::say(&format!("no plan was applied ({})", dir.display()));
        return Ok(ExitCode::SUCCESS);
    }
    let mut table = Table::new(["id", "applied", "steps", "to undo", "state"]);
    for entry in entries {
        let state = state(&entry);
        table.row([
            entry.id,
            entry.at_s.map_or_else(|| "-".to_owned(), at),
            entry.steps.to_string(),
            entry.open.to_string(),
            state,
        ]);
    }
    print_text(&table.to_string())?;
    Ok(ExitCode::SUCCESS)
}

/// The state in words, or the error of a damaged journal.
fn state(entry: &Entry, is_this_boot: bool) -> String {
    let state = match &entry.state {
        Ok(state) => state,
        Err(error) => return error.clone(),
    };
    let text = match state {
        State::Nothing => "nothing was changed",
        State::Interrupted => "interrupted: undo it",
        State::Unconfirmed if is_this_boot => "waits to be confirmed",
        State::Unconfirmed => "not confirmed before the restart: undo it",
        State::Applied => "applied",
        State::PartlyUndone => "partly undone: repeat the undo",
        State::Conflicts => "undone, except for values of other programs",
        State::Undone => "undone",
    };
    text.to_owned()
}

fn at(unix_s: u64) -> String {
    let time = std::time::UNIX_EPOCH + std::time::Duration::from_secs(unix_s);
    humantime::format_rfc3339_seconds(time).to_string()
}
