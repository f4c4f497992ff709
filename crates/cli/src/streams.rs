//! `saiga streams`: write-lifetime hints on the files of a database, what becomes of them, and what
//! they would be worth.

mod check;
mod elsewhere;
mod log;
mod notify;
mod record;
mod rules;
mod run;
mod simulate;
mod stderr;
mod stop;
mod suggest;
mod suggested;
mod trace_file;
mod unit;

use std::io::Write as _;
use std::process::ExitCode;

/// Options of `saiga streams`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, clap::Subcommand)]
enum Verb {
    /// Labels the files of databases as they appear, until it is ended
    Run(run::Args),
    /// Ends the labeller of a directory, or all
    Stop(stop::Args),
    /// Prints a systemd unit for a labeller without root, or installs or removes it
    Unit(unit::Args),
    /// Shows the hint that every file has and should have, and whether hints reach the drive
    Check(check::Args),
    /// Prints a set of rules as TOML, or lists the sets that are built in
    Rules(rules::Args),
    /// Records which blocks a database writes, and of which of its files, for `simulate`
    Record(Box<record::Args>),
    /// Proposes rules from how long the pages of each file lived
    Suggest(suggest::Args),
    /// Predicts write amplification on a simulated SSD
    Simulate(simulate::Args),
}

/// Does what is asked.
pub(crate) fn run(args: Args) -> anyhow::Result<ExitCode> {
    match args.verb {
        Verb::Run(args) => run::run(args),
        Verb::Stop(args) => stop::run(&args),
        Verb::Unit(args) => unit::run(&args),
        Verb::Check(args) => check::run(&args),
        Verb::Rules(args) => rules::run(&args),
        Verb::Record(args) => record::run(*args),
        Verb::Suggest(args) => suggest::run(&args),
        Verb::Simulate(args) => simulate::run(&args),
    }
}

fn tell(text: &str) -> anyhow::Result<()> {
    Ok(std::io::stdout().write_all(text.as_bytes())?)
}

fn tell_json(value: &serde_json::Value) -> anyhow::Result<()> {
    tell(&(serde_json::to_string_pretty(value)? + "\n"))
}

/// What becomes of hints in one directory, as JSON.
fn report_json(report: &saiga_streams::route::Report) -> serde_json::Value {
    serde_json::json!({
        "dir": report.dir.display().to_string(),
        "mount": report.mount.point.display().to_string(),
        "file_system": report.mount.kind,
        "disk": report.disk.as_ref().map(|disk| &disk.name),
        "max_write_streams": report.disk.as_ref().and_then(|disk| disk.max_write_streams),
        "kernel": report.kernel.to_string(),
        "route": report.route.name(),
        "reaches": report.reach.name(),
        "why": report.why,
        "notes": report.notes,
    })
}
