//! Details of a run: time series, transactions, checks, marks, histograms.
//!
//! The size is limited so that the details fit into `result.json` for runs of any length: a time
//! series has some hundred points, each with the minimum and maximum of its interval, so that no
//! peak is lost. The full samples are in the folder of the run.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The details of one run; every part is optional.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Detail {
    /// The folder of the run's files, relative to `result.json`: `runs/0003-saiga`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub folder: Option<String>,
    /// Counts and response times by type of transaction.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub transactions: Vec<Transactions>,
    /// Validity checks of the run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub checks: Vec<Check>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub series: Vec<Series>,
    /// Events during the run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub marks: Vec<Mark>,
    /// Distributions of response times.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub histograms: Vec<Histogram>,
    /// Units of figures that hooks printed and that no metric declares, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub units: BTreeMap<String, String>,
}

/// All transactions of one type within the measured interval.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Transactions {
    /// The type's name in BenchmarkSQL: `NEW_ORDER`.
    pub name: String,
    /// Number of completed transactions.
    pub count: u64,
    /// Share of all transactions.
    pub share_percent: f64,
    /// The smallest valid share, if the type has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub least_share_percent: Option<f64>,
    pub mean_ms: f64,
    pub p50_ms: f64,
    /// 90th percentile of response times.
    pub p90_ms: f64,
    /// 99th percentile of response times.
    pub p99_ms: f64,
    pub max_ms: f64,
    /// Limit on the 90th percentile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit_p90_ms: Option<f64>,
    /// Transactions rolled back as their input demands; they count as completed.
    #[serde(default)]
    pub rolled_back: u64,
    /// Attempts that were repeated after a conflict.
    #[serde(default)]
    pub retries: u64,
    /// Transactions that were given up; not included in `count`.
    #[serde(default)]
    pub failed: u64,
}

/// A condition that a valid run must meet, and its result.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Check {
    /// The source of the requirement: `TPC-C §5.5.1.5`.
    pub clause: String,
    pub what: String,
    /// The measured value with its unit.
    pub found: String,
    /// The allowed range with its unit.
    pub bounds: String,
    pub verdict: CheckVerdict,
}

/// The result of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum CheckVerdict {
    #[serde(rename = "holds")]
    Holds,
    #[serde(rename = "violated")]
    Violated,
    /// The run was too short to decide.
    #[serde(rename = "not shown")]
    NotShown,
}

/// A time series. All lists have the same length.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Series {
    /// The name, which ends with the unit: `cpu_user_percent`.
    pub name: String,
    /// The middle of each interval, in seconds since the start of the run.
    pub at_s: Vec<f64>,
    /// The mean of each interval; `null` if unknown.
    pub mean: Vec<Option<f64>>,
    /// The minimum of each interval; empty if each interval has a single value.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub low: Vec<Option<f64>>,
    /// The maximum of each interval; empty as `low`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub high: Vec<Option<f64>>,
}

/// An event in a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Mark {
    /// Time in seconds since the start of the run.
    pub from_s: f64,
    /// End of an event with a duration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to_s: Option<f64>,
    /// The event: `measured`, `server gone`.
    pub what: String,
}

/// A histogram of response times.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Histogram {
    /// The transaction type: `NEW_ORDER`.
    pub name: String,
    /// Width of each bin; the first bin begins at zero.
    pub bin_ms: f64,
    /// Count per bin; the last bin contains all longer times.
    pub counts: Vec<u64>,
}

impl Detail {
    /// All numbers of the details.
    pub fn numbers(&self) -> impl Iterator<Item = f64> {
        let Self {
            folder: _,
            transactions,
            checks: _,
            series,
            marks,
            histograms,
            units: _,
        } = self;
        let of_series = series.iter().flat_map(|one| {
            let values = [&one.mean, &one.low, &one.high].into_iter().flatten();
            one.at_s.iter().copied().chain(values.flatten().copied())
        });
        let of_marks = marks
            .iter()
            .flat_map(|mark| [Some(mark.from_s), mark.to_s].into_iter().flatten());
        let bins = histograms.iter().map(|one| one.bin_ms);
        let of_transactions = transactions.iter().flat_map(Transactions::numbers);
        of_transactions.chain(of_series).chain(of_marks).chain(bins)
    }
}

impl Transactions {
    fn numbers(&self) -> impl Iterator<Item = f64> + use<> {
        let times = [
            self.mean_ms,
            self.p50_ms,
            self.p90_ms,
            self.p99_ms,
            self.max_ms,
        ];
        let bounds = [self.least_share_percent, self.limit_p90_ms];
        times
            .into_iter()
            .chain(bounds.into_iter().flatten())
            .chain([self.share_percent])
    }
}

impl Series {
    /// Whether all lists have the same length; minima and maxima may be empty.
    #[must_use]
    pub fn is_even(&self) -> bool {
        let fits = |list: &[Option<f64>]| list.len() == self.at_s.len();
        let extremes = [&self.low, &self.high];
        fits(&self.mean) && extremes.iter().all(|list| list.is_empty() || fits(list))
    }
}
