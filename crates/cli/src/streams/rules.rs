//! `saiga streams rules`: lists the built-in sets, or prints a set or file of rules as parsed.

use std::process::ExitCode;

use saiga_streams::rules::{self, Rules, builtin};
use serde_json::{Value, json};

use crate::exit;
use crate::print::{print_json, print_text};
use saiga_document::table::Table;

/// Options of `saiga streams rules`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "The first matching rule decides. Paths are globs relative to the data directory \
of the database: `*` matches within one name, `**` across directories. Hints: short, medium, long, \
extreme, none.\nExit status: 2 when the rules cannot be read."
)]
pub(super) struct Args {
    /// A built-in set, or a file: TOML if its name ends in .toml, otherwise astream's grammar
    #[arg(value_name = "NAME|FILE")]
    name: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let Some(name) = &args.name else {
        return list(args.json);
    };
    let (rules, warnings) = rules::load(name)?;
    for warning in &warnings {
        exit::say(&format!("warning: {warning}"));
    }
    if args.json {
        print_json(&as_json(name, &rules))?;
    } else {
        print_text(&rules.to_toml())?;
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
        print_json(&Value::Array(sets.collect()))?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut table = Table::new(["set", "rules", "for"]);
    for (name, rules) in sets {
        let about = rules.about.unwrap_or_default();
        table.row([name.to_owned(), rules.rules.len().to_string(), about]);
    }
    print_text(&table.to_string())?;
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
