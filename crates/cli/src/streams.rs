//! `saiga streams`: gives database files write-lifetime hints, records writes, and simulates SSDs.

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
    /// Labels the files of databases with write-lifetime hints, in the foreground
    Run(run::Args),
    /// Stops the labeller of a directory, or all labellers
    Stop(stop::Args),
    /// Prints a systemd unit for a labeller without root, or installs or removes the unit
    Unit(unit::Args),
    /// Shows the present and the expected hint of every file, and whether hints reach the drive
    Check(check::Args),
    /// Prints a rule set as TOML, or lists the built-in sets
    Rules(rules::Args),
    /// Records the blocks that a database writes, and the files they belong to, for `simulate`
    Record(Box<record::Args>),
    /// Proposes rules from the measured lifetime of the pages of each file
    Suggest(suggest::Args),
    /// Predicts write amplification on a simulated SSD
    Simulate(simulate::Args),
}

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

fn print_text(text: &str) -> anyhow::Result<()> {
    Ok(std::io::stdout().write_all(text.as_bytes())?)
}

fn print_json(value: &serde_json::Value) -> anyhow::Result<()> {
    print_text(&(serde_json::to_string_pretty(value)? + "\n"))
}

/// Returns the route of hints from one directory as JSON.
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
