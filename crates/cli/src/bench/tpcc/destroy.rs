//! `saiga bench tpcc destroy`: drops the tables.

use std::io::{IsTerminal, Write};
use std::process::ExitCode;

use anyhow::{Context, bail};
use saiga_tpcc::build::owner;
use saiga_tpcc::destroy;
use saiga_tpcc::state::State;
use saiga_tpcc::table::Table;

use super::target::{OwnSql, Target, Targets};
use saiga_document::number::counted;

/// Options of `saiga bench tpcc destroy`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    targets: Targets,
    #[command(flatten)]
    own_sql: OwnSql,
    /// Drop the tables without asking for confirmation
    #[arg(long)]
    yes: bool,
}

pub(super) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    for target in args.targets.all()? {
        let dropped = drop_tables(&target, args).with_context(|| target.name())?;
        writeln!(std::io::stdout(), "{}: {dropped}", target.name())?;
    }
    Ok(ExitCode::SUCCESS)
}

fn drop_tables(target: &Target, args: &Args) -> anyhow::Result<String> {
    let own_sql = args.own_sql.of(&target.props)?;
    let mut session = target.open_existing()?;
    let db = &target.props.db;
    let owner = owner::current();
    let Some(plan) = destroy::plan(&mut *session, own_sql.as_deref(), db, &owner)? else {
        return Ok("no tables exist".to_owned());
    };
    let what = describe(&plan.state);
    if !args.yes && !is_confirmed(target, &what)? {
        return Ok(format!("not dropped: {what}"));
    }
    plan.drop_all(&mut *session)?;
    Ok(format!("dropped {what}, by {}", plan.source()))
}

/// Describes the tables that a database in this state has.
fn describe(state: &State) -> String {
    match state {
        State::Complete(loaded) => {
            format!(
                "the 10 tables of TPC-C with {}",
                counted(loaded.warehouses, "warehouse")
            )
        }
        State::InProgress(progress) => {
            let warehouses = counted(progress.info.warehouses, "warehouse");
            format!("the 10 tables of TPC-C, an incomplete load of {warehouses}")
        }
        State::TablesMissing { missing } => {
            let all = Table::ALL
                .into_iter()
                .filter(|table| !missing.contains(table));
            Table::list(&all.collect::<Vec<_>>())
        }
        State::ConfigEmpty => "the 10 empty tables of TPC-C".to_owned(),
        State::Empty { .. } | State::Unidentified { .. } => "nothing".to_owned(),
    }
}

/// Asks the user for confirmation. Fails if stdin is not a terminal.
fn is_confirmed(target: &Target, what: &str) -> anyhow::Result<bool> {
    if !std::io::stdin().is_terminal() {
        bail!("this would drop {what}; confirm with --yes");
    }
    write!(std::io::stderr(), "{}: drop {what}? [y/N] ", target.name())?;
    let mut answer = String::new();
    std::io::stdin().read_line(&mut answer)?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}
