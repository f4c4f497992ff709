//! `saiga config show`: the settings in force, each with its origin.

use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

use saiga_settings::{Row, SYSTEM_FILE, Settings, Sources};

use crate::exit;
use saiga_document::table::Table;

/// Options of `saiga config`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, clap::Subcommand)]
enum Verb {
    /// Prints each setting with its value and its origin
    Show {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}

pub(crate) fn run(args: Args) -> anyhow::Result<ExitCode> {
    let Verb::Show { json } = args.verb;
    let rows = load()?.rows();
    let text = if json {
        as_json(&rows)?
    } else {
        as_table(&rows)
    };
    std::io::stdout().write_all(text.as_bytes())?;
    Ok(ExitCode::SUCCESS)
}

/// Reads the settings as the library does, and warns of unknown `SAIGA_` variables.
///
/// # Errors
/// Returns the error of the first invalid file or variable.
pub(crate) fn load() -> anyhow::Result<Settings> {
    for name in saiga_settings::unknown_variables(std::env::vars_os().map(|(name, _)| name)) {
        exit::say(&format!(
            "warning: ${name} is not a variable that Saiga reads; see `saiga config show`"
        ));
    }
    let variable = |name: &str| std::env::var_os(name);
    let sources = Sources {
        system_file: Path::new(SYSTEM_FILE),
        variable: &variable,
    };
    Ok(sources.read().0?)
}

fn as_table(rows: &[Row]) -> String {
    let mut table = Table::new(["setting", "value", "origin"]);
    for Row { key, value, origin } in rows {
        table.row([(*key).to_owned(), value.clone(), origin.to_string()]);
    }
    table.to_string()
}

fn as_json(rows: &[Row]) -> anyhow::Result<String> {
    let rows: Vec<_> = rows
        .iter()
        .map(|Row { key, value, origin }| {
            serde_json::json!({ "key": key, "value": value, "origin": origin.to_string() })
        })
        .collect();
    Ok(serde_json::to_string_pretty(&rows)? + "\n")
}
