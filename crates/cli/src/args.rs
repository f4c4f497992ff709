//! The grammar of the command line, shared by parsing, completions and man pages.
//! The options of each verb are in the module of the verb.

use std::ffi::OsString;
use std::process::ExitCode;

use clap::{CommandFactory as _, Parser, Subcommand};

use crate::exit;
use crate::{
    bench, compare, completions, config, diagnose, gateway, history, holder, man, run, service,
    snapshot, status, streams, top, topology, tune, waf, writer,
};

const EXIT_STATUS: &str =
    "Exit status: 0 success, 1 done but the answer is no (a failed check), 2 error.";

const FILES_AND_VARIABLES: &str = "\
Exit status:
  0 success
  1 done, but the answer is no: a finding, a regression or a failed check
  2 error: bad input, a missing permission or a failure

Settings; each source overrides those above it:
  /etc/saiga/saiga.toml               for the whole machine
  $XDG_CONFIG_HOME/saiga/saiga.toml   for this user, or the file that $SAIGA_CONFIG names
  $SAIGA_ENABLED, $SAIGA_RING, ...    the keys of saiga.toml in capitals
  flags of `saiga run`
`saiga config show` prints the settings in force and the source of each.";

/// Moves database connections on one host from kernel TCP to shared memory, and proves the gain.
#[derive(Debug, Parser)]
#[command(name = "saiga", version = env!("SAIGA_VERSION"), propagate_version = true)]
#[command(after_help = EXIT_STATUS, after_long_help = FILES_AND_VARIABLES)]
pub(crate) struct Cli {
    #[command(subcommand)]
    verb: Verb,
}

/// The verbs of `saiga`.
#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    /// Starts a program with its connections accelerated
    Run(run::Args),
    /// Makes systemd start a service with its connections accelerated
    Enable(service::Enable),
    /// Makes systemd start a service without acceleration again
    Disable(service::Disable),
    /// Shows the accelerated processes and sockets, and why others use kernel TCP
    Status(status::Args),
    /// Shows the traffic of accelerated processes, refreshed each second
    Top(top::Args),
    /// Shows CPUs, NUMA nodes, network devices and disks, and where a process runs
    Topology(topology::Args),
    /// Measures a workload with and without Saiga, in pairs, and writes a report
    Compare(Box<compare::Args>),
    /// Runs one benchmark and prints its results
    Bench(bench::Args),
    /// Lists experiments: the goal, result and changes of each, on one page
    History(history::Args),
    /// Saves the data directories of a stopped server, and restores them
    Snapshot(snapshot::Args),
    /// Measures the write amplification of NVMe drives from their own counters
    Waf(waf::Args),
    /// Gives database files write-lifetime hints for SSDs, and measures or predicts the effect
    Streams(Box<streams::Args>),
    /// Plans, applies and undoes settings of this host and of its databases
    Tune(tune::Args),
    /// Names the bottleneck of a server, a load or this host, with its evidence
    Diagnose(diagnose::Args),
    /// Serves remote clients of unmodified servers through a TCP/IP stack of its own
    Gateway(gateway::Args),
    /// Writes to Redis during a fail-over, for `compare` and `bench`
    #[command(hide = true)]
    RedisWriter(writer::Args),
    /// Holds idle connections to Redis, for `compare` and `bench`
    #[command(hide = true)]
    RedisHolder(holder::Args),
    /// Shows the settings in force
    Config(config::Args),
    /// Prints a completion script for a shell
    Completions(completions::Args),
    /// Prints the manual page, or writes a page for each verb
    Man(man::Args),
}

/// Parses the command line. `Err` is the exit code after help, version or a usage error.
pub(crate) fn parse() -> Result<Verb, ExitCode> {
    let mut words: Vec<OsString> = std::env::args_os().collect();
    if words.get(1).is_some_and(|verb| verb == "compare") {
        words = compare::words::workload_first(words, &Cli::command());
    }
    let error = match Cli::try_parse_from(words) {
        Ok(cli) => return Ok(cli.verb),
        Err(error) => error,
    };
    if error.use_stderr() {
        let text = error.render().to_string();
        let text = text.strip_prefix("error: ").unwrap_or(&text);
        return Err(exit::fail(text.trim_end()));
    }
    // Help and version are results: a closed pipe is not an error.
    Err(exit::code(
        error
            .print()
            .map(|()| ExitCode::SUCCESS)
            .map_err(Into::into),
    ))
}
