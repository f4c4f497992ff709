//! The options of `saiga compare`.

use std::path::PathBuf;

use clap::ValueEnum;
use saiga_experiment::cpu::default_foreign_cores;
use saiga_experiment::file::TableCheck;
use saiga_redis::{Test, Topology};

use super::course::Course;

/// Options of `saiga compare`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Servers and clients are started by saiga on private ports and folders, \
and stopped again; no server of this host is touched.\nEach finished run is kept in \
DIR/campaign.jsonl; after a reboot, the same command with --resume goes on.\nA first Ctrl-C stops everything and keeps \
what was measured, a second one ends at once."
)]
pub(crate) struct Args {
    /// The workload: redis, sql, tpcc, or an experiment file, FILE.toml
    #[arg(value_name = "WORKLOAD")]
    pub(crate) workload: String,
    /// Folder for result.json and report.html; made if it is not there
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Measure everything. redis: also 1000 clients, 4096-byte values, threads on either side,
    /// short connections and hogs (half an hour). sql: both engines, 256 connections and hogs
    /// (hours)
    #[arg(long)]
    pub(crate) full: bool,
    /// sql: the database systems, mariadb with sysbench and postgres with pgbench. tpcc: the one
    /// of a private server
    #[arg(long, value_enum, value_delimiter = ',', value_name = "ENGINE")]
    pub(crate) engine: Vec<EngineName>,
    /// redis: how servers are joined to each other
    #[arg(long, value_enum, default_value_t = TopologyName::Standalone)]
    pub(crate) topology: TopologyName,
    /// redis: run each arm also beside N connections that have been used and rest; what they
    /// cost is the main comparison
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true, conflicts_with = "full", value_parser = clap::value_parser!(u32).range(..=1_000_000))]
    pub(crate) idle: u32,
    /// Keep the server's core (0), the client's (1), both or none busy with a process of our own
    #[arg(
        long,
        value_enum,
        value_delimiter = ',',
        value_name = "HOGS",
        conflicts_with = "full"
    )]
    pub(crate) hog: Vec<HogName>,
    /// FILE.toml: the value of a variable, which wins over the file; may be repeated
    #[arg(long, value_name = "NAME=VALUE", value_parser = variable)]
    pub(crate) set: Vec<(String, String)>,
    /// Print every step that would run, and run nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Exit 1 unless the headline comparison shows this
    #[arg(long, value_enum)]
    pub(crate) expect: Option<Expectation>,
    /// Print result.json on standard output instead of the report
    #[arg(long)]
    pub(crate) json: bool,
    /// Show a line of progress on a terminal, and no dashboard
    #[arg(long)]
    pub(crate) no_dashboard: bool,
    #[command(flatten)]
    pub(crate) pace: Pace,
    #[command(flatten)]
    pub(crate) course: Course,
    /// What to compare, the reference first; an arm given twice (kernel,kernel) is compared with
    /// itself, which should show no difference
    /// (default: kernel,unix,saiga; without unix where servers are joined, or with --idle)
    #[arg(long, value_enum, value_delimiter = ',')]
    pub(crate) arms: Vec<ArmName>,
    /// redis, sql: one more arm, with both processes under this build of libsaiga.so; its name is
    /// that of the file. May be repeated
    #[arg(long, value_name = "FILE")]
    pub(crate) library: Vec<PathBuf>,
    /// Run only cells whose name contains TEXT, such as set-c50-one-core; may be repeated
    #[arg(long, value_name = "TEXT")]
    pub(crate) only: Vec<String>,
    /// First port of the private servers on 127.0.0.1 (default: any free ones)
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) port: Option<u16>,
    #[command(flatten)]
    pub(crate) tpcc: TpccFlags,
    // The last, for its heading holds for all that follow.
    #[command(flatten)]
    pub(crate) load: LoadFlags,
}

/// How much is measured.
#[derive(Debug, clap::Args)]
pub(crate) struct Pace {
    /// Runs of each arm in each cell; a verdict needs six (default: 6, or what FILE.toml says)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) pairs: Option<u32>,
    /// Length of a run in seconds. redis: with 50 clients (default: 0.27, with --full 0.6, with
    /// --idle 1).
    /// sql: with few connections, after warming up (default: 0.4, with --full 0.6).
    /// tpcc: 30 on a private server, else what the props file says
    #[arg(long, value_name = "S", value_parser = seconds, conflicts_with = "requests")]
    pub(crate) seconds: Option<f64>,
    /// redis: requests of a run, instead of a length
    #[arg(short = 'n', long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=2_000_000_000))]
    pub(crate) requests: Option<u64>,
    /// Seed of the random order (default: a new one, printed)
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u64>,
    /// Reject a run during which other processes used more CPUs than this, or the hypervisor took
    /// more of them; interrupts and kernel threads do not count
    /// (default: 2% of the host's CPUs and at least 0.12, or what FILE.toml says)
    #[arg(long, value_name = "CPUS", value_parser = share)]
    pub(crate) max_foreign: Option<f64>,
}

impl Pace {
    /// CPUs that other processes may use in a run that counts.
    pub(crate) fn max_foreign_cores(&self) -> f64 {
        self.max_foreign.unwrap_or_else(default_foreign_cores)
    }
}

/// Whose TPC-C is compared.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "tpcc: on a private server (--engine), or on your own")]
pub(crate) struct TpccFlags {
    /// Warehouses of a private server (default: 2)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) warehouses: Option<u32>,
    /// Terminals on a private server (default: 8)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) terminals: Option<u32>,
    /// A props file of BenchmarkSQL, whose tables are built; several run at the same time
    #[arg(long, value_name = "FILE")]
    pub(crate) props: Vec<PathBuf>,
    /// The command line that starts its server in the foreground, or @FILE with it in it; for each
    /// --props one. Compared are kernel and saiga, which is the same under `saiga run` (default: what
    /// follows from profile= of the props file)
    #[arg(long, value_name = "LINE", allow_hyphen_values = true)]
    pub(crate) server: Vec<String>,
    /// The same for the reference alone: compared are a and b. `saiga run` before it is understood
    #[arg(long, value_name = "LINE", allow_hyphen_values = true)]
    pub(crate) arm_a: Vec<String>,
    /// And for what is judged
    #[arg(long, value_name = "LINE", allow_hyphen_values = true)]
    pub(crate) arm_b: Vec<String>,
    /// Restore this snapshot before each run; when it is not there, it is taken first, of data= of the
    /// props files (default: backup= of the props file, when it is a snapshot)
    #[arg(long, value_name = "DIR")]
    pub(crate) snapshot: Option<PathBuf>,
    /// What is checked of the tables before each run and after it: all, conditions, sample or none
    /// (default: all, or what the props file says)
    #[arg(long, value_name = "WHAT", value_parser = table_check)]
    pub(crate) check: Option<TableCheck>,
}

fn table_check(text: &str) -> Result<TableCheck, String> {
    TableCheck::named(text).ok_or_else(|| {
        let names = TableCheck::EACH.map(TableCheck::name);
        format!("one of {}", names.join(", "))
    })
}

impl TpccFlags {
    /// The first one that is given.
    pub(crate) fn first(&self) -> Option<&'static str> {
        let Self {
            warehouses,
            terminals,
            props,
            server,
            arm_a,
            arm_b,
            snapshot,
            check,
        } = self;
        let given = [
            ("--warehouses", warehouses.is_some()),
            ("--terminals", terminals.is_some()),
            ("--props", !props.is_empty()),
            ("--server", !server.is_empty()),
            ("--arm-a", !arm_a.is_empty()),
            ("--arm-b", !arm_b.is_empty()),
            ("--snapshot", snapshot.is_some()),
            ("--check", check.is_some()),
        ];
        let first = given.iter().find(|(_, given)| *given);
        first.map(|(flag, _)| *flag)
    }
}

/// Flags of redis-benchmark: any of them replaces the loads of the plan.
#[derive(Debug, clap::Args)]
#[command(
    next_help_heading = "redis: instead of the loads of the plan, as redis-benchmark names them"
)]
pub(crate) struct LoadFlags {
    /// What the requests do, such as set,get
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
    /// Use N random keys; a GET finds every one of them
    #[arg(short = 'r', long, value_name = "N")]
    pub(crate) keys: Option<u32>,
    /// Threads of redis-benchmark
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=500))]
    pub(crate) threads: Option<u32>,
    /// The same as --topology cluster
    #[arg(long, conflicts_with = "topology")]
    pub(crate) cluster: bool,
}

/// What each request does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum TestName {
    /// SET of a value
    Set,
    /// GET of a value that exists
    Get,
    /// PING
    Ping,
    /// SETs under which the master is killed (with --topology sentinel)
    Failover,
}

/// How servers are joined to each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum TopologyName {
    /// One server
    Standalone,
    /// A master and two replicas; GET goes to a replica
    Replica,
    /// The same with three sentinels, and a fail-over
    Sentinel,
    /// Three masters with a replica each
    Cluster,
}

impl TopologyName {
    /// The same for the workload.
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
    /// The same for the workload.
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
    /// The first flag given that describes a load; `--cluster` describes the servers.
    pub(crate) fn first_load_flag(&self) -> Option<&'static str> {
        let Self {
            tests,
            clients,
            value_bytes,
            keys,
            threads,
            cluster: _,
        } = self;
        let flags = [
            ("-t", !tests.is_empty()),
            ("-c", !clients.is_empty()),
            ("-d", value_bytes.is_some()),
            ("-r", keys.is_some()),
            ("--threads", threads.is_some()),
        ];
        flags
            .iter()
            .find(|(_, given)| *given)
            .map(|(flag, _)| *flag)
    }
}

impl Args {
    /// How the servers are joined.
    pub(crate) fn topology(&self) -> Topology {
        if self.load.cluster {
            Topology::Cluster
        } else {
            self.topology.topology()
        }
    }

    /// What is compared.
    pub(crate) fn arms(&self) -> &[ArmName] {
        match (self.arms.as_slice(), self.topology()) {
            ([], Topology::Standalone) if self.idle == 0 => {
                &[ArmName::Kernel, ArmName::Unix, ArmName::Saiga]
            }
            ([], _) => &[ArmName::Kernel, ArmName::Saiga],
            (chosen, _) => chosen,
        }
    }
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

/// A length of time that a run may have.
pub(crate) fn seconds(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(seconds) if (0.02..=3600.0).contains(&seconds) => Ok(seconds),
        _ => Err("give seconds between 0.02 and 3600".to_owned()),
    }
}

/// `NAME=VALUE` of `--set`.
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
