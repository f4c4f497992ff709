//! `result.json`, `format_version` 1: the result of an experiment.
//!
//! An [`ExperimentResult`] contains every raw run, the comparisons and the conclusions; reports are
//! made from it alone. Reading checks the version first, then that every reference to an arm or a
//! cell is valid. Writing checks the references and that every number is finite, so that a written
//! result can be read.
//!
//! Fields without `skip_serializing_if` are always written; the others are optional. Unknown fields
//! are ignored. Deliberately absent: statistics (`stats`), and sentences of reports.

pub mod detail;
mod file;
mod load;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::stats::Method;

pub use detail::Detail;
pub use file::{InconsistentResult, ReadResultError, WriteResultError};
pub use load::Load;

/// The only `format_version` that this crate writes and reads.
pub const FORMAT_VERSION: u32 = 1;

/// The `placement` of a cell without runs of its own that stands for the best placement of each
/// arm; its comparisons are [`ComparisonKind::BestAgainstBest`].
pub const PLACEMENT_BEST: &str = "best of each arm";

/// Suffix (up to its number) of the name of an arm that repeats an earlier arm, to compare it with
/// itself.
pub const AGAIN: &str = " (again";

/// The measurements and conclusions of one experiment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ExperimentResult {
    /// Always [`FORMAT_VERSION`].
    pub format_version: u32,
    /// The name of the workload (`redis`, `tpcc`), or the name in the experiment file.
    pub experiment: String,
    pub host: Host,
    /// The question that the experiment answers, from the experiment file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub goal: Option<String>,
    /// The compared arms, the reference first.
    pub arms: Vec<Arm>,
    /// All raw runs in order of execution, including rejected ones.
    pub runs: Vec<Run>,
    pub cells: Vec<Cell>,
    /// Paired comparisons, one per cell, pair of arms and metric.
    pub comparisons: Vec<Comparison>,
    /// The conclusion in sentences. The first sentence is about one comparison that was fixed
    /// beforehand, which needs no correction. The second, about CPU time, claims a difference only
    /// if it holds after correction for both. The summary of single workloads is corrected for all
    /// comparisons. Empty if there is no conclusion.
    pub headline: Vec<String>,
    /// The comparison of the first sentence in numbers; absent if there is no conclusion, and in
    /// older files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub headline_comparison: Option<HeadlineComparison>,
    /// Reasons to doubt the numbers, for the reader.
    pub warnings: Vec<Warning>,
    /// Metrics specific to this experiment, the main metric first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub own_metrics: Vec<Metric>,
    /// The arm that the experiment is about; the last arm when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    /// The command line that produced this result, one argument per element.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub command: Vec<String>,
    /// Start of the first run, as RFC 3339 in UTC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started: Option<String>,
    /// End of the last run, as RFC 3339 in UTC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finished: Option<String>,
    /// The reason if the experiment ended before its plan was complete.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interrupted: Option<String>,
    /// Seed of the order of runs and of their inputs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// Versions of the programs, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub versions: BTreeMap<String, String>,
}

/// The machine, described so that readers can judge whether the result applies to their machine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Host {
    pub cpu: String,
    /// CPUs that the experiment could use.
    pub cores: u32,
    pub kernel: String,
    /// Installed memory in bytes.
    pub memory: u64,
    /// The hypervisor or container, `none` on bare metal.
    pub virtualisation: String,
    /// Further properties by name: `distribution`, `governor`, `numa_nodes`, `mitigations`,
    /// and `page_size` if it is not 4 KiB.
    #[serde(flatten)]
    pub extra: BTreeMap<String, serde_json::Value>,
}

/// A configuration under comparison: server, client and environment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Arm {
    /// Short unique name: `kernel`, `unix`, `saiga`.
    pub name: String,
    /// Command line of the server, with placeholders for what changes from run to run.
    pub server: String,
    /// Command line of the client, with the same placeholders.
    pub client: String,
    /// Environment variables set for both, or for the server only if the client is on another host.
    pub env: BTreeMap<String, String>,
    /// A sentence that describes the arm.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The arm of which this is a variation with one change; the two are compared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub varies: Option<String>,
    /// Settings of the servers by name, as the servers report them.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub configuration: BTreeMap<String, String>,
}

/// A raw run of an arm in a cell.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// [`Cell::id`].
    pub cell: String,
    /// [`Arm::name`].
    pub arm: String,
    /// Number of the pair from 0; the runs of a pair were adjacent in time.
    pub pair: u32,
    /// Position of the run in its pair, from 0.
    pub position: u32,
    /// Start of the run, as RFC 3339 in UTC.
    pub started: String,
    /// Length of the measured interval.
    pub seconds: f64,
    /// Measured values by name; each name ends with its unit (`throughput_ops_s`).
    pub metrics: BTreeMap<String, f64>,
    /// CPU seconds of other processes during the run, without interrupts and kernel threads if
    /// these can be distinguished (`cpu`).
    pub foreign_cpu_s: f64,
    /// The reason if the run was rejected, else `null`.
    pub rejected: Option<String>,
    /// Time series, checks and other details.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<Box<Detail>>,
}

/// Conditions under which all arms run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Cell {
    /// Unique id: `set-c50-p1-one-core`.
    pub id: String,
    pub params: CellParams,
}

/// The parameters of a cell.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CellParams {
    /// CPUs of server and client: `one core`, `two cores`, `unpinned`, [`PLACEMENT_BEST`].
    pub placement: String,
    /// Cores with a CPU hog: `none`, `0`, `1`, `both`.
    pub hog: String,
    /// Parameters of the workload: `test`, `clients`, `pipeline`, `value_bytes`.
    #[serde(flatten)]
    pub workload: BTreeMap<String, serde_json::Value>,
}

/// A metric of two arms, compared pair by pair.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// [`Cell::id`].
    pub cell: String,
    pub a: String,
    /// The arm that is compared with the reference.
    pub b: String,
    /// Name of the metric in [`Run::metrics`].
    pub metric: String,
    /// Unit for display: `ops/s`, `µs`, `µs/op`.
    pub unit: String,
    pub better: Better,
    /// Median of arm `a` over the pairs in which both arms have the metric, including zeros.
    pub a_median: f64,
    /// Median of arm `b` over the same pairs.
    pub b_median: f64,
    /// `b` divided by `a`.
    pub ratio: Ratio,
    /// The conclusion from this comparison alone, without correction.
    pub verdict: Verdict,
    #[serde(default)]
    pub kind: ComparisonKind,
    /// The cell in which `a` was best; only for [`ComparisonKind::BestAgainstBest`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub a_cell: Option<String>,
    /// The cell in which `b` was best; only for [`ComparisonKind::BestAgainstBest`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub b_cell: Option<String>,
    /// Whether the verdict also holds after correction for the number of comparisons.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub holds_corrected: Option<bool>,
}

/// The main comparison of the experiment: over all workloads without hogs, each arm in its own best
/// placement.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HeadlineComparison {
    pub a: String,
    /// The arm that is compared with the reference.
    pub b: String,
    /// Name of the metric in [`Run::metrics`].
    pub metric: String,
    pub unit: String,
    pub better: Better,
    /// Number of workloads over which the geometric mean is taken in each pair.
    pub workloads: u32,
    /// `b` divided by `a`.
    pub ratio: Ratio,
    pub verdict: Verdict,
}

/// The median over pairs of B/A, with its confidence interval.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Ratio {
    pub median: f64,
    /// The 95 % confidence interval, low then high. `null` with too few pairs (fewer than six, or
    /// eight by the sequential method), and if a pair has no ratio because a figure in it is 0.
    pub ci95: Option<[f64; 2]>,
    /// Choice of the number of pairs, which determines the valid kind of interval; `fixed` in older
    /// files.
    #[serde(default)]
    pub method: Method,
    /// Number of pairs with a ratio: both runs are accepted and both figures are positive.
    pub n_pairs: u32,
}

/// A metric specific to this experiment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Metric {
    /// Name in [`Run::metrics`], which ends with the unit.
    pub name: String,
    pub unit: String,
    pub better: Better,
    /// Whether the headline is about this metric, even if throughput was measured.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub decides: bool,
}

/// The direction of a metric that is an improvement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Better {
    /// Greater values are better, such as throughput.
    Higher,
    /// Smaller values are better, such as latency and CPU time.
    Lower,
}

/// The conclusion about B. "Faster" means "better" in the direction of the metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Verdict {
    /// The whole interval is on the better side of 1.
    #[serde(rename = "faster")]
    Faster,
    /// The whole interval is on the worse side of 1.
    #[serde(rename = "slower")]
    Slower,
    /// The interval contains 1, or there is no interval.
    #[serde(rename = "no difference shown")]
    NoDifferenceShown,
}

/// The placements of the two arms of a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum ComparisonKind {
    /// Both arms ran in the placement of the cell.
    #[default]
    #[serde(rename = "same placement")]
    SamePlacement,
    /// Each arm ran in its own best placement.
    #[serde(rename = "best against best")]
    BestAgainstBest,
}

/// A reason to doubt the numbers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Warning {
    pub text: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<String>,
    /// Advice to the reader.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub action: Option<String>,
    /// The affected cells; empty means all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cells: Vec<String>,
}

impl Warning {
    /// A warning about all figures of a workload, with advice.
    #[must_use]
    pub fn caveat(text: &str, action: &str) -> Self {
        Self {
            text: text.to_owned(),
            cause: None,
            action: Some(action.to_owned()),
            cells: Vec::new(),
        }
    }
}

impl Arm {
    /// Whether this arm repeats `other`: it has the same commands and a name derived from it.
    #[must_use]
    pub fn repeats(&self, other: &Self) -> bool {
        let named = self.name.strip_prefix(&other.name);
        named.is_some_and(|rest| rest.starts_with(AGAIN))
            && (&self.server, &self.client, &self.env) == (&other.server, &other.client, &other.env)
    }

    /// The arm in `arms` that this arm varies.
    pub fn varied<'a>(&self, arms: &'a [Arm]) -> Option<&'a Arm> {
        let name = self.varies.as_ref()?;
        arms.iter().find(|arm| arm.name == *name)
    }
}

impl Ratio {
    /// Whether there are too few pairs for an interval.
    #[must_use]
    pub fn has_too_few_pairs(&self) -> bool {
        usize::try_from(self.n_pairs).is_ok_and(|pairs| pairs < self.method.min_pairs())
    }
}

impl ExperimentResult {
    /// The arm that the experiment is about: `subject`, else the last arm.
    pub fn subject(&self) -> Option<&Arm> {
        match &self.subject {
            Some(name) => self.arms.iter().find(|arm| arm.name == *name),
            None => self.arms.last(),
        }
    }

    pub fn cell(&self, id: &str) -> Option<&Cell> {
        self.cells.iter().find(|cell| cell.id == id)
    }
}
