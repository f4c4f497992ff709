//! `result.json`, `format_version` 1: what an experiment hands to people and programs.
//!
//! One [`ExperimentResult`] holds every raw run, what was compared, and what was concluded.
//! Reports are made from it alone. Reading checks the version first, then that every name
//! that refers to an arm or a cell exists; writing checks the same, and that every number
//! is finite, so that what was written can be read.
//!
//! Fields that DESIGN.md lists are always written; the others are optional, and unknown
//! ones are ignored. Deliberately absent: how the numbers come about (`stats`), and words.

pub mod detail;
mod file;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::stats::Method;

pub use detail::Detail;
pub use file::{InconsistentResult, ReadResultError, WriteResultError};

/// The only `format_version` that this crate writes and reads.
pub const FORMAT_VERSION: u32 = 1;

/// The `placement` of a cell that has no runs of its own and stands for the best placement of
/// each arm; its comparisons are [`ComparisonKind::BestAgainstBest`].
pub const PLACEMENT_BEST: &str = "best of each arm";

/// How the name of an arm goes on that repeats an earlier one, to compare it with itself.
pub const AGAIN: &str = " (again";

/// Everything that one experiment measured and concluded.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ExperimentResult {
    /// Always [`FORMAT_VERSION`].
    pub format_version: u32,
    /// What was run, in one word: `redis`, `tpcc`, or the name in the plan file.
    pub experiment: String,
    /// The machine on which every run took place.
    pub host: Host,
    /// What it is to find out, in the words of whoever planned it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub goal: Option<String>,
    /// What was compared, the reference first.
    pub arms: Vec<Arm>,
    /// Every raw run in the order of execution, rejected ones included.
    pub runs: Vec<Run>,
    /// The conditions under which the arms ran.
    pub cells: Vec<Cell>,
    /// Paired comparisons, one per cell, pair of arms and metric.
    pub comparisons: Vec<Comparison>,
    /// The conclusion in plain sentences. The first is about one comparison that was fixed beforehand,
    /// which needs no correction; the second, about CPU time, says that there is a difference only
    /// where that holds corrected for both; the tally of single workloads is corrected for all
    /// comparisons. Empty when nothing can be concluded.
    pub headline: Vec<String>,
    /// The comparison of the first sentence, in numbers; absent when nothing can be concluded, and in
    /// files from before it was kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub headline_comparison: Option<HeadlineComparison>,
    /// What a reader must know before believing the numbers.
    pub warnings: Vec<Warning>,
    /// Metrics of its own, the main one first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub own_metrics: Vec<Metric>,
    /// The arm that the experiment is about; the last arm when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    /// The command line that produced this result, one argument per element.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub command: Vec<String>,
    /// When the first run started and the last one ended, as RFC 3339 in UTC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started: Option<String>,
    /// See `started`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finished: Option<String>,
    /// Why the experiment ended before its plan was done; absent when it was done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interrupted: Option<String>,
    /// Seed of the order of runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// Versions of the programs that took part, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub versions: BTreeMap<String, String>,
}

/// The machine, described so that a reader can judge whether the result applies to theirs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Host {
    /// Model name of the CPU.
    pub cpu: String,
    /// CPUs that the experiment could use.
    pub cores: u32,
    /// Kernel release.
    pub kernel: String,
    /// Installed memory in bytes.
    pub memory: u64,
    /// The hypervisor or container, `none` on bare metal.
    pub virtualisation: String,
    /// Further facts by name: `distribution`, `governor`, `numa_nodes`, `mitigations`.
    #[serde(flatten)]
    pub extra: BTreeMap<String, serde_json::Value>,
}

/// One of the things compared.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Arm {
    /// Short unique name: `kernel`, `unix`, `saiga`.
    pub name: String,
    /// Command line of the server, with placeholders for what changes from run to run.
    pub server: String,
    /// Command line of the client, likewise.
    pub client: String,
    /// Environment variables set for both.
    pub env: BTreeMap<String, String>,
    /// One sentence for people: what this arm is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The arm that this one repeats with one thing changed: what it is judged against.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub varies: Option<String>,
    /// Settings of its servers by name, as they say themselves.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub configuration: BTreeMap<String, String>,
}

/// One raw run of one arm in one cell.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// [`Cell::id`].
    pub cell: String,
    /// [`Arm::name`].
    pub arm: String,
    /// Which pair the run belongs to, from 0; runs with one number were interleaved.
    pub pair: u32,
    /// Place of this run inside its pair, from 0.
    pub position: u32,
    /// When it started, as RFC 3339 in UTC.
    pub started: String,
    /// How long it measured.
    pub seconds: f64,
    /// Measured values; the unit is the end of the name (`throughput_ops_s`).
    pub metrics: BTreeMap<String, f64>,
    /// CPU seconds of other processes during the run. Interrupts and kernel threads are left out
    /// where they can be told apart (`cpu`).
    pub foreign_cpu_s: f64,
    /// Why the run does not count, `null` when it does.
    pub rejected: Option<String>,
    /// What it tells beyond its metrics.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<Box<Detail>>,
}

/// One set of conditions.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Cell {
    /// Short unique name: `set-c50-p1-one-core`.
    pub id: String,
    /// The conditions themselves.
    pub params: CellParams,
}

/// The conditions of a cell.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CellParams {
    /// Where server and client ran: `one core`, `two cores`, `unpinned`, [`PLACEMENT_BEST`].
    pub placement: String,
    /// Which cores a CPU hog occupied: `none`, `0`, `1`, `both`.
    pub hog: String,
    /// Keys of the workload: `test`, `clients`, `pipeline`, `value_bytes`.
    #[serde(flatten)]
    pub workload: BTreeMap<String, serde_json::Value>,
}

/// One metric of two arms, compared pair by pair.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// [`Cell::id`].
    pub cell: String,
    /// The reference arm.
    pub a: String,
    /// The arm that is judged.
    pub b: String,
    /// Name of the metric, as in [`Run::metrics`].
    pub metric: String,
    /// Its unit for people: `ops/s`, `µs`, `µs/op`.
    pub unit: String,
    /// Which direction is an improvement.
    pub better: Better,
    /// Median of the reference arm over the pairs in which both arms have the metric, zeros included.
    pub a_median: f64,
    /// The same of the judged arm.
    pub b_median: f64,
    /// B divided by A.
    pub ratio: Ratio,
    /// The conclusion about this one metric, for this one comparison.
    pub verdict: Verdict,
    /// Whether both arms ran in the same placement.
    #[serde(default)]
    pub kind: ComparisonKind,
    /// Best against best only: the cell in which A did best.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub a_cell: Option<String>,
    /// Best against best only: the cell in which B did best.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub b_cell: Option<String>,
    /// Whether the verdict also holds corrected for the number of comparisons.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub holds_corrected: Option<bool>,
}

/// What the whole experiment was to find out: over all workloads without hogs, each arm in its own
/// best placement.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HeadlineComparison {
    /// The reference arm.
    pub a: String,
    /// The arm that is judged.
    pub b: String,
    /// Name of the metric, as in [`Run::metrics`].
    pub metric: String,
    /// Its unit for people.
    pub unit: String,
    /// Which direction is an improvement.
    pub better: Better,
    /// Over so many workloads the geometric mean is taken in each pair.
    pub workloads: u32,
    /// B divided by A.
    pub ratio: Ratio,
    /// The conclusion.
    pub verdict: Verdict,
}

/// The median over pairs of B/A, and how sure it is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Ratio {
    /// Median of the ratios of the pairs.
    pub median: f64,
    /// Its 95 % confidence interval, low then high; `null` with too few pairs (fewer than six, or
    /// eight by the sequential method), and where a pair has no ratio because a figure in it is 0.
    pub ci95: Option<[f64; 2]>,
    /// What decided the number of pairs, and so what the interval may be used for; `fixed` in
    /// files from before there was a choice.
    #[serde(default)]
    pub method: Method,
    /// Pairs that have a ratio: both runs count, and both figures are positive.
    pub n_pairs: u32,
}

/// A metric that only this experiment has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Metric {
    /// As in [`Run::metrics`], its unit last.
    pub name: String,
    /// Its unit for people.
    pub unit: String,
    /// Which direction is an improvement.
    pub better: Better,
    /// Whether headlines are made by it, whatever else was measured.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub decides: bool,
}

/// Which direction of a metric is an improvement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Better {
    /// More is better: throughput.
    Higher,
    /// Less is better: latency, CPU time.
    Lower,
}

/// What one comparison shows about B. "Faster" is "better" in the direction of the metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Verdict {
    /// The whole interval is on the better side of 1.
    #[serde(rename = "faster")]
    Faster,
    /// The whole interval is on the worse side of 1.
    #[serde(rename = "slower")]
    Slower,
    /// The interval contains 1, or there is none.
    #[serde(rename = "no difference shown")]
    NoDifferenceShown,
}

/// Whether a comparison holds the placement fixed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum ComparisonKind {
    /// Both arms ran in the placement of the cell.
    #[default]
    #[serde(rename = "same placement")]
    SamePlacement,
    /// Each arm ran in the placement that suits it best.
    #[serde(rename = "best against best")]
    BestAgainstBest,
}

/// Something that makes the numbers less trustworthy, in plain words.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Warning {
    /// What was seen.
    pub text: String,
    /// The likely cause.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<String>,
    /// What to do about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub action: Option<String>,
    /// The cells concerned; empty means all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cells: Vec<String>,
}

impl Warning {
    /// What holds for every figure of a workload, and what to make of it.
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
    /// Whether this is `other` once more: started by the same commands, and named after it.
    #[must_use]
    pub fn repeats(&self, other: &Self) -> bool {
        let named = self.name.strip_prefix(&other.name);
        named.is_some_and(|rest| rest.starts_with(AGAIN))
            && (&self.server, &self.client, &self.env) == (&other.server, &other.client, &other.env)
    }

    /// The one of `arms` that this one varies.
    pub fn varied<'a>(&self, arms: &'a [Arm]) -> Option<&'a Arm> {
        let name = self.varies.as_ref()?;
        arms.iter().find(|arm| arm.name == *name)
    }
}

impl Ratio {
    /// Whether more pairs are needed for an interval.
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

    /// The cell with this id.
    pub fn cell(&self, id: &str) -> Option<&Cell> {
        self.cells.iter().find(|cell| cell.id == id)
    }
}
