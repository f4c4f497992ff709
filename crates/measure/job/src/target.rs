//! Servers of a file that are ready for a run, and the run.

use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;

use saiga_experiment::file::{Arm, Kind};
use saiga_experiment::interrupt::Interrupt;
use saiga_experiment::workload::{Conditions, Failure, Figures, Measured, Target};
use saiga_redis::RedisTarget;
use saiga_redis::remote::{Lookups, Remote};
use saiga_redis::seed;

use crate::amplification::Amplification;
use crate::load::{Once, Ran};
use crate::site::Site;
use crate::workload::Core;
use crate::{client, fill, load, proof, tables};

/// Servers that are ready.
#[derive(Debug)]
pub enum JobTarget {
    /// Those of the file.
    Own(Box<OwnTarget>),
    /// Those of a topology.
    Private {
        /// Them and their load.
        target: Box<RedisTarget>,
        /// How many requests a run has.
        requests: u64,
        /// A run that takes longer is stopped.
        limit: Option<Duration>,
    },
}

/// The servers of the file, ready for a run.
pub struct OwnTarget {
    pub(crate) core: Rc<Core>,
    /// Which of the arms.
    pub(crate) arm: usize,
    pub(crate) site: Site,
    pub(crate) test: Option<String>,
    /// How the steps between the load and the end of the servers went.
    pub(crate) after: Result<(), Failure>,
}

impl fmt::Debug for OwnTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OwnTarget")
            .field("site", &self.site)
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
            Self::Own(own) => pids(&own.site),
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
                    mut site,
                    after,
                    ..
                } = *own;
                let closed = site.close(core.campaign());
                let mut declared = core.file.hook_metrics.iter();
                let missing = declared.find(|one| !site.figures.values.contains_key(&one.name));
                let complete = missing.map_or(Ok(()), |missing| {
                    let name = &missing.name;
                    let reason = format!("no hook with metrics = true printed {name}");
                    Err(Failure::run(reason))
                });
                (site.figures, after.and(closed).and(complete))
            }
            Self::Private { target, .. } => target.teardown(),
        }
    }
}

/// The servers that run.
fn pids(site: &Site) -> Vec<u32> {
    let running = site.servers.iter().flatten();
    running.map(|one| one.process.child.pid()).collect()
}

impl OwnTarget {
    fn run(&mut self, conditions: &Conditions<'_>) -> Result<Measured, Failure> {
        let Self {
            core,
            arm,
            site,
            test,
            ..
        } = self;
        let file = &core.file;
        core.ask_settings(*arm)?;
        let results = core.results_folder(&site.arm.name)?;
        let results = results.as_deref();
        let servers = pids(site);
        let told = results.map(|results| client::Told {
            results,
            servers: &servers,
            devices: &file.metrics.devices,
        });
        let seed = core.takes_seed().then_some(conditions.seed);
        let line = client::line(file, &site.arm, test.as_deref(), &core.tool, seed, told);
        let before = fill::levels(&file.metrics.fill, "before");
        let lookups = lookups(&site.arm, test.as_deref())?;
        let dir = site.dir().to_owned();
        let probe = core.probe.as_deref();
        let once = Once {
            kind: &file.workload.kind,
            line,
            dir: &dir,
            limit: file.workload.limit(),
            accelerated: probe.and_then(|probe| {
                proof::asked(&file.workload.kind, &core.props, &site.arm, &servers, probe)
            }),
            amplification: Amplification::begin(&file.metrics, &dir)?,
        };
        let Ran {
            mut measured,
            unanswered,
        } = load::run(once, &mut site.servers, conditions)?;
        measured.metrics.extend(before);
        if let (Some(detail), Some(dir)) = (&mut measured.detail, results) {
            detail.folder = core.seen_from_result(dir);
        }
        measured
            .metrics
            .extend(fill::levels(&file.metrics.fill, "after"));
        if let Some((remote, before)) = lookups {
            let share = remote.lookups().map(|after| after.share_since(before));
            match share {
                Ok(share) => {
                    let named = share.map(|share| ("hit_share".to_owned(), share));
                    measured.metrics.extend(named);
                }
                Err(error) => drop(measured.invalid.get_or_insert(error.to_string())),
            }
        }
        if let Kind::Redis { flags, .. } = &file.workload.kind {
            per_operation(&mut measured, flags.requests);
        }
        self.end_run(&mut measured, unanswered, conditions.interrupt);
        Ok(measured)
    }

    /// Runs the steps between the load and the end of the servers. From here on the figures stay: a
    /// hook that fails, the user who stops the experiment, and tables that are broken or cannot be
    /// checked mark the run.
    fn end_run(&mut self, measured: &mut Measured, unanswered: u64, interrupt: &Interrupt) {
        // What the server still works on would look like a fault.
        let obstacle = (unanswered > 0).then(|| {
            format!(
                "{unanswered} connections have no answer; `saiga bench tpcc check` tells when the \
                 server is well again"
            )
        });
        let campaign = self.core.campaign();
        let ended = self.site.end_run(campaign, obstacle.as_deref(), interrupt);
        let looks = std::mem::take(&mut self.site.looks);
        tables::judge(measured, looks, self.core.props.len());
        self.after = ended;
    }
}

impl Core {
    /// Whether the load generator can be given a seed.
    fn takes_seed(&self) -> bool {
        match self.file.workload.kind {
            Kind::Redis { .. } => *self.redis_takes_seed.get_or_init(seed::is_taken),
            Kind::Tpcc { .. } | Kind::Command { .. } => true,
        }
    }

    /// A new folder for what a run of TPC-C measures, in the order of their names; `None` for
    /// other loads, whose output is all there is.
    pub(crate) fn results_folder(&self, arm: &str) -> Result<Option<PathBuf>, Failure> {
        let (Some(results), Kind::Tpcc { .. }) = (&self.results, &self.file.workload.kind) else {
            return Ok(None);
        };
        fs::create_dir_all(results).map_err(Failure::impossible)?;
        let entries = fs::read_dir(results).map_err(Failure::impossible)?;
        // Behind the last one: who removes one of them must not have another take its number.
        let number = |entry: io::Result<fs::DirEntry>| -> Option<u32> {
            let name = entry.ok()?.file_name();
            name.to_str()?.split_once('-')?.0.parse().ok()
        };
        let taken = entries.filter_map(number).max().unwrap_or(0);
        let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
        let arm: String = arm.chars().map(plain).collect();
        Ok(Some(results.join(format!("{:04}-{arm}", taken + 1))))
    }

    /// A folder of results, seen from `result.json` beside them.
    pub(crate) fn seen_from_result(&self, dir: &Path) -> Option<String> {
        let beside = self.results.as_ref()?.parent()?;
        let path = dir.strip_prefix(beside).ok()?;
        Some(path.display().to_string())
    }
}

/// What redis-benchmark's server has looked up so far, where the run reads.
fn lookups(arm: &Arm, test: Option<&str>) -> Result<Option<(Remote, Lookups)>, Failure> {
    let port = arm.servers.first().and_then(|server| server.port);
    let (Some(port), Some("get")) = (port, test) else {
        return Ok(None);
    };
    let remote = Remote::at(port);
    let seen = remote
        .lookups()
        .map_err(|error| Failure::run(error.to_string()))?;
    Ok(Some((remote, seen)))
}

/// CPU time of both sides by request.
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
