//! What a run tells beyond its metrics: its course, its transactions, its checks.
//!
//! Small enough to stand in `result.json` however long the run was: a course has some hundred
//! points, each with the lowest and the highest value of its stretch, so that no peak is lost. The full
//! samples lie in the run's own folder.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The details of one run; each part may be missing.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Detail {
    /// Where the run's own files are, seen from `result.json`: `runs/0003-saiga`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub folder: Option<String>,
    /// What was run, by type of transaction.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub transactions: Vec<Transactions>,
    /// What must hold for the run to be believed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub checks: Vec<Check>,
    /// How values went up and down.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub series: Vec<Series>,
    /// What happened when.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub marks: Vec<Mark>,
    /// How response times are distributed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub histograms: Vec<Histogram>,
    /// Units of figures that hooks printed and no metric declares, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub units: BTreeMap<String, String>,
}

/// All transactions of one type within the measured interval.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Transactions {
    /// As BenchmarkSQL calls it: `NEW_ORDER`.
    pub name: String,
    /// How many were done.
    pub count: u64,
    /// Their share of all.
    pub share_percent: f64,
    /// The smallest valid share, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub least_share_percent: Option<f64>,
    /// Response times.
    pub mean_ms: f64,
    /// Half of them are not longer.
    pub p50_ms: f64,
    /// Nine of ten are not longer.
    pub p90_ms: f64,
    /// 99 of 100 are not longer.
    pub p99_ms: f64,
    /// The longest.
    pub max_ms: f64,
    /// What nine of ten must stay below.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit_p90_ms: Option<f64>,
    /// Rolled back as their input demands; done as well.
    #[serde(default)]
    pub rolled_back: u64,
    /// Attempts that met a conflict and were made again.
    #[serde(default)]
    pub retries: u64,
    /// Given up; not counted above.
    #[serde(default)]
    pub failed: u64,
}

/// One thing that must hold.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Check {
    /// Where it is demanded: `TPC-C §5.5.1.5`.
    pub clause: String,
    /// What must hold, in words.
    pub what: String,
    /// What was found, with its unit.
    pub found: String,
    /// The bounds, with their unit.
    pub bounds: String,
    /// Whether it holds.
    pub verdict: CheckVerdict,
}

/// Whether a check holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum CheckVerdict {
    /// It does.
    #[serde(rename = "holds")]
    Holds,
    /// It does not.
    #[serde(rename = "violated")]
    Violated,
    /// Too little was run to tell.
    #[serde(rename = "not shown")]
    NotShown,
}

/// The course of one value. All lists are equally long.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Series {
    /// With its unit at the end, as metrics are named: `cpu_user_percent`.
    pub name: String,
    /// The middle of each stretch, in seconds since the start of the run.
    pub at_s: Vec<f64>,
    /// The mean of each stretch; `null` where nothing is known.
    pub mean: Vec<Option<f64>>,
    /// Its lowest value; empty when each stretch has one value only.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub low: Vec<Option<f64>>,
    /// Its highest value.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub high: Vec<Option<f64>>,
}

/// Something that happened in a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Mark {
    /// When, in seconds since the start of the run.
    pub from_s: f64,
    /// Until when, for what lasted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to_s: Option<f64>,
    /// What: `measured`, `server gone`.
    pub what: String,
}

/// How often which response times occurred.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Histogram {
    /// Of what: `NEW_ORDER`.
    pub name: String,
    /// The width of each bin; the first one begins at zero.
    pub bin_ms: f64,
    /// One number for each bin, the last one for all that is longer.
    pub counts: Vec<u64>,
}

impl Detail {
    /// Every number in it.
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
    /// Whether all lists are equally long; the extremes may be missing.
    #[must_use]
    pub fn is_even(&self) -> bool {
        let fits = |list: &[Option<f64>]| list.len() == self.at_s.len();
        let extremes = [&self.low, &self.high];
        fits(&self.mean) && extremes.iter().all(|list| list.is_empty() || fits(list))
    }
}
