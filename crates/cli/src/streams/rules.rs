//! `saiga streams rules`: what is built in, and what a file says once it is read.

use std::process::ExitCode;

use saiga_streams::rules::{self, Rules, builtin};
use serde_json::{Value, json};

use super::{tell, tell_json};
use crate::exit;
use crate::table::Table;

/// Options of `saiga streams rules`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "The first rule that matches a file decides. Paths are globs relative to the database's directory: `*` stays \
within one name, `**` does not. Hints: short, medium, long, extreme, none.\nExit status: 2 when the rules cannot be read."
)]
pub(super) struct Args {
    /// A built-in set, or a file: TOML when it ends in .toml, else astream's grammar
    #[arg(value_name = "NAME|FILE")]
    name: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Prints rules.
pub(super) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let Some(name) = &args.name else {
        return list(args.json);
    };
    let (rules, warnings) = rules::load(name)?;
    for warning in &warnings {
        exit::say(&format!("warning: {warning}"));
    }
    if args.json {
        tell_json(&as_json(name, &rules))?;
    } else {
        tell(&rules.to_toml())?;
    }
    Ok(ExitCode::SUCCESS)
}

fn list(json: bool) -> anyhow::Result<ExitCode> {
    let sets = builtin::names().into_iter();
    let sets: Vec<(&str, Rules)> = sets
        .filter_map(|name| Some((name, builtin::find(name)?)))
        .collect();
    if json {
        let sets = sets.iter().map(|(name, rules)| as_json(name, rules));
        tell_json(&Value::Array(sets.collect()))?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut table = Table::new(["set", "rules", "for"]);
    for (name, rules) in sets {
        let about = rules.about.unwrap_or_default();
        table.row([name.to_owned(), rules.rules.len().to_string(), about]);
    }
    tell(&table.to_string())?;
    Ok(ExitCode::SUCCESS)
}

fn as_json(name: &str, rules: &Rules) -> Value {
    let rows = rules.rules.iter().map(|rule| {
        json!({
            "path": rule.pattern.to_string(),
            "is_regex": rule.pattern.is_search(),
            "hint": rule.hint.name(),
            "why": rule.why,
            "stream": rule.stream,
            "force": rule.force,
            "line": rule.origin.line,
        })
    });
    json!({
        "name": name,
        "about": rules.about,
        "rules": rows.collect::<Vec<_>>(),
    })
}
