//! `saiga tune undo`.

use std::process::ExitCode;

use saiga_process::root::Root;
use saiga_tune::host::LiveHost;
use saiga_tune::undo::{Conflicts, UndoReport, undo};
use serde_json::{Value, json};

use super::JournalDir;
use crate::exit;
use crate::print::{print_json, print_text};

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Undo does not change a value that another program has set since; it can be repeated. Exit status: 1 when something is left to undo.")]
pub(super) struct Args {
    /// The id that `apply` printed; the beginning is enough
    id: String,
    /// Leave values that other programs changed, and values that cannot be restored, and count the
    /// plan as undone
    #[arg(long)]
    accept_others: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    journal: JournalDir,
}

pub(super) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let mut host = LiveHost::new(Root::host());
    let mut store = args.journal.lock()?;
    let conflicts = if args.accept_others {
        Conflicts::Accept
    } else {
        Conflicts::Report
    };
    let report = undo(&args.id, &mut host, &mut store, conflicts)?;
    if args.json {
        print_json(&as_json(&report))?;
    } else {
        print_text(&text(&report))?;
    }
    if let Some(error) = &report.journal_error {
        exit::say(&format!("the journal cannot be written: {error}"));
    }
    if report.is_complete {
        return Ok(ExitCode::SUCCESS);
    }
    exit::say(
        "not everything is undone; repeat it, or leave other programs' values with --accept-others",
    );
    Ok(ExitCode::from(exit::NO))
}

fn text(report: &UndoReport) -> String {
    let mut text = String::new();
    for step in &report.steps {
        text += &format!("{}: {}\n", step.name, step.outcome);
        for note in &step.notes {
            text += &format!("  {note}\n");
        }
    }
    if report.is_complete {
        text += "undone\n";
    }
    text
}

fn as_json(report: &UndoReport) -> Value {
    let steps = report.steps.iter().map(|step| {
        json!({
            "name": step.name,
            "outcome": step.outcome.to_string(),
            "is_done": step.outcome.is_done(),
            "notes": step.notes,
        })
    });
    json!({
        "id": report.id,
        "steps": steps.collect::<Vec<_>>(),
        "is_complete": report.is_complete,
    })
}
