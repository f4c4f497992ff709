//! Makes a plan from the options, and prints it for `--dry-run`.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, bail};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use saiga_database::Engine;
use saiga_experiment::arm::ArmKind;
use saiga_experiment::plan::{Cell, Plan, RunSize};
use saiga_experiment::workload::{Load, Workload};
use saiga_process::cores::{Cores, Hog};
use saiga_program::library;
use saiga_redis::{RedisArm, RedisLoad, Test, Topology, cells};
use saiga_sql::SqlLoad;

use super::options::{
    ArmName, CellFlags, Common, EngineName, HogName, LoadFlags, RedisArgs, SqlArgs, TestName,
};

/// Seconds of a run. With ten loads, three placements, three arms and six pairs: 3 to 4 minutes.
const REDIS_RUN: f64 = 0.27;
/// Seconds of a run with idle connections, which take about ten seconds to open and settle. A run
/// is longer than the period of once-a-second activities.
const REDIS_IDLE_RUN: f64 = 1.0;
/// Seconds of a run between two hosts. The kernel counts the CPU time of a host in ticks of 10 ms.
const REDIS_OVER_RUN: f64 = 1.0;
/// Seconds of a run with --full, which takes about half an hour.
const REDIS_FULL_RUN: f64 = 0.6;
/// Seconds of a run. With five loads, three placements, three arms and six pairs: 5 minutes, most
/// of them for starting servers and warming up.
const SQL_RUN: f64 = 0.4;
/// Seconds of a run with --full, which takes hours.
const SQL_FULL_RUN: f64 = 0.6;
/// Seconds of a run between two hosts, as for Redis.
const SQL_OVER_RUN: f64 = REDIS_OVER_RUN;
/// The minimum for a verdict.
const USUAL_PAIRS: u32 = 6;
/// Default number of connections of redis-benchmark.
const USUAL_CLIENTS: u32 = 50;
/// Files that a load generator opens besides its connections, with a margin.
const OTHER_FILES: u64 = 50;
const HOGS: [Hog; 3] = [Hog::First, Hog::Second, Hog::Both];

/// The plan for Redis.
pub(super) fn redis(args: &RedisArgs) -> anyhow::Result<Plan<RedisLoad>> {
    let cores = cores()?;
    let usual = match args.over {
        Some(_) => REDIS_OVER_RUN,
        None if args.idle > 0 => REDIS_IDLE_RUN,
        None if args.full => REDIS_FULL_RUN,
        None => REDIS_RUN,
    };
    let seconds = Duration::from_secs_f64(args.seconds.unwrap_or(usual));
    let size = match args.requests {
        Some(requests) => RunSize::Operations(requests),
        None => RunSize::Lasting(seconds),
    };
    let cells = redis_cells(args, &cores)?;
    of(&args.common, &args.cells, cells, size)
}

/// The plan for these database systems, and the measured length of each run.
pub(super) fn sql(args: &SqlArgs, engines: &[Engine]) -> anyhow::Result<(Plan<SqlLoad>, Duration)> {
    let cores = cores()?;
    let usual = match args.over {
        Some(_) => SQL_OVER_RUN,
        None if args.full => SQL_FULL_RUN,
        None => SQL_RUN,
    };
    let window = Duration::from_secs_f64(args.seconds.unwrap_or(usual));
    check_rate(args.rate, engines)?;
    let timed = |mut loads: Vec<SqlLoad>| {
        for load in &mut loads {
            load.rate = args.rate;
        }
        loads
    };
    let mut cells = Vec::new();
    for &engine in engines {
        if args.full {
            let loads = timed(saiga_sql::cells::full_loads(engine));
            let hogs = [Hog::None].into_iter().chain(HOGS);
            cells.extend(hogs.flat_map(|hog| saiga_sql::cells::cells(&loads, hog, &cores)));
        } else {
            let loads = timed(saiga_sql::cells::default_loads(engine));
            let beside = |hog| saiga_sql::cells::cells(&loads, hog, &cores);
            cells.extend(beside_hogs(&args.cells, beside)?);
        }
    }
    let plan = of(&args.common, &args.cells, cells, RunSize::Timed(window))?;
    Ok((plan, window))
}

/// Fails if a rate is given for sysbench, which does not log when its transactions should have
/// started.
pub(crate) fn check_rate(rate: Option<u32>, engines: &[Engine]) -> anyhow::Result<()> {
    if rate.is_some() && engines.contains(&Engine::MariaDb) {
        bail!("--rate: sysbench logs no latency from a schedule; give --engine postgres");
    }
    Ok(())
}

/// The database systems of `compare sql`, without duplicates.
pub(super) fn engines(args: &SqlArgs) -> anyhow::Result<Vec<Engine>> {
    let mut engines: Vec<Engine> = args.engine.iter().map(|name| name.engine()).collect();
    engines.sort();
    engines.dedup();
    if engines.is_empty() && args.full {
        engines = Engine::ALL.to_vec();
    }
    if engines.is_empty() {
        bail!("give --engine mariadb, --engine postgres, or --engine mariadb,postgres");
    }
    Ok(engines)
}

fn cores() -> anyhow::Result<Cores> {
    Cores::choose().context("cannot tell which CPUs this process may use")
}

/// The cells for each hog that the user gives, or without a hog.
fn beside_hogs<L>(
    flags: &CellFlags,
    cells: impl Fn(Hog) -> Vec<Cell<L>>,
) -> anyhow::Result<Vec<Cell<L>>> {
    let mut wanted = flags.hog.clone();
    wanted.sort();
    wanted.dedup();
    if wanted.is_empty() {
        return Ok(cells(Hog::None));
    }
    let mut all = Vec::new();
    for hog in wanted.into_iter().map(HogName::hog) {
        let beside = cells(hog);
        if beside.is_empty() {
            bail!(
                "--hog {}: needs two CPUs, but this process may use only one",
                hog.name()
            );
        }
        all.extend(beside);
    }
    Ok(all)
}

/// A plan with the selected cells and the given number of runs.
fn of<L>(
    common: &Common,
    flags: &CellFlags,
    mut cells: Vec<Cell<L>>,
    size: RunSize,
) -> anyhow::Result<Plan<L>> {
    let only = &flags.only;
    if !only.is_empty() {
        cells.retain(|cell| only.iter().any(|text| cell.id.contains(text.as_str())));
        if cells.is_empty() {
            bail!(
                "--only {}: no cell's name contains this; --dry-run lists the cells",
                only.join(" ")
            );
        }
    }
    let Common { pace, stopping, .. } = common;
    stopping.check(&cells)?;
    Ok(Plan {
        cells,
        pairs: stopping.pairs(pace.pairs.unwrap_or(USUAL_PAIRS)),
        seed: stopping.seed(pace.seed, common.out.as_deref())?,
        size,
        max_foreign_cores: pace.max_foreign_cores(),
    })
}

/// The cells of `compare redis`.
fn redis_cells(args: &RedisArgs, cores: &Cores) -> anyhow::Result<Vec<Cell<RedisLoad>>> {
    let topology = args.topology();
    let own = own_loads(&args.load, topology)?;
    if own.is_some() && args.full {
        bail!("--full selects the loads; do not combine it with -t, -c, -d, -k, -r or --threads");
    }
    let few = own.is_some() || !args.full || topology != Topology::Standalone;
    if few {
        let loads = own.unwrap_or_else(|| match topology {
            Topology::Standalone if args.idle > 0 => cells::idle_loads(),
            Topology::Standalone => cells::default_loads(),
            Topology::Replica | Topology::Sentinel | Topology::Cluster => {
                cells::topology_loads(topology, args.full)
            }
        });
        return beside_hogs(&args.cells, |hog| cells::cells(&loads, hog, cores));
    }
    let mut all = cells::cells(&cells::full_loads(), Hog::None, cores);
    for hog in HOGS {
        all.extend(cells::cells(&cells::hog_loads(), hog, cores));
    }
    Ok(all)
}

/// The loads that redis-benchmark's options describe; `None` if none is given.
fn own_loads(flags: &LoadFlags, topology: Topology) -> anyhow::Result<Option<Vec<RedisLoad>>> {
    let LoadFlags {
        tests,
        clients,
        value_bytes,
        keep_alive,
        keys,
        threads,
        cluster: _,
    } = flags;
    if flags.first_load_flag().is_none() {
        return Ok(None);
    }
    let wanted = match tests.as_slice() {
        [] => &[TestName::Set, TestName::Get],
        wanted => wanted,
    };
    let mut counts = clients.clone();
    counts.sort_unstable();
    counts.dedup();
    if counts.is_empty() {
        counts.push(USUAL_CLIENTS);
    }
    counts.iter().try_for_each(|count| check_clients(*count))?;
    let load = |test, clients| {
        let usual = RedisLoad::new(test, clients);
        RedisLoad {
            value_bytes: value_bytes.unwrap_or(usual.value_bytes),
            keys: keys.unwrap_or(usual.keys),
            reconnect: *keep_alive == Some(0),
            client_threads: threads.unwrap_or(usual.client_threads),
            topology,
            ..usual
        }
    };
    let tests = self::tests(wanted, topology)?.into_iter();
    let loads = tests.flat_map(|test| counts.iter().map(move |&clients| load(test, clients)));
    Ok(Some(loads.collect()))
}

/// Each test once, in the given order. Only sentinels fail over to another master.
pub(crate) fn tests(names: &[TestName], topology: Topology) -> anyhow::Result<Vec<Test>> {
    if names.contains(&TestName::Failover) && topology != Topology::Sentinel {
        bail!("-t failover needs --topology sentinel, not {topology}");
    }
    let mut tests = Vec::new();
    for test in names.iter().map(|name| name.test()) {
        if !tests.contains(&test) {
            tests.push(test);
        }
    }
    Ok(tests)
}

/// Refuses AF_UNIX arms for several servers, which connect to each other by TCP only.
pub(crate) fn check_arms(arms: &[ArmName], topology: Topology) -> anyhow::Result<()> {
    if arms.contains(&ArmName::Unix) && topology != Topology::Standalone {
        bail!(
            "the unix arm cannot be used with topology {topology}: its servers connect to each \
             other by TCP"
        );
    }
    Ok(())
}

/// Checks that idle connections are possible: by TCP, to one server with a descriptor for each.
pub(crate) fn check_idle<'a>(
    idle: u32,
    arms: &[ArmName],
    loads: impl IntoIterator<Item = &'a RedisLoad>,
) -> anyhow::Result<()> {
    if idle == 0 {
        return Ok(());
    }
    if arms.contains(&ArmName::Unix) {
        bail!("the unix arm cannot be used with --idle: idle connections use TCP");
    }
    let allowed = getrlimit(Resource::Nofile).maximum;
    for load in loads {
        if load.topology != Topology::Standalone {
            bail!("--idle needs --topology standalone, not {}", load.topology);
        }
        let needed = RedisArm::server_descriptors(load, idle);
        if let Some(allowed) = allowed.filter(|allowed| u64::from(needed) > *allowed) {
            bail!(
                "--idle {idle} beside {} clients: redis-server needs {needed} descriptors, but the \
                 hard limit is {allowed} (ulimit -Hn); give fewer, or raise the limit",
                load.clients
            );
        }
    }
    Ok(())
}

/// The path of this program, which is also the client of fail-overs.
pub(crate) fn this_tool() -> anyhow::Result<PathBuf> {
    std::env::current_exe().context("cannot find the path of this program")
}

impl HogName {
    pub(crate) fn hog(self) -> Hog {
        match self {
            Self::None => Hog::None,
            Self::First => Hog::First,
            Self::Second => Hog::Second,
            Self::Both => Hog::Both,
        }
    }
}

impl EngineName {
    pub(crate) fn engine(self) -> Engine {
        match self {
            Self::Mariadb => Engine::MariaDb,
            Self::Postgres => Engine::Postgres,
        }
    }
}

/// The arms; finds the library if one of them needs it.
pub(crate) fn arm_kinds(names: &[ArmName]) -> anyhow::Result<Vec<ArmKind>> {
    let kind = |name: &ArmName| match name {
        ArmName::Kernel => Ok(ArmKind::Kernel),
        ArmName::Unix => Ok(ArmKind::Unix),
        ArmName::Saiga => Ok(ArmKind::Saiga(library::find()?)),
        ArmName::Gateway => bail!("the gateway arm needs two hosts: add --over veth or --over tap"),
    };
    names.iter().map(kind).collect()
}

/// The arms of `--library`. Fails if two arms would have the same name.
pub(crate) fn builds(files: &[PathBuf], others: &[ArmKind]) -> anyhow::Result<Vec<ArmKind>> {
    let mut known: Vec<String> = others.iter().map(|kind| kind.name().into_owned()).collect();
    let build = |file: &PathBuf| {
        let whole = file
            .canonicalize()
            .with_context(|| format!("--library {}", file.display()))?;
        if !whole.is_file() || library::machine(&whole).is_err() {
            bail!(
                "--library {}: not a readable shared library; give the libsaiga.so of a build",
                file.display()
            );
        }
        library::check(&whole).with_context(|| format!("--library {}", file.display()))?;
        let kind = ArmKind::Saiga(whole);
        let name = kind.name().into_owned();
        if known.contains(&name) {
            bail!(
                "--library {}: an arm named {name} exists already; rename the file",
                file.display()
            );
        }
        known.push(name);
        Ok(kind)
    };
    files.iter().map(build).collect()
}

/// Raises the soft limit of open files to the hard limit, for child processes.
pub(crate) fn raise_descriptor_limit() {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    // Ignored: loads with very many clients then report the limit.
    let _ = setrlimit(
        Resource::Nofile,
        Rlimit {
            current: maximum,
            maximum,
        },
    );
}

/// Checks that redis-benchmark can have so many connections.
pub(crate) fn check_clients(clients: u32) -> anyhow::Result<()> {
    if clients > RedisLoad::MAX_CLIENTS {
        bail!(
            "-c {clients}: redis-benchmark uses at most {} connections, and sends nothing on \
             further ones",
            RedisLoad::MAX_CLIENTS
        );
    }
    check_connections(clients)
}

/// Checks that the client may open a file for each connection.
pub(crate) fn check_connections(connections: u32) -> anyhow::Result<()> {
    match getrlimit(Resource::Nofile).maximum {
        Some(limit) if u64::from(connections) + OTHER_FILES > limit => bail!(
            "-c {connections} needs {} open files, but the limit is {limit} (ulimit -Hn)",
            u64::from(connections) + OTHER_FILES
        ),
        Some(_) | None => Ok(()),
    }
}

/// Prints every command in order, after the sentences that are known beforehand.
pub(super) fn print_steps<W: Workload>(
    workload: &W,
    plan: &Plan<W::Load>,
    known: &[String],
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
    for line in known {
        writeln!(out, "# {line}")?;
    }
    match plan.size {
        RunSize::Operations(_) | RunSize::Timed(_) => {}
        RunSize::Lasting(length) => writeln!(
            out,
            "# -n is a first estimate; calibration makes runs last about {} s, longer with many \
             clients",
            length.as_secs_f64()
        )?,
    }
    for visit in plan.visits(arms.len()) {
        let cell = &plan.cells[visit.cell];
        writeln!(out, "\n# {}, pair {}", cell.id, visit.pair + 1)?;
        for arm in visit.order {
            let operations = match plan.size {
                RunSize::Operations(operations) => operations,
                RunSize::Lasting(_) | RunSize::Timed(_) => cell.load.first_guess(),
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
