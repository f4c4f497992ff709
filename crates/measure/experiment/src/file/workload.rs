//! Parses `[workload]`: the load generator, its options and its metrics.

use std::path::{Path, PathBuf};
use std::time::Duration;

use regex::Regex;

use super::flags::Flags;
use super::metric;
use super::reader::Table;
use super::server;
use super::tree::Entries;
use super::words;
use crate::result::{Better, Metric};

/// Default timeout of redis-benchmark and commands.
const DEFAULT_LIMIT: Duration = Duration::from_secs(3600);

/// A load and its timeout.
#[derive(Debug, Clone)]
pub struct Workload {
    pub kind: Kind,
    /// Timeout in the file; a longer run is stopped and rejected.
    pub limit: Option<Duration>,
}

/// The kind of a load.
#[derive(Debug, Clone)]
pub enum Kind {
    /// TPC-C by props files of BenchmarkSQL; several databases run at the same time.
    Tpcc {
        props: Vec<PathBuf>,
        /// Additional options of `saiga bench tpcc run`.
        options: Vec<String>,
        /// The scope of table checks; `None` for that of each props file.
        check: Option<TableCheck>,
    },
    Redis {
        flags: Flags,
        /// Topology of servers that Saiga starts; `None` for the servers of the arms.
        topology: Option<String>,
        /// Whether fail-overs are measured in addition to the tests.
        failover: bool,
    },
    /// A program that prints its figures.
    Command {
        /// `command`, `sysbench` or `pgbench`.
        name: String,
        line: Vec<String>,
        /// The figures to extract from its output.
        metrics: Vec<Extract>,
    },
}

/// The scope of the checks of TPC-C's tables before and after each run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TableCheck {
    /// Conditions and population, on all rows of all tables.
    All,
    /// The conditions of TPC-C §3.3.2, on all rows of all tables but ITEM and STOCK.
    Conditions,
    /// The conditions for a sample of warehouses, read by key.
    Sample,
    None,
}

impl TableCheck {
    /// All values, in the order of help texts.
    pub const EACH: [Self; 4] = [Self::All, Self::Conditions, Self::Sample, Self::None];

    /// The name in files and options: `conditions`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::All => "all",
            Self::Conditions => "conditions",
            Self::Sample => "sample",
            Self::None => "none",
        }
    }

    /// The value of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::EACH.into_iter().find(|check| check.name() == name)
    }
}

/// A figure in the output of a program.
#[derive(Debug, Clone)]
pub struct Extract {
    pub metric: Metric,
    /// The first group is the number; the last match in the output counts.
    pub pattern: Regex,
    /// Factor for the number.
    pub scale: f64,
}

/// A figure of a known program: name, pattern, unit, direction, scale.
type Known = (&'static str, &'static str, &'static str, Better, f64);

const SYSBENCH: [Known; 3] = [
    (
        "throughput_ops_s",
        r"transactions:\s+\d+\s+\(([0-9.]+) per sec",
        "ops/s",
        Better::Higher,
        1.0,
    ),
    (
        "latency_mean_us",
        r"avg:\s+([0-9.]+)",
        "µs",
        Better::Lower,
        1000.0,
    ),
    (
        "latency_p95_us",
        r"95th percentile:\s+([0-9.]+)",
        "µs",
        Better::Lower,
        1000.0,
    ),
];
const PGBENCH: [Known; 2] = [
    (
        "throughput_ops_s",
        r"tps = ([0-9.]+)",
        "ops/s",
        Better::Higher,
        1.0,
    ),
    (
        "latency_mean_us",
        r"latency average = ([0-9.]+) ms",
        "µs",
        Better::Lower,
        1000.0,
    ),
];

impl Workload {
    /// Parses `[workload]`; relative paths are resolved against `here`.
    pub(super) fn read(table: &Table<'_>, here: &Path) -> Option<Self> {
        let choices = ["tpcc", "redis-benchmark", "sysbench", "pgbench", "command"];
        table.require("kind");
        let named: Vec<(&str, &str)> = choices.iter().map(|name| (*name, *name)).collect();
        let kind = match table.choice("kind", &named) {
            None => None,
            Some("tpcc") => Some(tpcc(table, here)),
            Some("redis-benchmark") => redis(table),
            Some(name) => Some(command(table, name)),
        };
        let limit = table.duration("timeout");
        if kind.is_some() {
            // Without a kind the valid keys are unknown.
            table.finish();
        }
        Some(Self { kind: kind?, limit })
    }

    /// The timeout of a run; `None` for TPC-C if the file has none, because the length of its
    /// ramp-up is not known beforehand.
    #[must_use]
    pub fn limit(&self) -> Option<Duration> {
        let default = match self.kind {
            Kind::Tpcc { .. } => None,
            Kind::Redis { .. } | Kind::Command { .. } => Some(DEFAULT_LIMIT),
        };
        self.limit.or(default)
    }

    /// Metrics specific to this experiment, the main metric first. Those of TPC-C also depend on
    /// `of_props`, the options in its props files.
    #[must_use]
    pub fn metrics(&self, of_props: &[String]) -> Vec<Metric> {
        match &self.kind {
            // An option --rate replaces the pauses in a props file.
            Kind::Tpcc { options, .. } if options.iter().any(|word| word.starts_with("--rate")) => {
                tpcc_metrics(options)
            }
            Kind::Tpcc { options, .. } => tpcc_metrics(&[of_props, options.as_slice()].concat()),
            Kind::Redis { .. } => Vec::new(),
            Kind::Command { metrics, .. } => metrics
                .iter()
                .map(|extract| extract.metric.clone())
                .collect(),
        }
    }

    /// The name of the kind in the file.
    #[must_use]
    pub fn name(&self) -> &str {
        match &self.kind {
            Kind::Tpcc { .. } => "tpcc",
            Kind::Redis { .. } => "redis-benchmark",
            Kind::Command { name, .. } => name,
        }
    }
}

/// The name of TPC-C's throughput depends on the pauses of its terminals; latencies are those of
/// New-Order.
fn tpcc_metrics(options: &[String]) -> Vec<Metric> {
    let has = |name: &str| options.iter().any(|option| option.starts_with(name));
    let tpmc = if has("--keying-multiplier") || has("--thinking-multiplier") {
        "tpmc_shortened_think_time"
    } else if has("--think") {
        "tpmc"
    } else {
        "tpmc_no_think_time"
    };
    let own = [
        (tpmc, "tpmC", Better::Higher),
        ("latency_p95_us", "µs", Better::Lower),
    ];
    let metric = |(name, unit, better): (&str, &str, Better)| Metric {
        name: name.to_owned(),
        unit: unit.to_owned(),
        better,
        decides: false,
    };
    own.map(metric).to_vec()
}

fn tpcc(table: &Table<'_>, here: &Path) -> Kind {
    table.require("props");
    let props = table.texts("props").into_iter().map(|file| here.join(file));
    let named = TableCheck::EACH.map(|check| (check.name(), check));
    let mut check = table.choice("check", &named);
    let mut options = table.texts("options");
    if options.iter().any(|word| word.starts_with("--props")) {
        table.problem("options", "contains --props; list all props files in props");
    }
    if options.iter().any(|word| word.starts_with("--check")) {
        table.problem("options", "contains --check; use the key check instead");
    }
    // `--no-check` is the older form of `check = "none"`.
    let is_other = |word: &String| word != "--no-check";
    if !options.iter().all(is_other) {
        options.retain(is_other);
        match check {
            None => check = Some(TableCheck::None),
            Some(TableCheck::None) => {}
            Some(other) => {
                let what = format!("contains --no-check, but check is {:?}", other.name());
                table.problem("options", &what);
            }
        }
    }
    Kind::Tpcc {
        props: props.collect(),
        options,
        check,
    }
}

fn redis(table: &Table<'_>) -> Option<Kind> {
    let text = table.text("flags").unwrap_or_default();
    let words = match words::split(&text) {
        Ok(words) => words,
        Err(words::WordsError::Empty) => Vec::new(),
        Err(error) => {
            table.problem("flags", &format!("{error}"));
            Vec::new()
        }
    };
    let names = ["standalone", "replica", "sentinel", "cluster"].map(|name| (name, name));
    let topology = table.choice("topology", &names);
    let failover = table.flag("failover").unwrap_or(false);
    if failover && topology != Some("sentinel") {
        table.problem("failover", "needs topology = \"sentinel\"");
    }
    let flags = Flags::parse(&words)
        .map_err(|wrong| wrong.iter().for_each(|what| table.problem("flags", what)))
        .ok()?;
    if let (Some(topology), [first, ..]) = (topology, flags.others.as_slice()) {
        let what = format!("{first} cannot be combined with topology = {topology:?}");
        table.problem("flags", &what);
    }
    Some(Kind::Redis {
        flags,
        topology: topology.map(str::to_owned),
        failover,
    })
}

fn command(table: &Table<'_>, name: &str) -> Kind {
    let line = server::command(table, "command");
    let known: &[Known] = match name {
        "sysbench" => &SYSBENCH,
        "pgbench" => &PGBENCH,
        _ => &[],
    };
    let mut metrics: Vec<Extract> = known.iter().filter_map(known_metric).collect();
    let own = table.tables("metric");
    metrics.extend(
        own.iter()
            .filter_map(|(line, entries)| extract(table, *line, entries)),
    );
    if metrics.is_empty() && !table.has("metric") {
        table.problem(
            "metric",
            "is missing: add [[workload.metric]] with the figures in the output",
        );
    }
    Kind::Command {
        name: name.to_owned(),
        line,
        metrics,
    }
}

fn known_metric(&(name, pattern, unit, better, scale): &Known) -> Option<Extract> {
    Some(Extract {
        metric: Metric {
            name: name.to_owned(),
            unit: unit.to_owned(),
            better,
            decides: false,
        },
        pattern: Regex::new(pattern).ok()?,
        scale,
    })
}

fn extract(table: &Table<'_>, line: usize, entries: &Entries) -> Option<Extract> {
    let one = table.inner("metric".to_owned(), line, entries);
    let metric = metric::read(&one);
    let pattern = one.required_text("regex");
    let pattern = pattern.and_then(|text| match Regex::new(&text) {
        Ok(pattern) if pattern.captures_len() == 2 => Some(pattern),
        Ok(_) => {
            one.problem(
                "regex",
                "must have exactly one group (...), around the number",
            );
            None
        }
        Err(error) => {
            let last = error.to_string();
            let last = last.lines().last().unwrap_or_default().to_owned();
            one.problem("regex", &last);
            None
        }
    });
    let scale = one.fraction("scale", 1e-12, 1e12).unwrap_or(1.0);
    one.finish();
    Some(Extract {
        metric: metric?,
        pattern: pattern?,
        scale,
    })
}
