//! `saiga bench sql`: one load of sysbench or pgbench.

use std::process::ExitCode;
use std::time::Duration;

use clap::ValueEnum;
use saiga_experiment::plan::RunSize;
use saiga_experiment::workload::Load;
use saiga_sql::{SqlLoad, SqlWorkload, Test, cells};

use super::Conditions;
use crate::compare::{EngineName, arm_kinds, check_connections, check_rate, probe, seconds};

/// Options of `saiga bench sql`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The database system
    #[arg(long, value_enum)]
    engine: EngineName,
    /// Type of the transactions
    #[arg(short = 't', long = "test", value_enum, default_value_t = TestName::Select)]
    test: TestName,
    /// Parallel connections
    #[arg(short, long, value_name = "N", default_value_t = 16, value_parser = clap::value_parser!(u32).range(1..))]
    clients: u32,
    /// Measured time in seconds, after the warm-up
    #[arg(long, value_name = "S", default_value_t = 1.0, value_parser = seconds)]
    seconds: f64,
    /// Start this many transactions per second by a schedule, from which their latency counts
    /// (PostgreSQL)
    #[arg(long, value_name = "N/s", value_parser = clap::value_parser!(u32).range(1..))]
    rate: Option<u32>,
    /// Close each connection after one transaction
    #[arg(long)]
    reconnect: bool,
    #[command(flatten)]
    conditions: Conditions,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum TestName {
    /// Read one row by its key: sysbench oltp_point_select, pgbench -S
    Select,
    /// Read and write: sysbench oltp_read_write, pgbench's TPC-B
    ReadWrite,
}

pub(super) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let Args { conditions, .. } = args;
    let load = args.load();
    check_connections(args.clients)?;
    check_rate(args.rate, &[load.engine])?;
    let length = Duration::from_secs_f64(args.seconds);
    // The workload multiplies the length for such a load; here the given length applies.
    let window = length.div_f64(load.length_factor());
    let engines = [load.engine];
    let size = RunSize::Timed(length);
    let plan = conditions.plan(|hog, cores| cells::cells(&[load], hog, cores), size)?;
    let workload = SqlWorkload::new(
        &engines,
        &arm_kinds(&[conditions.arm])?,
        conditions.port,
        None,
        window,
        Some(probe::status_pages()),
    )?;
    conditions.measure(&workload, &[plan])
}

impl Args {
    fn load(&self) -> SqlLoad {
        let test = match self.test {
            TestName::Select => Test::Select,
            TestName::ReadWrite => Test::ReadWrite,
        };
        SqlLoad {
            engine: self.engine.engine(),
            test,
            connections: self.clients,
            reconnect: self.reconnect,
            rate: self.rate,
        }
    }
}
