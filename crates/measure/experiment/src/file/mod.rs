//! Experiment files: what a campaign is, in TOML.
//!
//! A file is read whole: every mistake is told with its line, and keys that are not known
//! with the one that was meant. Values may hold `${NAME}` (see `variables`). What comes out
//! is plain data; nothing of it was looked for on this machine. Documented for people in
//! `docs/experiments.md`.

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
pub use server::{Dress, How as StopHow, Probe, Ready, Server, Stop};
pub use words::{WordsError, split};
pub use workload::{Extract, Kind, TableCheck, Workload};

use crate::analysis;
use crate::result::Metric;
use reader::{Problems, Table};

/// The variable that every file has: the folder in which it lies.
const HERE: &str = "HERE";
/// Runs of each arm where the file does not say: a verdict needs so many.
const USUAL_PAIRS: u64 = 6;

/// An experiment as its file describes it.
#[derive(Debug, Clone)]
pub struct Experiment {
    /// The file.
    pub path: PathBuf,
    /// In a few words, for reports.
    pub name: String,
    /// What it is to find out.
    pub goal: Option<String>,
    /// How often, and in what order.
    pub plan: Pace,
    /// What is compared, the reference first.
    pub arms: Vec<Arm>,
    /// What is measured.
    pub workload: Workload,
    /// How the data become what they were.
    pub restore: Restore,
    /// Commands between our steps, in every arm.
    pub hooks: Hooks,
    /// What is recorded of the host.
    pub metrics: HostMetrics,
    /// Figures that hooks print, and that are compared.
    pub hook_metrics: Vec<Metric>,
    /// The metric by which headlines are made, where the file says so.
    pub headline: Option<String>,
    /// What it must show.
    pub expectations: Vec<Expectation>,
}

/// How often, and in what order.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Pace {
    /// Runs of each arm in each cell.
    pub pairs: u32,
    /// Ends earlier when the interval is this narrow: 0.02 for 2 %.
    pub until: Option<f64>,
    /// Of the random order; `None` for a new one.
    pub seed: Option<u64>,
    /// CPUs that other processes may use in a run that counts; `None` for
    /// [`usual_foreign_cores`](crate::cpu::usual_foreign_cores).
    pub max_foreign_cores: Option<f64>,
}

/// What is recorded of the host besides CPU time.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HostMetrics {
    /// Disks and network interfaces.
    pub devices: Vec<String>,
    /// Directories whose file systems may fill up.
    pub fill: Vec<PathBuf>,
    /// Drives whose write amplification is measured.
    pub waf: Vec<PathBuf>,
    /// How often they are asked while the load runs; `None` for once an hour.
    pub waf_every: Option<Duration>,
}

/// A file that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// It cannot be read.
    #[error("cannot read {}: {error}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system said.
        error: io::Error,
    },
    /// It says things that do not go together, or that nobody understands.
    #[error("{} is not an experiment:{}", path.display(), listed(problems))]
    Wrong {
        /// The file.
        path: PathBuf,
        /// One for each problem, in the order of the lines.
        problems: Vec<String>,
    },
}

fn listed(problems: &[String]) -> String {
    problems.iter().map(|one| format!("\n  {one}")).collect()
}

impl Experiment {
    /// Metrics that are this experiment's own: those of its load, of its hooks, of its drives.
    /// Those of TPC-C follow also from the options `of_props` that its props files give.
    #[must_use]
    pub fn own_metrics(&self, of_props: &[String]) -> Vec<Metric> {
        let mut all = self.workload.metrics(of_props);
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

    /// Reads a file; `sets` are variables that win over those of the file.
    ///
    /// # Errors
    /// [`FileError`].
    pub fn read(path: &Path, sets: &[(String, String)]) -> Result<Self, FileError> {
        match std::fs::read_to_string(path) {
            Ok(text) => Self::parse(path, &text, sets),
            Err(error) => Err(FileError::Unreadable {
                path: path.to_owned(),
                error,
            }),
        }
    }

    /// Reads the text of a file that lies, or would lie, at `path`.
    ///
    /// # Errors
    /// [`FileError::Wrong`].
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
            _ => Err(FileError::Wrong {
                path: path.to_owned(),
                problems: problems.into_iter().map(told).collect(),
            }),
        }
    }
}

fn told((line, what): tree::Problem) -> String {
    match line {
        0 => what,
        line => format!("line {line}: {what}"),
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
    root.needed("workload");
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
        workload: workload?,
        restore,
        hooks,
        metrics,
        hook_metrics,
        headline,
        expectations,
    };
    go_together(root, &experiment);
    Some(experiment)
}

/// What only shows when all of it is read.
fn go_together(root: &Table<'_>, experiment: &Experiment) {
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
                "has a topology, whose servers are private: leave out server",
            );
        }
        if private && (!arm.client.env.is_empty() || arm.client.memory.is_some()) {
            root.problem(
                "workload",
                "has a topology: only saiga and cpus can be said of its programs",
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
        private_servers(root, experiment);
    }
    restorable(root, experiment, private);
    named_metrics(root, experiment);
}

/// What is restored is there to be restored.
fn restorable(root: &Table<'_>, experiment: &Experiment, private: bool) {
    let redis = matches!(experiment.workload.kind, Kind::Redis { .. });
    if experiment.restore.how == How::FlushAll && !redis {
        root.problem("restore", "by flushall is for redis-benchmark");
    }
    if experiment.restore.how != How::None && private {
        root.problem(
            "restore",
            "has no meaning: the private servers of a topology start empty",
        );
    }
}

/// Each figure has a name of its own, and the headline names one of them.
fn named_metrics(root: &Table<'_>, experiment: &Experiment) {
    let own = experiment.own_metrics(&[]);
    for (index, Metric { name, .. }) in own.iter().enumerate() {
        let is_hooks = experiment.hook_metrics.iter().any(|it| it.name == *name);
        let is_second = own[..index].iter().any(|other| other.name == *name);
        if is_second || (is_hooks && analysis::standard(name).is_some()) {
            let what = format!("{name:?} is measured already; give it another name");
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
            "is {headline:?}, which nothing measures; there are throughput_ops_s, \
             latency_p99_us, server_cpu_us_per_op, {}",
            names.join(", ")
        );
        root.problem("headline", what.trim_end_matches(", "));
    }
}

/// Private servers are made and removed by us, so nothing comes between.
fn private_servers(root: &Table<'_>, experiment: &Experiment) {
    let arms = experiment.arms.iter().map(|arm| &arm.hooks);
    let inner = |hooks: &Hooks| {
        let points = [&hooks.arm, &hooks.start, &hooks.run];
        points.iter().any(|around| **around != Around::default())
    };
    if arms.chain([&experiment.hooks]).any(inner) {
        let what = "around arm, start and run have no place beside private servers; only \
                    before_experiment and after_experiment do";
        root.problem("hooks", what);
    }
    if !experiment.hook_metrics.is_empty() {
        root.problem(
            "metric",
            "has no hook that could print it: there are none around the runs of private servers",
        );
    }
    if experiment.metrics != HostMetrics::default() {
        root.problem(
            "metrics",
            "has no meaning: private servers live in temporary folders",
        );
    }
}

fn pace(table: Option<&Table<'_>>) -> Pace {
    let usual = Pace {
        pairs: u32::try_from(USUAL_PAIRS).unwrap_or(u32::MAX),
        until: None,
        seed: None,
        max_foreign_cores: None,
    };
    let Some(table) = table else {
        return usual;
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
    let pace = Pace {
        pairs: pairs
            .and_then(|pairs| u32::try_from(pairs).ok())
            .unwrap_or(usual.pairs),
        until,
        seed: table.whole("seed", 0..=u64::MAX),
        max_foreign_cores: table.fraction("max_foreign_cores", 0.0, 1024.0),
    };
    table.finish();
    pace
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
        table.problem("waf_every", "needs waf, the drives that are asked");
    }
    if metrics
        .waf_every
        .is_some_and(|every| every < Duration::from_secs(1))
    {
        table.problem("waf_every", "must be a second or more");
    }
    table.finish();
    metrics
}

#[cfg(test)]
mod tests;
