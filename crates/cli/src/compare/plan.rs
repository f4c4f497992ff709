//! From options to a plan, and the plan as text for `--dry-run`.

use std::io::Write;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, bail};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use saiga_experiment::arm::ArmKind;
use saiga_experiment::cores::{Cores, Hog};
use saiga_experiment::plan::{Cell, Plan, RunSize};
use saiga_experiment::workload::Workload;
use saiga_redis::{RedisLoad, RedisWorkload, cells};

use crate::library;

use super::options::{Args, ArmName, HogName};

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
    if !args.full {
        let hog = args.hog.map_or(Hog::None, HogName::hog);
        let cells = cells::cells(&cells::default_loads(), hog, cores);
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
        RunSize::Operations(_) | RunSize::Timed(_) => {}
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
                RunSize::Lasting(_) | RunSize::Timed(_) => workload.first_guess(&cell.load),
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
