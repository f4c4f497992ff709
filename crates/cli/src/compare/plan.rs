//! From options to a plan, and the plan as text for `--dry-run`.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, bail};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use saiga_experiment::cores::{Cores, Hog};
use saiga_experiment::plan::{Cell, Plan, RunSize};
use saiga_experiment::workload::Workload;
use saiga_redis::{ArmKind, RedisLoad, RedisWorkload, Topology, cells};

use crate::library;

use super::options::{Args, ArmName, HogName, LoadFlags, TestName};

/// With ten loads, three placements, three arms and six pairs: 3.5 minutes.
const DEFAULT_RUN: f64 = 0.27;
/// About twenty minutes.
const FULL_RUN: f64 = 0.6;

/// Everything that the options ask for.
pub(super) fn of(args: &Args) -> anyhow::Result<Plan<RedisLoad>> {
    let cores = Cores::choose().context("cannot tell which CPUs this process may use")?;
    let pace = &args.pace;
    let seconds = pace
        .seconds
        .unwrap_or(if args.full { FULL_RUN } else { DEFAULT_RUN });
    let size = match pace.requests {
        Some(requests) => RunSize::Operations(requests),
        None => RunSize::Lasting(Duration::from_secs_f64(seconds)),
    };
    let mut cells = chosen_cells(args, &cores)?;
    if !args.only.is_empty() {
        cells.retain(|cell| args.only.iter().any(|text| cell.id.contains(text.as_str())));
        if cells.is_empty() {
            bail!(
                "--only {}: no cell has such a name; --dry-run lists them",
                args.only.join(" ")
            );
        }
    }
    Ok(Plan {
        cells,
        pairs: pace.pairs,
        seed: pace.seed.unwrap_or_else(|| fastrand::u64(0..1_000_000)),
        size,
        max_foreign_cores: pace.max_foreign,
    })
}

fn chosen_cells(args: &Args, cores: &Cores) -> anyhow::Result<Vec<Cell<RedisLoad>>> {
    let topology = args.topology();
    let own = own_loads(&args.load, topology)?;
    if own.is_some() && args.full {
        bail!("--full chooses the loads; leave it out beside -t, -c, -d, -r and --threads");
    }
    let few = own.is_some() || !args.full || topology != Topology::Standalone;
    if few {
        let hog = args.hog.map_or(Hog::None, HogName::hog);
        let loads = own.unwrap_or_else(|| match topology {
            Topology::Standalone => cells::default_loads(),
            Topology::Replica | Topology::Sentinel | Topology::Cluster => {
                cells::topology_loads(topology, args.full)
            }
        });
        let cells = cells::cells(&loads, hog, cores);
        if cells.is_empty() {
            bail!(
                "--hog {}: needs two CPUs, this process may use one",
                hog.name()
            );
        }
        return Ok(cells);
    }
    let mut all = cells::cells(&cells::full_loads(), Hog::None, cores);
    for hog in [Hog::First, Hog::Second, Hog::Both] {
        all.extend(cells::cells(&cells::hog_loads(), hog, cores));
    }
    Ok(all)
}

/// The loads that redis-benchmark's flags describe; `None` when none of them is given.
fn own_loads(flags: &LoadFlags, topology: Topology) -> anyhow::Result<Option<Vec<RedisLoad>>> {
    let LoadFlags {
        tests,
        clients,
        value_bytes,
        keys,
        threads,
        cluster: _,
    } = flags;
    let numbers = [clients, value_bytes, keys, threads];
    if tests.is_empty() && numbers.iter().all(|number| number.is_none()) {
        return Ok(None);
    }
    let tests = match tests.as_slice() {
        [] => &[TestName::Set, TestName::Get],
        tests => tests,
    };
    let load = |test: &TestName| {
        check_test(*test, topology)?;
        let usual = RedisLoad::new(test.test(), clients.unwrap_or(50));
        Ok(RedisLoad {
            value_bytes: value_bytes.unwrap_or(usual.value_bytes),
            keys: keys.unwrap_or(usual.keys),
            client_threads: threads.unwrap_or(usual.client_threads),
            topology,
            ..usual
        })
    };
    tests
        .iter()
        .map(load)
        .collect::<anyhow::Result<_>>()
        .map(Some)
}

/// Only sentinels fail over to another master.
pub(crate) fn check_test(test: TestName, topology: Topology) -> anyhow::Result<()> {
    if test == TestName::Failover && topology != Topology::Sentinel {
        bail!("-t failover needs --topology sentinel, not {topology}");
    }
    Ok(())
}

/// Servers reach each other by TCP only.
pub(crate) fn check_arms(arms: &[ArmName], topology: Topology) -> anyhow::Result<()> {
    if arms.contains(&ArmName::Unix) && topology != Topology::Standalone {
        bail!("the unix arm has no {topology} topology: servers reach each other by TCP");
    }
    Ok(())
}

/// The file of this program, which is also the writer of fail-overs.
pub(crate) fn this_tool() -> anyhow::Result<PathBuf> {
    std::env::current_exe().context("cannot tell which file this program is")
}

impl HogName {
    /// The same for the engine.
    pub(crate) fn hog(self) -> Hog {
        match self {
            Self::First => Hog::First,
            Self::Second => Hog::Second,
            Self::Both => Hog::Both,
        }
    }
}

/// The arms, the library found when one of them needs it.
pub(crate) fn arm_kinds(names: &[ArmName]) -> anyhow::Result<Vec<ArmKind>> {
    let kind = |name: &ArmName| match name {
        ArmName::Kernel => Ok(ArmKind::Kernel),
        ArmName::Unix => Ok(ArmKind::Unix),
        ArmName::Saiga => library::find().map(ArmKind::Saiga),
    };
    names.iter().map(kind).collect()
}

/// Lets our children open as many connections as the hard limit allows.
pub(crate) fn raise_descriptor_limit() {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    // When it fails, only loads with very many clients do, and they say why.
    let _ = setrlimit(
        Resource::Nofile,
        Rlimit {
            current: maximum,
            maximum,
        },
    );
}

/// Prints every command of every visit, in order.
pub(super) fn print_steps(
    workload: &RedisWorkload,
    plan: &Plan<RedisLoad>,
) -> anyhow::Result<ExitCode> {
    let arms = workload.arms();
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    writeln!(
        out,
        "# {} cells x {} arms x {} pairs = {} runs, seed {}",
        plan.cells.len(),
        arms.len(),
        plan.pairs,
        plan.cells.len() * arms.len() * usize::try_from(plan.pairs)?,
        plan.seed
    )?;
    match plan.size {
        RunSize::Operations(_) => {}
        RunSize::Lasting(length) => writeln!(
            out,
            "# -n stands for the first guess; calibration makes runs last about {} s, more with many clients",
            length.as_secs_f64()
        )?,
    }
    for visit in plan.visits(arms.len()) {
        let cell = &plan.cells[visit.cell];
        writeln!(out, "\n# {}, pair {}", cell.id, visit.pair + 1)?;
        for arm in visit.order {
            let operations = match plan.size {
                RunSize::Operations(operations) => operations,
                RunSize::Lasting(_) => workload.first_guess(&cell.load),
            };
            writeln!(out, "# arm {}", arms[arm].name)?;
            for step in workload.steps(arm, cell, operations) {
                writeln!(out, "{step}")?;
            }
        }
    }
    out.flush()?;
    Ok(ExitCode::SUCCESS)
}
