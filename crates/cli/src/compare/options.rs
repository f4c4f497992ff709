//! The options of `saiga compare`.

use std::path::PathBuf;

use clap::ValueEnum;

/// Options of `saiga compare`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Servers and clients are started by saiga on private ports and folders, \
and stopped again; no server of this host is touched.\nA first Ctrl-C stops everything and keeps \
what was measured, a second one ends at once."
)]
pub(crate) struct Args {
    /// The workload: redis or sql
    #[arg(value_name = "WORKLOAD")]
    pub(crate) workload: String,
    /// Folder for result.json and report.html; made if it is not there
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Measure everything. redis: also 1000 clients, 4096-byte values, threads on either side,
    /// short connections and hogs (20 min). sql: both engines, 256 connections and hogs (hours)
    #[arg(long)]
    pub(crate) full: bool,
    /// sql: the database systems, mariadb with sysbench and postgres with pgbench
    #[arg(long, value_enum, value_delimiter = ',', value_name = "ENGINE")]
    pub(crate) engine: Vec<EngineName>,
    /// How servers are connected to each other
    #[arg(long, value_enum, default_value_t = Topology::Standalone)]
    pub(crate) topology: Topology,
    /// Keep the server's core (0), the client's (1) or both busy with a process of our own
    #[arg(long, value_enum, conflicts_with = "full")]
    pub(crate) hog: Option<HogName>,
    /// Print every step that would run, and run nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Exit 1 unless the headline comparison shows this
    #[arg(long, value_enum)]
    pub(crate) expect: Option<Expectation>,
    /// Print result.json on standard output instead of the report
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) pace: Pace,
    /// What to compare, the reference first; an arm given twice is compared with itself
    #[arg(
        long,
        value_enum,
        value_delimiter = ',',
        default_value = "kernel,unix,saiga"
    )]
    pub(crate) arms: Vec<ArmName>,
    /// Run only cells whose name contains TEXT, such as set-c50-one-core; may be repeated
    #[arg(long, value_name = "TEXT")]
    pub(crate) only: Vec<String>,
    /// Port of the private servers on 127.0.0.1 (default: any free one)
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) port: Option<u16>,
}

/// How much is measured.
#[derive(Debug, clap::Args)]
pub(crate) struct Pace {
    /// Runs of each arm in each cell; a verdict needs six
    #[arg(long, value_name = "N", default_value_t = 6, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) pairs: u32,
    /// Length of a run in seconds. redis: with 50 clients (default: 0.27, with --full 0.6).
    /// sql: with few connections, after warming up (default: 0.4, with --full 0.6)
    #[arg(long, value_name = "S", value_parser = seconds, conflicts_with = "requests")]
    pub(crate) seconds: Option<f64>,
    /// redis: requests of a run, instead of a length
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=2_000_000_000))]
    pub(crate) requests: Option<u64>,
    /// Seed of the random order (default: a new one, printed)
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u64>,
    /// Reject a run during which other processes used more CPUs than this
    #[arg(long, value_name = "CPUS", default_value_t = 0.12, value_parser = share)]
    pub(crate) max_foreign: f64,
}

/// How servers are connected to each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Topology {
    /// One server
    Standalone,
}

/// A database system.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum EngineName {
    /// A thread per connection; sysbench as load
    Mariadb,
    /// A process per connection; pgbench as load
    Postgres,
}

/// Which cores are kept busy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum HogName {
    /// The server's core
    #[value(name = "0")]
    First,
    /// The client's core
    #[value(name = "1")]
    Second,
    /// Both
    Both,
}

/// What the headline must show.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Expectation {
    /// The last arm is faster than the first
    Faster,
}

/// One arm.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ArmName {
    /// Kernel TCP on 127.0.0.1
    Kernel,
    /// An AF_UNIX socket
    Unix,
    /// Kernel TCP with both processes under Saiga
    Saiga,
}

fn seconds(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(seconds) if (0.02..=3600.0).contains(&seconds) => Ok(seconds),
        _ => Err("give seconds between 0.02 and 3600".to_owned()),
    }
}

fn share(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(share) if (0.0..=1024.0).contains(&share) => Ok(share),
        _ => Err("give a number of CPUs, such as 0.12".to_owned()),
    }
}
