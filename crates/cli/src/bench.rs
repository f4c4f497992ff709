//! `saiga bench`: runs of one load, with the same records as in `result.json`.
//!
//! Starts private servers, runs the load and stops the servers, once for each requested load. Exit
//! status 1 if a run is not valid. Comparisons and verdicts are left to `compare`, because a single
//! run says nothing about another.

mod redis;
mod sql;
mod tpcc;

use std::io::Write;
use std::process::ExitCode;

use anyhow::{Context, bail};
use clap::{Subcommand, ValueEnum};
use saiga_experiment::engine::{self, Extras};
use saiga_experiment::plan::{Cell, Plan, RunSize};
use saiga_experiment::result::Run;
use saiga_experiment::workload::Workload;
use saiga_process::cores::{Cores, Hog, Placement};
use saiga_process::interrupt::Interrupt;

use crate::compare::{ArmName, HogName, raise_descriptor_limit};
use crate::exit;
use crate::host::{BesideRuns, Host};

/// Options of `saiga bench`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    load: Load,
}

#[derive(Debug, Subcommand)]
enum Load {
    /// Redis with redis-benchmark, on one server or several
    Redis(redis::Args),
    /// MariaDB with sysbench, or PostgreSQL with pgbench
    Sql(sql::Args),
    /// TPC-C on the tables of BenchmarkSQL, configured by its props files
    Tpcc(tpcc::Args),
}

/// Options that every load has.
#[derive(Debug, clap::Args)]
struct Conditions {
    /// How the client connects to the server
    #[arg(long, value_enum, default_value_t = ArmName::Saiga)]
    arm: ArmName,
    /// CPUs of the client and the server
    #[arg(long, value_enum, default_value_t = PlacementName::Unpinned)]
    placement: PlacementName,
    /// Keep the server's core (0), the client's (1) or both busy
    #[arg(long, value_enum, default_value_t = HogName::None)]
    hog: HogName,
    /// First port of the private servers on 127.0.0.1 (default: free ports)
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..))]
    port: Option<u16>,
    /// Print each record as one line of JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum PlacementName {
    /// Both on the same core
    OneCore,
    /// Each on a core of its own
    TwoCores,
    /// Chosen by the scheduler
    Unpinned,
}

/// Runs one load and prints its record.
pub(crate) fn run(args: Args) -> anyhow::Result<ExitCode> {
    match args.load {
        Load::Redis(args) => redis::run(&args),
        Load::Sql(args) => sql::run(&args),
        Load::Tpcc(args) => tpcc::run(args),
    }
}

impl PlacementName {
    fn placement(self) -> Placement {
        match self {
            Self::OneCore => Placement::OneCore,
            Self::TwoCores => Placement::TwoCores,
            Self::Unpinned => Placement::Unpinned,
        }
    }
}

impl Conditions {
    /// A plan of one visit with one arm, without a limit on the CPU use of other processes. `cells`
    /// lists the cells of a load beside a hog.
    fn plan<L>(
        &self,
        cells: impl FnOnce(Hog, &Cores) -> Vec<Cell<L>>,
        size: RunSize,
    ) -> anyhow::Result<Plan<L>> {
        let cores = Cores::choose().context("cannot tell which CPUs this process may use")?;
        let (placement, hog) = (self.placement.placement(), self.hog.hog());
        let mut cells = cells(hog, &cores);
        cells.retain(|cell| cell.placement == placement);
        if cells.is_empty() && cores.second.is_none() {
            bail!(
                "--placement {} with --hog {} needs two CPUs, but this process may use only one",
                placement.slug(),
                hog.name()
            );
        }
        if cells.is_empty() {
            bail!(
                "--placement {}: this load can only run unpinned",
                placement.slug()
            );
        }
        Ok(Plan {
            cells,
            pairs: 1,
            seed: 0,
            size,
            max_foreign_cores: f64::INFINITY,
        })
    }

    /// Runs one plan after the other and prints the record of each finished run.
    fn measure<W: Workload>(
        &self,
        workload: &W,
        plans: &[Plan<W::Load>],
    ) -> anyhow::Result<ExitCode> {
        raise_descriptor_limit();
        let interrupt = Interrupt::on_signals().context("cannot watch for Ctrl-C")?;
        let mut all_count = true;
        for plan in plans {
            let run = measured(workload, plan, &interrupt)?;
            print(&run, self.json)?;
            all_count &= run.rejected.is_none();
        }
        Ok(if all_count {
            ExitCode::SUCCESS
        } else {
            ExitCode::from(exit::NO)
        })
    }
}

/// Runs `plan` and returns its only run.
fn measured<W: Workload>(
    workload: &W,
    plan: &Plan<W::Load>,
    interrupt: &Interrupt,
) -> anyhow::Result<Run> {
    let host = Host::default();
    let mut beside = BesideRuns::new(&host, None);
    let extras = Extras {
        observer: Some(&mut beside),
        ..Extras::default()
    };
    let outcome = engine::execute_with(workload, plan, extras, interrupt, &mut |_| {})?;
    beside
        .problem()
        .iter()
        .for_each(|problem| exit::say(problem));
    if let Some(reason) = outcome.stopped {
        bail!("{reason}; {} was not measured", plan.cells[0].id);
    }
    let Some(run) = outcome.runs.into_iter().last() else {
        bail!("nothing was measured");
    };
    match &run.rejected {
        Some(reason) if run.metrics.is_empty() => bail!("bench {}: {reason}", workload.name()),
        Some(_) | None => Ok(run),
    }
}

fn print(run: &Run, json: bool) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    if json {
        writeln!(out, "{}", serde_json::to_string(run)?)?;
        return Ok(());
    }
    writeln!(out, "{} {}: {:.3} s", run.cell, run.arm, run.seconds)?;
    for (name, value) in &run.metrics {
        writeln!(out, "  {name:<22} {value:>14.3}")?;
    }
    writeln!(out, "  {:<22} {:>14.3}", "foreign_cpu_s", run.foreign_cpu_s)?;
    if let Some(reason) = &run.rejected {
        writeln!(out, "  not valid: {reason}")?;
    }
    Ok(())
}
