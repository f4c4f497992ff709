//! Parses experiment files: the description of a campaign in TOML.
//!
//! All errors of a file are reported together, each with its line and, for unknown keys, the
//! nearest known key. Values may contain `${NAME}` (see `variables`). The result is plain data that
//! does not depend on this machine. The user documentation is `docs/experiments.md`.

mod arm;
mod expect;
mod flags;
mod hook;
mod metric;
mod reader;
mod restore;
mod server;
mod tree;
mod variables;
mod words;
mod workload;

use std::cell::RefCell;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

pub use arm::Arm;
pub use expect::Expectation;
pub use flags::Flags;
pub use hook::{Around, Hook, Hooks, OnFailure, Point};
pub use metric::{WAF, printed};
pub use restore::{How, LinkedFiles, Reflink, Restore};
pub use server::{How as StopHow, Launch, Probe, Ready, Server, Stop};
pub use words::{WordsError, split};
pub use workload::{Extract, Kind, TableCheck, Workload};

use crate::analysis;
use crate::result::Metric;
use crate::two_hosts::{self, Wire};
use reader::{Problems, Table};

/// The predefined variable: the folder of the file.
const HERE: &str = "HERE";
/// Default number of runs of each arm: the fewest that give a verdict.
const DEFAULT_PAIRS: u64 = 6;

/// A parsed experiment file.
#[derive(Debug, Clone)]
pub struct Experiment {
    pub path: PathBuf,
    /// A short name for reports.
    pub name: String,
    /// The question that the experiment answers.
    pub goal: Option<String>,
    pub plan: PlanOptions,
    /// The compared arms, the reference first.
    pub arms: Vec<Arm>,
    /// The wire between the hosts of server and client; `None` if both are on this host.
    pub wire: Option<Wire>,
    pub workload: Workload,
    pub restore: Restore,
    /// Hooks of all arms.
    pub hooks: Hooks,
    pub metrics: HostMetrics,
    /// Declared metrics of figures that hooks print.
    pub hook_metrics: Vec<Metric>,
    /// The metric of the headline, if the file names one.
    pub headline: Option<String>,
    pub expectations: Vec<Expectation>,
}

/// Number and order of runs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PlanOptions {
    /// Number of runs of each arm in each cell.
    pub pairs: u32,
    /// End the experiment as soon as half the width of the interval is at most this fraction: 0.02
    /// for 2 %.
    pub until: Option<f64>,
    /// Seed of the random order; `None` for a new seed.
    pub seed: Option<u64>,
    /// Limit on the CPU time of foreign processes in cores; `None` for
    /// [`default_foreign_cores`](saiga_process::cpu::default_foreign_cores).
    pub max_foreign_cores: Option<f64>,
}

/// Metrics of the host besides CPU time.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HostMetrics {
    /// Disks and network interfaces to sample.
    pub devices: Vec<String>,
    /// Directories whose file systems' fill levels are recorded.
    pub fill: Vec<PathBuf>,
    /// Drives whose write amplification is measured.
    pub waf: Vec<PathBuf>,
    /// Interval between samples of these drives; `None` for an hour.
    pub waf_every: Option<Duration>,
}

/// The file is not a usable experiment file.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    #[error("cannot read {}: {error}", path.display())]
    Unreadable { path: PathBuf, error: io::Error },
    /// The contents are invalid.
    #[error("{} is not a valid experiment file:{}", path.display(), listed(problems))]
    Invalid {
        path: PathBuf,
        /// One message per problem, in the order of the lines.
        problems: Vec<String>,
    },
}

fn listed(problems: &[String]) -> String {
    problems.iter().map(|one| format!("\n  {one}")).collect()
}

impl Experiment {
    /// Metrics specific to this experiment: those of its load, its hooks and its drives. The
    /// metrics of TPC-C also depend on `of_props`, the options in its props files.
    #[must_use]
    pub fn own_metrics(&self, of_props: &[String]) -> Vec<Metric> {
        let mut all = self.workload.metrics(of_props);
        all.extend(self.wire.map(|_| two_hosts::metric()));
        all.extend(self.hook_metrics.iter().cloned());
        if !self.metrics.waf.is_empty() {
            all.push(metric::write_amplification());
        }
        if let Some(headline) = &self.headline {
            if all.iter().all(|metric| metric.name != *headline) {
                all.extend(analysis::standard(headline));
            }
            for metric in &mut all {
                metric.decides = metric.name == *headline;
            }
        }
        all
    }

    /// Reads and parses a file; variables in `sets` take precedence over those of the file.
    pub fn read(path: &Path, sets: &[(String, String)]) -> Result<Self, FileError> {
        match std::fs::read_to_string(path) {
            Ok(text) => Self::parse(path, &text, sets),
            Err(error) => Err(FileError::Unreadable {
                path: path.to_owned(),
                error,
            }),
        }
    }

    /// Parses `text` as the contents of a file at `path`, which need not exist.
    ///
    /// # Errors
    /// Returns [`FileError::Invalid`] with all problems of the text.
    pub fn parse(path: &Path, text: &str, sets: &[(String, String)]) -> Result<Self, FileError> {
        let here = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        let here = here.parent().unwrap_or(Path::new("/")).to_owned();
        let (entries, wrong) = tree::parse(text, (HERE, &here.display().to_string()), sets);
        let problems: Problems = RefCell::new(wrong);
        let root = Table::new(String::new(), 1, &entries, &problems);
        let experiment = experiment(&root, path, &here, &problems);
        root.finish();
        let mut problems = problems.into_inner();
        problems.sort();
        problems.dedup();
        match experiment {
            Some(experiment) if problems.is_empty() => Ok(experiment),
            _ => Err(FileError::Invalid {
                path: path.to_owned(),
                problems: problems.into_iter().map(message).collect(),
            }),
        }
    }
}

fn message((line, text): tree::Problem) -> String {
    match line {
        0 => text,
        line => format!("line {line}: {text}"),
    }
}

fn experiment(
    root: &Table<'_>,
    path: &Path,
    here: &Path,
    problems: &Problems,
) -> Option<Experiment> {
    let stem = path
        .file_stem()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned();
    let name = root.text("name").unwrap_or(stem);
    let goal = root.text("goal");
    let headline = root.text("headline");
    let plan = pace(root.table("plan").as_ref());
    let arms = arm::read(root, problems);
    let wire = root.table("hosts").and_then(|table| wire(&table));
    root.require("workload");
    let table = root.table("workload");
    let workload = table.and_then(|table| Workload::read(&table, here));
    let restore = Restore::read(root.table("restore").as_ref(), problems);
    let hooks = Hooks::read(root.table("hooks").as_ref(), false, problems);
    let metrics = host_metrics(root.table("metrics").as_ref());
    let names: Vec<&str> = arms.iter().map(|arm| arm.name.as_str()).collect();
    let printed = root.tables("metric").into_iter();
    let hook_metrics = printed
        .filter_map(|(line, entries)| metric::of_hooks(root, line, entries))
        .collect();
    let expected = root.tables("expect").into_iter();
    let expectations = expected
        .map(|(line, entries)| Expectation::read(root, line, entries, &names))
        .collect();
    let experiment = Experiment {
        path: path.to_owned(),
        name,
        goal,
        plan,
        arms,
        wire,
        workload: workload?,
        restore,
        hooks,
        metrics,
        hook_metrics,
        headline,
        expectations,
    };
    check_combinations(root, &experiment);
    Some(experiment)
}

/// Checks conditions between tables.
fn check_combinations(root: &Table<'_>, experiment: &Experiment) {
    let private = matches!(
        &experiment.workload.kind,
        Kind::Redis {
            topology: Some(_),
            ..
        }
    );
    for arm in &experiment.arms {
        if private && !arm.servers.is_empty() {
            root.problem(
                "workload",
                "has a topology, for which Saiga starts the servers; remove server",
            );
        }
        if private && (!arm.client.env.is_empty() || arm.client.memory.is_some()) {
            root.problem(
                "workload",
                "has a topology; its programs can only have the options saiga and cpus",
            );
        }
        if !private && arm.servers.is_empty() {
            root.problem(
                "server",
                "is missing: [[server]] for all arms or [[arm.server]] for one",
            );
        }
        let needs_port = matches!(experiment.workload.kind, Kind::Redis { .. });
        if !private && needs_port && arm.servers.first().is_some_and(|one| one.port.is_none()) {
            root.problem("server", "of redis-benchmark needs its port");
        }
        let ports: Vec<u16> = arm.servers.iter().filter_map(|one| one.port).collect();
        if let Some(twice) = ports
            .iter()
            .enumerate()
            .find(|(i, port)| ports[..*i].contains(port))
        {
            root.problem(
                "server",
                &format!("of arm {:?} has port {} twice", arm.name, twice.1),
            );
        }
    }
    if private {
        check_topology(root, experiment);
    }
    check_hosts(root, experiment);
    check_restore(root, experiment, private);
    check_metric_names(root, experiment);
}

/// Checks that a file with two hosts has what they can run: TPC-C, one server with a port, and a
/// client without Saiga.
fn check_hosts(root: &Table<'_>, experiment: &Experiment) {
    let arms = &experiment.arms;
    let Some(wire) = experiment.wire else {
        if arms.iter().any(|arm| arm.gateway) {
            root.problem(
                "hosts",
                "is missing, which an arm with gateway = true needs",
            );
        }
        return;
    };
    if experiment.workload.name() != "tpcc" {
        root.problem("hosts", "needs the workload tpcc");
    }
    let has_one_port = |arm: &Arm| arm.servers.len() == 1 && arm.servers[0].port.is_some();
    if !arms.iter().all(has_one_port) {
        root.problem("hosts", "needs one server with a port in each arm");
    }
    let is_accelerated = |arm: &Arm| arm.gateway && wire.accelerates_client();
    for arm in arms {
        match (arm.client.saiga, is_accelerated(arm)) {
            (true, false) => root.problem(
                "hosts",
                "has the client on another host, which needs no Saiga; remove saiga from the client",
            ),
            (false, true) => root.problem(
                "hosts",
                "has a gateway on the client's host, too, over memif: add saiga = true to the arm \
                 with gateway = true",
            ),
            (true, true) | (false, false) => {}
        }
    }
    let servers = || arms.iter().flat_map(|arm| &arm.servers);
    let with_gateway = arms.iter().filter(|arm| arm.gateway);
    if !with_gateway
        .flat_map(|arm| &arm.servers)
        .all(|server| server.launch.saiga)
    {
        root.problem(
            "hosts",
            "needs saiga = true for the server of an arm with gateway = true",
        );
    }
    let connects_from_here = |server: &Server| {
        matches!(server.ready.probe, Probe::Command(_) | Probe::Redis)
            || matches!(server.stop.how, StopHow::Command(_))
    };
    if servers().any(connects_from_here) || matches!(experiment.restore.how, How::Logical(_)) {
        root.problem(
            "hosts",
            "cannot be combined with a command that makes ready, stops or restores, or with \
             ready.probe = \"redis\": these do not reach the servers' host",
        );
    }
}

/// Checks that the kind of restore fits the workload.
fn check_restore(root: &Table<'_>, experiment: &Experiment, private: bool) {
    let redis = matches!(experiment.workload.kind, Kind::Redis { .. });
    if experiment.restore.how == How::FlushAll && !redis {
        root.problem(
            "restore",
            "of kind flushall needs the workload redis-benchmark",
        );
    }
    if experiment.restore.how != How::None && private {
        root.problem(
            "restore",
            "must be left out: the servers of a topology start empty",
        );
    }
}

/// Checks that metrics have distinct names and that the headline names one of them.
fn check_metric_names(root: &Table<'_>, experiment: &Experiment) {
    let own = experiment.own_metrics(&[]);
    for (index, Metric { name, .. }) in own.iter().enumerate() {
        let is_hooks = experiment.hook_metrics.iter().any(|it| it.name == *name);
        let is_second = own[..index].iter().any(|other| other.name == *name);
        if is_second || (is_hooks && analysis::standard(name).is_some()) {
            let what = format!("{name:?} is already the name of a metric; use another name");
            root.problem("metric", &what);
        }
    }
    let Some(headline) = &experiment.headline else {
        return;
    };
    // The name of TPC-C's throughput follows from props files, which are read later.
    let is_tpmc = headline.starts_with("tpmc") && experiment.workload.name() == "tpcc";
    if !is_tpmc && own.iter().all(|metric| metric.name != *headline) {
        let names: Vec<&str> = own.iter().map(|metric| metric.name.as_str()).collect();
        let what = format!(
            "is {headline:?}, which is not measured; use one of throughput_ops_s, \
             latency_p99_us, server_cpu_us_per_op, {}",
            names.join(", ")
        );
        root.problem("headline", what.trim_end_matches(", "));
    }
}

/// Checks files with a topology: Saiga starts and stops their servers, so hooks cannot run in
/// between.
fn check_topology(root: &Table<'_>, experiment: &Experiment) {
    let arms = experiment.arms.iter().map(|arm| &arm.hooks);
    let inner = |hooks: &Hooks| {
        let points = [&hooks.arm, &hooks.start, &hooks.run];
        points.iter().any(|around| **around != Around::default())
    };
    if arms.chain([&experiment.hooks]).any(inner) {
        let what = "around arm, start and run cannot be combined with a topology; use \
                    before_experiment and after_experiment";
        root.problem("hooks", what);
    }
    if !experiment.hook_metrics.is_empty() {
        root.problem(
            "metric",
            "must be left out: with a topology no hook runs that could print it",
        );
    }
    if experiment.metrics != HostMetrics::default() {
        root.problem(
            "metrics",
            "must be left out: the servers of a topology use temporary folders",
        );
    }
}

fn pace(table: Option<&Table<'_>>) -> PlanOptions {
    let default = PlanOptions {
        pairs: u32::try_from(DEFAULT_PAIRS).unwrap_or(u32::MAX),
        until: None,
        seed: None,
        max_foreign_cores: None,
    };
    let Some(table) = table else {
        return default;
    };
    let pairs = table.whole("pairs", 1..=1000);
    let until = table.text("until").and_then(|text| {
        let share = text
            .strip_suffix('%')
            .and_then(|number| number.trim().parse::<f64>().ok());
        let share = share.filter(|share| (0.1..=50.0).contains(share));
        if share.is_none() {
            table.problem("until", &format!("is {text:?}, not a width such as \"2%\""));
        }
        share.map(|share| share / 100.0)
    });
    let pace = PlanOptions {
        pairs: pairs
            .and_then(|pairs| u32::try_from(pairs).ok())
            .unwrap_or(default.pairs),
        until,
        seed: table.whole("seed", 0..=u64::MAX),
        max_foreign_cores: table.fraction("max_foreign_cores", 0.0, 1024.0),
    };
    table.finish();
    pace
}

fn wire(table: &Table<'_>) -> Option<Wire> {
    table.require("wire");
    let wire = table.choice("wire", &Wire::ALL.map(|wire| (wire.name(), wire)));
    table.finish();
    wire
}

fn host_metrics(table: Option<&Table<'_>>) -> HostMetrics {
    let Some(table) = table else {
        return HostMetrics::default();
    };
    let metrics = HostMetrics {
        devices: table.texts("devices"),
        fill: table.texts("fill").into_iter().map(PathBuf::from).collect(),
        waf: table.texts("waf").into_iter().map(PathBuf::from).collect(),
        waf_every: table.duration("waf_every"),
    };
    if metrics.waf.is_empty() && metrics.waf_every.is_some() {
        table.problem("waf_every", "needs waf, the list of drives");
    }
    if metrics
        .waf_every
        .is_some_and(|every| every < Duration::from_secs(1))
    {
        table.problem("waf_every", "must be at least a second");
    }
    table.finish();
    metrics
}

#[cfg(test)]
mod tests;
