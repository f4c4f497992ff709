//! `saiga bench tpcc destroy`: drops the tables.

use std::io::{IsTerminal, Write};
use std::process::ExitCode;

use anyhow::{Context, bail};
use saiga_tpcc::build::owner;
use saiga_tpcc::destroy;
use saiga_tpcc::state::State;
use saiga_tpcc::table::Table;
use saiga_tpcc::target::Target;

use crate::exit;

use super::target::{OwnSql, Targets};
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
    let mut code = ExitCode::SUCCESS;
    for target in args.targets.all()? {
        match drop_tables(&target, args).with_context(|| target.name())? {
            Answer::Done(what) => writeln!(std::io::stdout(), "{}: {what}", target.name())?,
            Answer::Declined(what) => {
                exit::say(&format!("{}: not dropped: {what}", target.name()));
                code = ExitCode::from(exit::NO);
            }
        }
    }
    Ok(code)
}

/// What was done with the tables of one database.
enum Answer {
    Done(String),
    /// The user was asked and did not confirm.
    Declined(String),
}

fn drop_tables(target: &Target, args: &Args) -> anyhow::Result<Answer> {
    let own_sql = args.own_sql.of(&target.props)?;
    let mut session = target.open_existing()?;
    let db = &target.props.db;
    let owner = owner::current();
    let Some(plan) = destroy::plan(&mut *session, own_sql.as_deref(), db, &owner)? else {
        return Ok(Answer::Done("no tables exist".to_owned()));
    };
    let what = describe(&plan.state);
    if !args.yes && !confirm(target, &what)? {
        return Ok(Answer::Declined(what));
    }
    plan.drop_all(&mut *session)?;
    let source = plan.source();
    Ok(Answer::Done(format!("dropped {what}, by {source}")))
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
fn confirm(target: &Target, what: &str) -> anyhow::Result<bool> {
    if !std::io::stdin().is_terminal() {
        bail!("this would drop {what}; confirm with --yes");
    }
    write!(std::io::stderr(), "{}: drop {what}? [y/N] ", target.name())?;
    let mut answer = String::new();
    std::io::stdin().read_line(&mut answer)?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}
