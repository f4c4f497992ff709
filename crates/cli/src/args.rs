//! The grammar of the command line, shared by parsing, completions and man pages.
//!
//! Deliberately absent: the options of each verb, which live in its module.

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::exit;
use crate::{
    bench, compare, completions, config, history, holder, man, run, service, snapshot, status,
    streams, top, waf, writer,
};

const EXIT_STATUS: &str = "Exit status: 0 done, 1 done and the answer is no, 2 could not.";

const FILES_AND_VARIABLES: &str = "\
Exit status:
  0 done, 1 done and the answer is no, 2 could not.

Settings, later ones win:
  /etc/saiga/saiga.toml               for the whole machine
  $XDG_CONFIG_HOME/saiga/saiga.toml   for this user, or the file that $SAIGA_CONFIG names
  $SAIGA_ENABLED, $SAIGA_RING, ...    the keys of saiga.toml in capitals
  flags of `saiga run`
`saiga config show` prints what is in force and where it comes from.";

/// Moves database connections on one host from kernel TCP to shared memory, and proves the gain.
#[derive(Debug, Parser)]
#[command(name = "saiga", version = env!("SAIGA_VERSION"), propagate_version = true)]
#[command(after_help = EXIT_STATUS, after_long_help = FILES_AND_VARIABLES)]
pub(crate) struct Cli {
    #[command(subcommand)]
    verb: Verb,
}

/// What the user asks for.
#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    /// Starts a program with its connections accelerated
    Run(run::Args),
    /// Makes systemd start a service with its connections accelerated
    Enable(service::Enable),
    /// Makes systemd start a service as it did before
    Disable(service::Disable),
    /// Shows what is accelerated, and why the rest is not
    Status(status::Args),
    /// Shows the traffic of accelerated processes, refreshed each second
    Top(top::Args),
    /// Measures a workload with and without Saiga, in pairs, and writes a report
    Compare(Box<compare::Args>),
    /// Runs one load and prints its figures
    Bench(bench::Args),
    /// Lists experiments: the goal, result and changes of each, on one page
    History(history::Args),
    /// Puts data directories away and brings them back
    Snapshot(snapshot::Args),
    /// Measures the write amplification of NVMe drives by their own counters
    Waf(waf::Args),
    /// Labels files for drives that separate data by lifetime, and shows what that is worth
    Streams(Box<streams::Args>),
    /// Writes to Redis through a fail-over, for `compare` and `bench`
    #[command(hide = true)]
    RedisWriter(writer::Args),
    /// Holds idle connections to Redis, for `compare` and `bench`
    #[command(hide = true)]
    RedisHolder(holder::Args),
    /// Shows the settings in force
    Config(config::Args),
    /// Prints a completion script for a shell
    Completions(completions::Args),
    /// Prints the manual page, or writes the pages of every verb
    Man(man::Args),
}

/// Reads the command line; `Err` holds the code to exit with after help, version or bad usage.
pub(crate) fn parse() -> Result<Verb, ExitCode> {
    let error = match Cli::try_parse() {
        Ok(cli) => return Ok(cli.verb),
        Err(error) => error,
    };
    if error.use_stderr() {
        let text = error.render().to_string();
        let text = text.strip_prefix("error: ").unwrap_or(&text);
        return Err(exit::complain(text.trim_end()));
    }
    // Help and version are results: a reader that closes the pipe early is not a fault.
    Err(exit::code(
        error
            .print()
            .map(|()| ExitCode::SUCCESS)
            .map_err(Into::into),
    ))
}
