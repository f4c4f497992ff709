//! [`JobTarget`]: the servers of one run, ready for the load, and the run of the load.
//!
//! In: an [`Execution`] whose steps up to the load have run. Out: a [`Measured`] with the figures
//! of the load, the servers, hooks, file systems and table checks; then the servers are stopped.

use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;

use saiga_experiment::file::{Arm, Kind};
use saiga_experiment::workload::{Conditions, Failure, Figures, Measured, Target};
use saiga_process::interrupt::Interrupt;
use saiga_redis::RedisTarget;
use saiga_redis::remote::{Lookups, Remote};
use saiga_redis::seed;

use crate::amplification::Amplification;
use crate::execution::Execution;
use crate::load::{LoadOutcome, LoadSpec};
use crate::workload::Core;
use crate::{client, fill, load, proof, tables};

/// The servers of one run, ready for the load.
#[derive(Debug)]
pub enum JobTarget {
    /// The `[[server]]` entries of the file.
    Own(Box<OwnTarget>),
    /// The servers of a Redis topology.
    Private {
        target: Box<RedisTarget>,
        /// Requests per run.
        requests: u64,
        /// Timeout of a run; `None` is that of the engine.
        limit: Option<Duration>,
    },
}

/// The servers of the file, ready for the load.
pub struct OwnTarget {
    pub(crate) core: Rc<Core>,
    /// Index of the arm.
    pub(crate) arm: usize,
    pub(crate) execution: Execution,
    /// The test of redis-benchmark.
    pub(crate) test: Option<String>,
    /// The result of the steps between the load and the stop of the servers.
    pub(crate) after: Result<(), Failure>,
}

impl fmt::Debug for OwnTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OwnTarget")
            .field("execution", &self.execution)
            .finish_non_exhaustive()
    }
}

impl Target for JobTarget {
    fn run(&mut self, _operations: u64, conditions: &Conditions<'_>) -> Result<Measured, Failure> {
        match self {
            Self::Own(own) => own.run(conditions),
            Self::Private {
                target,
                requests,
                limit,
            } => {
                let conditions = Conditions {
                    limit: limit.unwrap_or(conditions.limit),
                    ..*conditions
                };
                target.run(*requests, &conditions)
            }
        }
    }

    fn watches_host(&self) -> bool {
        match self {
            Self::Own(own) => matches!(own.core.file.workload.kind, Kind::Tpcc { .. }),
            Self::Private { .. } => false,
        }
    }

    fn servers(&self) -> Vec<u32> {
        match self {
            Self::Own(own) => pids(&own.execution),
            Self::Private { target, .. } => target.servers(),
        }
    }

    fn devices(&self) -> Vec<String> {
        match self {
            Self::Own(own) => own.core.file.metrics.devices.clone(),
            Self::Private { .. } => Vec::new(),
        }
    }

    fn teardown(self) -> (Figures, Result<(), Failure>) {
        match self {
            Self::Own(own) => {
                let OwnTarget {
                    core,
                    mut execution,
                    after,
                    ..
                } = *own;
                let closed = execution.close(core.context());
                let mut declared = core.file.hook_metrics.iter();
                let missing =
                    declared.find(|one| !execution.figures.values.contains_key(&one.name));
                let complete = missing.map_or(Ok(()), |missing| {
                    let name = &missing.name;
                    let reason = format!("no hook with metrics = true printed {name}");
                    Err(Failure::run(reason))
                });
                (execution.figures, after.and(closed).and(complete))
            }
            Self::Private { target, .. } => target.teardown(),
        }
    }
}

/// The PIDs of the running servers.
fn pids(execution: &Execution) -> Vec<u32> {
    let running = execution.servers.iter().flatten();
    running.map(|one| one.process.child.pid()).collect()
}

impl OwnTarget {
    fn run(&mut self, conditions: &Conditions<'_>) -> Result<Measured, Failure> {
        let Self {
            core,
            arm,
            execution,
            test,
            ..
        } = self;
        let file = &core.file;
        let network = execution.client_network();
        core.read_settings(*arm, network.as_deref())?;
        let results = core.results_folder(&execution.arm.name)?;
        let results = results.as_deref();
        let servers = pids(execution);
        let of_run = results.map(|results| client::RunOptions {
            results,
            servers: &servers,
            devices: &file.metrics.devices,
        });
        let seed = core.takes_seed().then_some(conditions.seed);
        let mut line = client::line(
            file,
            &execution.arm,
            test.as_deref(),
            &core.tool,
            seed,
            of_run,
        );
        line.network = network;
        let before = fill::levels(&file.metrics.fill, "before");
        let lookups = lookups(&execution.arm, test.as_deref())?;
        let dir = execution.dir().to_owned();
        let probe = core.probe.as_deref();
        let spec = LoadSpec {
            kind: &file.workload.kind,
            line,
            dir: &dir,
            limit: file.workload.limit(),
            probed: probe.and_then(|probe| {
                proof::probed(
                    &file.workload.kind,
                    &core.props,
                    &execution.arm,
                    &servers,
                    probe,
                )
            }),
            amplification: Amplification::begin(&file.metrics, &dir)?,
        };
        let LoadOutcome {
            mut measured,
            unanswered,
        } = load::run(spec, execution.processes(), conditions)?;
        measured.metrics.extend(before);
        if let (Some(detail), Some(dir)) = (&mut measured.detail, results) {
            detail.folder = core.relative_to_result(dir);
        }
        measured
            .metrics
            .extend(fill::levels(&file.metrics.fill, "after"));
        if let Some((remote, before)) = lookups {
            add_hit_share(&mut measured, remote, before);
        }
        if let Kind::Redis { flags, .. } = &file.workload.kind {
            per_operation(&mut measured, flags.requests);
        }
        self.end_run(&mut measured, unanswered, conditions.interrupt);
        Ok(measured)
    }

    /// Runs the steps between the load and the stop of the servers. The figures are kept from here
    /// on: a failed hook, an interrupt, and tables that are inconsistent or cannot be checked
    /// reject the run without discarding it.
    fn end_run(&mut self, measured: &mut Measured, unanswered: u64, interrupt: &Interrupt) {
        // Transactions that the server still processes would look like inconsistent tables.
        let obstacle = (unanswered > 0).then(|| {
            format!(
                "{unanswered} connections have no answer; run `saiga bench tpcc check` when the \
                 server answers again"
            )
        });
        let context = self.core.context();
        let ended = self
            .execution
            .end_run(context, obstacle.as_deref(), interrupt);
        let checks = std::mem::take(&mut self.execution.checks);
        tables::apply(measured, checks, self.core.props.len());
        self.after = ended;
    }
}

impl Core {
    /// Whether the load generator has an option for a seed.
    fn takes_seed(&self) -> bool {
        match self.file.workload.kind {
            Kind::Redis { .. } => *self.redis_takes_seed.get_or_init(seed::is_taken),
            Kind::Tpcc { .. } | Kind::Command { .. } => true,
        }
    }

    /// The folder for the results of the next TPC-C run, such as `0007-kernel`; not created yet.
    /// `None` for other loads, which write no files.
    pub(crate) fn results_folder(&self, arm: &str) -> Result<Option<PathBuf>, Failure> {
        let (Some(results), Kind::Tpcc { .. }) = (&self.results, &self.file.workload.kind) else {
            return Ok(None);
        };
        fs::create_dir_all(results).map_err(Failure::impossible)?;
        let entries = fs::read_dir(results).map_err(Failure::impossible)?;
        // One above the highest number, so that the number of a removed folder is not used again.
        let number = |entry: io::Result<fs::DirEntry>| -> Option<u32> {
            let name = entry.ok()?.file_name();
            name.to_str()?.split_once('-')?.0.parse().ok()
        };
        let taken = entries.filter_map(number).max().unwrap_or(0);
        let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
        let arm: String = arm.chars().map(plain).collect();
        Ok(Some(results.join(format!("{:04}-{arm}", taken + 1))))
    }

    /// The path of a folder of results relative to the folder of `result.json`.
    pub(crate) fn relative_to_result(&self, dir: &Path) -> Option<String> {
        let beside = self.results.as_ref()?.parent()?;
        let path = dir.strip_prefix(beside).ok()?;
        Some(path.display().to_string())
    }
}

/// The counters of key look-ups of the arm's first server, before a run of GETs; `None` for other
/// tests.
fn lookups(arm: &Arm, test: Option<&str>) -> Result<Option<(Remote, Lookups)>, Failure> {
    let port = arm.servers.first().and_then(|server| server.port);
    let (Some(port), Some("get")) = (port, test) else {
        return Ok(None);
    };
    let remote = Remote::at(port);
    let counters = remote
        .lookups()
        .map_err(|error| Failure::run(error.to_string()))?;
    Ok(Some((remote, counters)))
}

/// Adds the share of look-ups since `before` that found a key; rejects the run if the server does
/// not answer.
fn add_hit_share(measured: &mut Measured, remote: Remote, before: Lookups) {
    let share = remote.lookups().map(|after| after.share_since(before));
    match share {
        Ok(share) => {
            let named = share.map(|share| ("hit_share".to_owned(), share));
            measured.metrics.extend(named);
        }
        Err(error) => drop(measured.invalid.get_or_insert(error.to_string())),
    }
}

/// Adds the CPU time per request of server, client and both, in microseconds.
fn per_operation(measured: &mut Measured, requests: u64) {
    #[expect(clippy::cast_precision_loss, reason = "counts stay far below 2^53")]
    let requests = requests as f64;
    let cpu = |name: &str| measured.metrics.get(name).copied().unwrap_or(0.0) * 1e6 / requests;
    let (server, client) = (cpu("server_cpu_s"), cpu("client_cpu_s"));
    for (name, value) in [
        ("server", server),
        ("client", client),
        ("total", server + client),
    ] {
        measured
            .metrics
            .insert(format!("{name}_cpu_us_per_op"), value);
    }
}
