//! The options of `saiga compare`.

use std::path::PathBuf;

use clap::ValueEnum;
use saiga_experiment::file::TableCheck;
use saiga_process::cpu::default_foreign_cores;
use saiga_redis::{Test, Topology};

use super::over::{self, WireName};
use super::stopping::Stopping;

/// Options of `saiga compare`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Saiga starts servers and clients on private ports and in private directories, and \
stops them again; it does not touch other servers of this host.\n\
Each finished run is kept in DIR/campaign.jsonl; after a reboot, the same command with --resume \
continues.\n\
A first Ctrl-C stops everything and keeps the finished runs, a second one exits immediately.\n\
`saiga compare FILE.toml` is short for `saiga compare file FILE.toml`.")]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) workload: WorkloadArgs,
}

/// The workloads of `saiga compare`, each with its options.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum WorkloadArgs {
    /// Redis with redis-benchmark: kernel TCP, AF_UNIX and Saiga
    Redis(Box<RedisArgs>),
    /// MariaDB with sysbench and PostgreSQL with pgbench: kernel TCP, AF_UNIX and Saiga
    Sql(Box<SqlArgs>),
    /// TPC-C on a private server, or on the servers of props files
    Tpcc(Box<TpccArgs>),
    /// An experiment file, which describes the arms, the load and the restore
    File(Box<FileArgs>),
}

/// Options of `saiga compare redis`.
#[derive(Debug, clap::Args)]
pub(crate) struct RedisArgs {
    #[command(flatten)]
    pub(crate) common: Common,
    #[command(flatten)]
    pub(crate) arms: ArmFlags,
    /// Run the full set of loads: also 1000 clients, 4096-byte values, threads on either side,
    /// short connections and hogs (half an hour)
    #[arg(long, conflicts_with_all = ["idle", "hog"])]
    pub(crate) full: bool,
    #[command(flatten)]
    pub(crate) cells: CellFlags,
    /// Number and roles of the servers
    #[arg(long, value_enum, default_value_t = TopologyName::Standalone)]
    pub(crate) topology: TopologyName,
    /// Run each arm also with N idle connections that were used before; their cost becomes the main
    /// comparison
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true, value_parser = clap::value_parser!(u32).range(..=1_000_000))]
    pub(crate) idle: u32,
    /// Put server and client on two hosts with this wire between them, to measure `saiga gateway`
    /// (docs/gateway.md). The hosts are network namespaces of this machine, which needs root. The
    /// arms are kernel and gateway
    #[arg(long, value_enum, value_name = "WIRE", conflicts_with_all = ["idle", "library", "port"])]
    pub(crate) over: Option<WireName>,
    /// Length of a run in seconds, with 50 clients (default: 0.27, with --full 0.6, with --idle or
    /// --over 1)
    #[arg(long, value_name = "S", value_parser = seconds, conflicts_with = "requests")]
    pub(crate) seconds: Option<f64>,
    /// Requests of a run, in place of its length
    #[arg(short = 'n', long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=2_000_000_000))]
    pub(crate) requests: Option<u64>,
    /// First port of the private servers on 127.0.0.1 (default: free ports)
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) port: Option<u16>,
    // Last, because its heading applies to all options that follow.
    #[command(flatten)]
    pub(crate) load: LoadFlags,
}

/// Options of `saiga compare sql`.
#[derive(Debug, clap::Args)]
pub(crate) struct SqlArgs {
    #[command(flatten)]
    pub(crate) common: Common,
    #[command(flatten)]
    pub(crate) arms: ArmFlags,
    /// The database systems
    #[arg(long, value_enum, value_delimiter = ',', value_name = "ENGINE")]
    pub(crate) engine: Vec<EngineName>,
    /// Run the full set of loads: both engines, 256 connections and hogs (hours)
    #[arg(long, conflicts_with = "hog")]
    pub(crate) full: bool,
    #[command(flatten)]
    pub(crate) cells: CellFlags,
    /// Put server and client on two hosts with this wire between them, to measure `saiga gateway`
    /// (docs/gateway.md). The hosts are network namespaces of this machine, which needs root. The
    /// arms are kernel and gateway
    #[arg(long, value_enum, value_name = "WIRE", conflicts_with_all = ["library", "port"])]
    pub(crate) over: Option<WireName>,
    /// Length of a run in seconds, with few connections, after the warm-up (default: 0.4, with
    /// --full 0.6, with --over 1)
    #[arg(long, value_name = "S", value_parser = seconds)]
    pub(crate) seconds: Option<f64>,
    /// Start this many transactions per second by a schedule, from which their latency counts, in
    /// place of as many as possible (PostgreSQL)
    #[arg(long, value_name = "N/s", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) rate: Option<u32>,
    /// First port of the private servers on 127.0.0.1 (default: free ports)
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) port: Option<u16>,
}

/// Options of `saiga compare tpcc`.
#[derive(Debug, clap::Args)]
pub(crate) struct TpccArgs {
    #[command(flatten)]
    pub(crate) common: Common,
    /// The database system of a private server
    #[arg(long, value_enum, value_name = "ENGINE")]
    pub(crate) engine: Option<EngineName>,
    /// The arms to compare on a private server, the reference first: kernel and saiga, with --over
    /// kernel and gateway; an arm that is given twice (kernel,kernel) is compared with itself
    /// (default: kernel,saiga, with --over kernel,gateway)
    #[arg(long, value_enum, value_delimiter = ',')]
    pub(crate) arms: Vec<ArmName>,
    /// Put the private server and the client on two hosts with this wire between them, to measure
    /// `saiga gateway` (docs/gateway.md). The hosts are network namespaces of this machine, which
    /// needs root. The arms are kernel and gateway
    #[arg(long, value_enum, value_name = "WIRE", conflicts_with_all = ["props", "port"])]
    pub(crate) over: Option<WireName>,
    /// Length of a run in seconds (default: 30 on a private server, otherwise that of the props
    /// file)
    #[arg(long, value_name = "S", value_parser = seconds)]
    pub(crate) seconds: Option<f64>,
    /// Port of the private server on 127.0.0.1 (default: a free port)
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) port: Option<u16>,
    #[command(flatten)]
    pub(crate) tpcc: TpccFlags,
}

/// Options of `saiga compare file`.
#[derive(Debug, clap::Args)]
pub(crate) struct FileArgs {
    /// The experiment file (docs/experiments.md)
    #[arg(value_name = "FILE.toml")]
    pub(crate) file: PathBuf,
    #[command(flatten)]
    pub(crate) common: Common,
    /// Set a variable; overrides the file; can be repeated
    #[arg(long, value_name = "NAME=VALUE", value_parser = variable)]
    pub(crate) set: Vec<(String, String)>,
}

/// Options of every comparison.
#[derive(Debug, clap::Args)]
pub(crate) struct Common {
    /// Directory for result.json and report.html; created if it does not exist
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Print every step, but run nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Exit with status 1 unless the headline comparison shows this
    #[arg(long, value_enum)]
    pub(crate) expect: Option<Expectation>,
    /// Print more of the report: all placements, comparisons without a gain, warnings, CPU time
    #[arg(long, conflicts_with = "json")]
    pub(crate) details: bool,
    /// Print result.json on stdout instead of the report
    #[arg(long)]
    pub(crate) json: bool,
    /// Show a progress line on a terminal instead of the dashboard
    #[arg(long)]
    pub(crate) no_dashboard: bool,
    #[command(flatten)]
    pub(crate) pace: Pace,
    #[command(flatten)]
    pub(crate) stopping: Stopping,
}

/// The arms of `compare redis` and `compare sql`.
#[derive(Debug, clap::Args)]
pub(crate) struct ArmFlags {
    /// The arms to compare, the reference first; an arm that is given twice (kernel,kernel) is
    /// compared with itself, which should show no difference
    /// (default: kernel,unix,saiga; without unix for several servers or with --idle)
    #[arg(long, value_enum, value_delimiter = ',')]
    pub(crate) arms: Vec<ArmName>,
    /// Add an arm with both processes under this build of libsaiga.so; the arm has the name of the
    /// file. Can be repeated
    #[arg(long, value_name = "FILE")]
    pub(crate) library: Vec<PathBuf>,
}

/// The choice among the cells of `compare redis` and `compare sql`.
#[derive(Debug, clap::Args)]
pub(crate) struct CellFlags {
    /// Keep the server's core (0), the client's (1), both or neither busy with a process that Saiga
    /// starts
    #[arg(long, value_enum, value_delimiter = ',', value_name = "HOGS")]
    pub(crate) hog: Vec<HogName>,
    /// Run only cells whose name contains TEXT, such as set-c50-one-core; can be repeated
    #[arg(long, value_name = "TEXT")]
    pub(crate) only: Vec<String>,
}

/// Number of the runs, their order, and what disturbs them.
#[derive(Debug, clap::Args)]
pub(crate) struct Pace {
    /// Runs of each arm in each cell; a verdict needs six (default: 6, or that of FILE.toml)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) pairs: Option<u32>,
    /// Seed of the random order (default: a new one, which is printed)
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u64>,
    /// Reject a run if other processes used more CPUs than this during it, or the hypervisor took
    /// more than this; interrupts and kernel threads do not count
    /// (default: 2% of the host's CPUs and at least 0.12, or that of FILE.toml)
    #[arg(long, value_name = "CPUS", value_parser = share)]
    pub(crate) max_foreign: Option<f64>,
}

impl Pace {
    /// CPUs that other processes may use during a valid run.
    pub(crate) fn max_foreign_cores(&self) -> f64 {
        self.max_foreign.unwrap_or_else(default_foreign_cores)
    }
}

/// Options of `compare tpcc`.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Options for a private server (--engine) or for your own")]
pub(crate) struct TpccFlags {
    /// Warehouses of the private server (default: 2)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) warehouses: Option<u32>,
    /// Terminals on the private server (default: 8)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) terminals: Option<u32>,
    /// A props file of BenchmarkSQL whose tables are already built; several run at the same time
    #[arg(long, value_name = "FILE")]
    pub(crate) props: Vec<PathBuf>,
    /// Command line that starts the server in the foreground, or @FILE with the command line; once
    /// for each --props. The arms are kernel and saiga, which is the same command under `saiga run`
    /// (default: derived from profile= of the props file)
    #[arg(long, value_name = "LINE", allow_hyphen_values = true)]
    pub(crate) server: Vec<String>,
    /// Command line of the reference arm only: the arms are a and b. It may begin with `saiga run`
    #[arg(long, value_name = "LINE", allow_hyphen_values = true)]
    pub(crate) arm_a: Vec<String>,
    /// Command line of the other arm, b
    #[arg(long, value_name = "LINE", allow_hyphen_values = true)]
    pub(crate) arm_b: Vec<String>,
    /// Restore this snapshot before each run. If it does not exist, it is taken first, of data= of
    /// the props files (default: backup= of the props file, if that is a snapshot)
    #[arg(long, value_name = "DIR")]
    pub(crate) snapshot: Option<PathBuf>,
    /// Checks of the tables before and after each run: all, conditions, sample or none (default:
    /// all, or that of the props file)
    #[arg(long, value_name = "WHAT", value_parser = table_check)]
    pub(crate) check: Option<TableCheck>,
}

fn table_check(text: &str) -> Result<TableCheck, String> {
    TableCheck::named(text).ok_or_else(|| {
        let names = TableCheck::EACH.map(TableCheck::name);
        format!("give one of {}", names.join(", "))
    })
}

/// Options with the names of redis-benchmark; any of them replaces the loads of the plan.
#[derive(Debug, clap::Args)]
#[command(
    next_help_heading = "One load in place of those of the plan, with redis-benchmark's options"
)]
pub(crate) struct LoadFlags {
    /// Request types, such as set,get
    #[arg(
        short = 't',
        long,
        value_enum,
        value_delimiter = ',',
        value_name = "TESTS"
    )]
    pub(crate) tests: Vec<TestName>,
    /// Parallel connections, such as 1,16,64
    #[arg(short, long, value_delimiter = ',', value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) clients: Vec<u32>,
    /// Size of a value in bytes
    #[arg(short = 'd', long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_073_741_824))]
    pub(crate) value_bytes: Option<u32>,
    /// 0 makes a connection for each request, 1 keeps connections (default)
    #[arg(short = 'k', value_name = "BOOL", value_parser = clap::value_parser!(u8).range(..=1))]
    pub(crate) keep_alive: Option<u8>,
    /// Use N random keys, all of which exist for GET
    #[arg(short = 'r', long, value_name = "N")]
    pub(crate) keys: Option<u32>,
    /// Threads of redis-benchmark
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=500))]
    pub(crate) threads: Option<u32>,
    /// Same as --topology cluster
    #[arg(long, conflicts_with = "topology")]
    pub(crate) cluster: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum TestName {
    /// SET of a value
    Set,
    /// GET of a value that exists
    Get,
    /// PING
    Ping,
    /// SET while the master is killed (with --topology sentinel)
    Failover,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum TopologyName {
    /// One server
    Standalone,
    /// A master and two replicas; GET goes to a replica
    Replica,
    /// A master, two replicas and three sentinels, with a fail-over
    Sentinel,
    /// Three masters with one replica each
    Cluster,
}

impl TopologyName {
    pub(crate) fn topology(self) -> Topology {
        match self {
            Self::Standalone => Topology::Standalone,
            Self::Replica => Topology::Replica,
            Self::Sentinel => Topology::Sentinel,
            Self::Cluster => Topology::Cluster,
        }
    }
}

impl TestName {
    pub(crate) fn test(self) -> Test {
        match self {
            Self::Set => Test::Set,
            Self::Get => Test::Get,
            Self::Ping => Test::Ping,
            Self::Failover => Test::Failover,
        }
    }
}

impl LoadFlags {
    /// Name of the first given option that describes a load; `--cluster` describes the servers.
    pub(crate) fn first_load_flag(&self) -> Option<&'static str> {
        let Self {
            tests,
            clients,
            value_bytes,
            keep_alive,
            keys,
            threads,
            cluster: _,
        } = self;
        let flags = [
            ("-t", !tests.is_empty()),
            ("-c", !clients.is_empty()),
            ("-d", value_bytes.is_some()),
            ("-k", keep_alive.is_some()),
            ("-r", keys.is_some()),
            ("--threads", threads.is_some()),
        ];
        flags
            .iter()
            .find(|(_, given)| *given)
            .map(|(flag, _)| *flag)
    }
}

impl RedisArgs {
    pub(crate) fn topology(&self) -> Topology {
        if self.load.cluster {
            Topology::Cluster
        } else {
            self.topology.topology()
        }
    }

    /// The arms: those given, or those that the topology and idle connections allow.
    pub(crate) fn arms(&self) -> &[ArmName] {
        let several = self.topology() != Topology::Standalone || self.idle > 0;
        match self.arms.arms.as_slice() {
            given if self.over.is_some() => over::arm_names(given),
            [] if several => &[ArmName::Kernel, ArmName::Saiga],
            [] => &ArmName::ALL,
            chosen => chosen,
        }
    }
}

impl SqlArgs {
    /// The arms: those given, or those that the hosts allow.
    pub(crate) fn arms(&self) -> &[ArmName] {
        match self.over {
            Some(_) => over::arm_names(&self.arms.arms),
            None => self.arms.arms(),
        }
    }
}

impl ArmFlags {
    /// The arms: those given, or all.
    pub(crate) fn arms(&self) -> &[ArmName] {
        match self.arms.as_slice() {
            [] => &ArmName::ALL,
            chosen => chosen,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum EngineName {
    /// A thread per connection; sysbench as load
    Mariadb,
    /// A process per connection; pgbench as load
    Postgres,
}

/// The cores that hog processes keep busy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub(crate) enum HogName {
    /// Neither
    None,
    /// The server's core
    #[value(name = "0")]
    First,
    /// The client's core
    #[value(name = "1")]
    Second,
    /// Both
    Both,
}

/// The verdict that `--expect` requires.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Expectation {
    /// The last arm is faster than the first
    Faster,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ArmName {
    /// Kernel TCP on 127.0.0.1
    Kernel,
    /// An AF_UNIX socket
    Unix,
    /// Kernel TCP with both processes under Saiga
    Saiga,
    /// TCP from another host to `saiga gateway`, with the server under Saiga (with --over)
    #[value(hide = true)]
    Gateway,
}

impl ArmName {
    const ALL: [ArmName; 3] = [Self::Kernel, Self::Unix, Self::Saiga];
}

/// Parses the length of a run.
pub(crate) fn seconds(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(seconds) if (0.02..=3600.0).contains(&seconds) => Ok(seconds),
        _ => Err("give seconds between 0.02 and 3600".to_owned()),
    }
}

/// Parses `NAME=VALUE` of `--set`.
fn variable(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        Some(_) | None => Err("give NAME=VALUE".to_owned()),
    }
}

fn share(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(share) if (0.0..=1024.0).contains(&share) => Ok(share),
        _ => Err("give a number of CPUs, such as 0.12".to_owned()),
    }
}
