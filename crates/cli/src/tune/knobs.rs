//! `saiga tune knobs`.

use std::process::ExitCode;

use saiga_document::table::Table;
use saiga_tune::advice;
use saiga_tune::knobs;

use crate::print::print_text;

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Describe this knob
    #[arg(value_name = "KNOB")]
    id: Option<String>,
}

pub(super) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    match &args.id {
        None => print_text(&list())?,
        Some(id) => print_text(&describe(id)?)?,
    }
    Ok(ExitCode::SUCCESS)
}

fn list() -> String {
    let mut table = Table::new(["knob", "risk", "proposed", "purpose"]);
    for knob in knobs::registry() {
        table.row([
            knob.id.to_owned(),
            knob.risk.to_string(),
            knob.default.to_owned(),
            knob.purpose.to_owned(),
        ]);
    }
    let mut advice_table = Table::new(["advice only", "check"]);
    for entry in advice::entries() {
        advice_table.row([entry.id.to_owned(), entry.check.to_owned()]);
    }
    format!("{table}\n{advice_table}")
}

fn describe(id: &str) -> anyhow::Result<String> {
    let Some(knob) = knobs::knob(id) else {
        match knobs::nearest(id) {
            Some(nearest) => anyhow::bail!("unknown knob `{id}`; the nearest is `{nearest}`"),
            None => anyhow::bail!("unknown knob `{id}`; `saiga tune knobs` lists them"),
        }
    };
    Ok(format!(
        "{}: {}\nwhy: {}\neffect: {}\nproposed: {}\nrisk: {}\nsource: {}\n",
        knob.id, knob.purpose, knob.reason, knob.effect, knob.default, knob.risk, knob.source
    ))
}
