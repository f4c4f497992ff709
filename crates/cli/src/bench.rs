//! `saiga bench redis`: one load run, and its record as in `result.json`.
//!
//! Starts private servers, runs one load, stops them. Deliberately absent:
//! comparisons and verdicts; one run shows nothing about another.

use std::io::Write;
use std::process::ExitCode;

use anyhow::{Context, bail};
use clap::ValueEnum;
use saiga_experiment::cores::{Cores, Hog, Placement};
use saiga_experiment::engine;
use saiga_experiment::interrupt::Interrupt;
use saiga_experiment::plan::{Plan, RunSize};
use saiga_experiment::result::Run;
use saiga_redis::{RedisArm, RedisLoad, RedisWorkload, Topology, cells};

use crate::compare::{
    ArmName, HogName, TestName, TopologyName, arm_kinds, check_arms, check_idle, check_test, probe,
    raise_descriptor_limit, this_tool,
};

/// Options of `saiga bench`; short ones are redis-benchmark's.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The workload: redis
    #[arg(value_name = "WORKLOAD")]
    workload: String,
    /// How client and server reach each other
    #[arg(long, value_enum, default_value_t = ArmName::Saiga)]
    arm: ArmName,
    /// How servers are joined to each other
    #[arg(long, value_enum, default_value_t = TopologyName::Standalone)]
    topology: TopologyName,
    /// The same as --topology cluster
    #[arg(long, conflicts_with = "topology")]
    cluster: bool,
    /// Where they run
    #[arg(long, value_enum, default_value_t = PlacementName::Unpinned)]
    placement: PlacementName,
    /// Keep the server's core (0), the client's (1) or both busy
    #[arg(long, value_enum)]
    hog: Option<HogName>,
    /// What each request does
    #[arg(short = 't', long = "test", value_enum, default_value_t = TestName::Set)]
    test: TestName,
    /// Parallel connections
    #[arg(short, long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..))]
    clients: u32,
    /// Requests in all
    #[arg(short = 'n', long, value_name = "N", default_value_t = 100_000, value_parser = clap::value_parser!(u64).range(1..=2_000_000_000))]
    requests: u64,
    /// Requests sent before the first answer is awaited
    #[arg(short = 'P', long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    pipeline: u32,
    /// Size of a value in bytes
    #[arg(short = 'd', long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=1_073_741_824))]
    value_bytes: u32,
    /// Use N random keys; a GET finds every one of them
    #[arg(short = 'r', long, value_name = "N", default_value_t = 0)]
    keys: u32,
    /// Threads of redis-benchmark
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=500))]
    threads: u32,
    /// io-threads of redis-server
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=128))]
    io_threads: u32,
    /// Run beside N connections that have been used and rest
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true, value_parser = clap::value_parser!(u32).range(..=1_000_000))]
    idle: u32,
    /// Close each connection after one request
    #[arg(long)]
    reconnect: bool,
    /// First port of the private servers on 127.0.0.1 (default: any free ones)
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..))]
    port: Option<u16>,
    /// Print the record as JSON
    #[arg(long)]
    json: bool,
}

/// Where both sides run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum PlacementName {
    /// Both on the same core
    OneCore,
    /// Each on its own core
    TwoCores,
    /// Wherever the scheduler puts them
    Unpinned,
}

/// Runs one load and prints its record.
pub(crate) fn run(args: Args) -> anyhow::Result<ExitCode> {
    if args.workload != "redis" {
        bail!(
            "bench {}: not in this version; `saiga bench redis` is",
            args.workload
        );
    }
    let topology = args.topology();
    check_test(args.test, topology)?;
    check_arms(&[args.arm], topology)?;
    let plan = plan(&args)?;
    let loads = plan.cells.iter().map(|cell| &cell.load);
    check_idle(args.idle, &[args.arm], loads)?;
    let mut arms = RedisArm::named(&arm_kinds(&[args.arm])?);
    if args.idle > 0 {
        arms = arms.iter().map(|arm| arm.beside(args.idle)).collect();
    }
    let workload = RedisWorkload::new(
        arms,
        topology,
        args.port,
        this_tool()?,
        Some(probe::status_pages()),
    )?;
    raise_descriptor_limit();
    let interrupt = Interrupt::on_signals().context("cannot watch for Ctrl-C")?;
    let outcome = engine::execute(&workload, &plan, &interrupt, &mut |_| {})?;
    if let Some(reason) = outcome.stopped {
        bail!("{reason}; nothing was measured");
    }
    let Some(run) = outcome.runs.into_iter().last() else {
        bail!("nothing was measured");
    };
    match &run.rejected {
        Some(reason) if run.metrics.is_empty() => bail!("bench redis: {reason}"),
        Some(_) | None => {}
    }
    print(&run, args.json)?;
    Ok(ExitCode::SUCCESS)
}

impl Args {
    fn topology(&self) -> Topology {
        if self.cluster {
            Topology::Cluster
        } else {
            self.topology.topology()
        }
    }
}

/// A plan of one visit with one arm, in which strangers may do what they want.
fn plan(args: &Args) -> anyhow::Result<Plan<RedisLoad>> {
    let cores = Cores::choose().context("cannot tell which CPUs this process may use")?;
    let load = RedisLoad {
        test: args.test.test(),
        clients: args.clients,
        pipeline: args.pipeline,
        value_bytes: args.value_bytes,
        client_threads: args.threads,
        io_threads: args.io_threads,
        reconnect: args.reconnect,
        keys: args.keys,
        topology: args.topology(),
    };
    let placement = match args.placement {
        PlacementName::OneCore => Placement::OneCore,
        PlacementName::TwoCores => Placement::TwoCores,
        PlacementName::Unpinned => Placement::Unpinned,
    };
    let hog = args.hog.map_or(Hog::None, HogName::hog);
    let mut cells = cells::cells(&[load], hog, &cores);
    cells.retain(|cell| cell.placement == placement);
    if cells.is_empty() {
        bail!(
            "--placement {} with --hog {} needs two CPUs, this process may use one",
            placement.slug(),
            hog.name()
        );
    }
    Ok(Plan {
        cells,
        pairs: 1,
        seed: 0,
        size: RunSize::Operations(args.requests),
        max_foreign_cores: f64::INFINITY,
    })
}

fn print(run: &Run, json: bool) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    if json {
        writeln!(out, "{}", serde_json::to_string_pretty(run)?)?;
        return Ok(());
    }
    writeln!(out, "{} {}: {:.3} s", run.cell, run.arm, run.seconds)?;
    for (name, value) in &run.metrics {
        writeln!(out, "  {name:<22} {value:>14.3}")?;
    }
    writeln!(out, "  {:<22} {:>14.3}", "foreign_cpu_s", run.foreign_cpu_s)?;
    if let Some(reason) = &run.rejected {
        writeln!(out, "  does not count: {reason}")?;
    }
    Ok(())
}
