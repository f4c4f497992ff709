//! `saiga bench redis`: runs redis-benchmark once for each test, each time on new servers.

use std::process::ExitCode;
use std::slice;

use saiga_experiment::plan::RunSize;
use saiga_redis::{RedisArm, RedisLoad, RedisWorkload, Test, Topology, cells};

use super::Conditions;
use crate::compare::{
    TestName, TopologyName, arm_kinds, check_arms, check_clients, check_idle, probe, tests,
    this_tool,
};

/// Options of `saiga bench redis`; the short ones are those of redis-benchmark.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Number and roles of the servers
    #[arg(long, value_enum, default_value_t = TopologyName::Standalone)]
    topology: TopologyName,
    /// Same as --topology cluster
    #[arg(long, conflicts_with = "topology")]
    cluster: bool,
    /// Request types, such as set,get; each is a separate run
    #[arg(
        short = 't',
        long,
        alias = "test",
        value_enum,
        value_delimiter = ',',
        value_name = "TESTS",
        default_value = "set"
    )]
    tests: Vec<TestName>,
    /// Parallel connections
    #[arg(short, long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..))]
    clients: u32,
    /// Requests of each test
    #[arg(short = 'n', long, value_name = "N", default_value_t = 100_000, value_parser = clap::value_parser!(u64).range(1..=2_000_000_000))]
    requests: u64,
    /// Requests sent before waiting for the first answer
    #[arg(short = 'P', long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    pipeline: u32,
    /// Size of a value in bytes
    #[arg(short = 'd', long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=1_073_741_824))]
    value_bytes: u32,
    /// Use N random keys, all of which exist for GET
    #[arg(short = 'r', long, value_name = "N", default_value_t = 0)]
    keys: u32,
    /// Threads of redis-benchmark
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=500))]
    threads: u32,
    /// io-threads of redis-server
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=128))]
    io_threads: u32,
    /// Also hold N idle connections that were used before
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true, value_parser = clap::value_parser!(u32).range(..=1_000_000))]
    idle: u32,
    /// Close each connection after one request
    #[arg(long)]
    reconnect: bool,
    #[command(flatten)]
    conditions: Conditions,
}

/// Runs one load after another and prints their records.
pub(super) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let (conditions, topology) = (&args.conditions, args.topology());
    let tests = tests(&args.tests, topology)?;
    let loads: Vec<RedisLoad> = tests.into_iter().map(|test| args.load(test)).collect();
    check_arms(&[conditions.arm], topology)?;
    check_clients(args.clients)?;
    check_idle(args.idle, &[conditions.arm], &loads)?;
    let mut arms = RedisArm::named(&arm_kinds(&[conditions.arm])?);
    if args.idle > 0 {
        arms = arms.iter().map(|arm| arm.with_idle(args.idle)).collect();
    }
    let size = RunSize::Operations(args.requests);
    let plan = |load: &RedisLoad| {
        conditions.plan(
            |hog, cores| cells::cells(slice::from_ref(load), hog, cores),
            size,
        )
    };
    let plans: Vec<_> = loads.iter().map(plan).collect::<Result<_, _>>()?;
    let workload = RedisWorkload::new(
        arms,
        topology,
        conditions.port,
        this_tool()?,
        Some(probe::status_pages()),
    )?;
    conditions.measure(&workload, &plans)
}

impl Args {
    fn topology(&self) -> Topology {
        if self.cluster {
            Topology::Cluster
        } else {
            self.topology.topology()
        }
    }

    fn load(&self, test: Test) -> RedisLoad {
        RedisLoad {
            test,
            clients: self.clients,
            pipeline: self.pipeline,
            value_bytes: self.value_bytes,
            client_threads: self.threads,
            io_threads: self.io_threads,
            reconnect: self.reconnect,
            keys: self.keys,
            topology: self.topology(),
        }
    }
}
