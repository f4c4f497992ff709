//! Computes comparisons, a headline and warnings from raw runs.
//!
//! The input is a part of `result.json`, so every conclusion can be computed again from the file.
//! Rejected runs are ignored. The last arm is the subject; its reference is the arm that it varies,
//! or the first arm.
//!
//! Deliberately absent: files, clocks, and any knowledge of one workload.

mod compare;
mod headline;
mod idle;
mod left_out;
mod service;
mod until;
mod warnings;

use std::collections::BTreeMap;

use crate::result::{
    Arm, Better, Cell, Comparison, HeadlineComparison, Metric, PLACEMENT_BEST, Ratio, Run, Verdict,
    Warning,
};
use crate::stats::{Method, RatioSummary};

pub use left_out::{NO_RATIO, left_out};
pub use until::{Until, Width, percent, widths};
pub use warnings::Shortfall;

/// The metric for the ranking of placements and for the headline.
const THROUGHPUT: &str = "throughput_ops_s";
/// The metric that does not depend on the speed of the load generator.
const SERVER_CPU: &str = "server_cpu_us_per_op";

/// Duration of a fail-over for the clients; cells with this metric have no throughput.
const WITHOUT_SERVICE: &str = "without_service_s";

/// The standard metrics: name, unit for display, direction.
const METRICS: [(&str, &str, Better); 8] = [
    (THROUGHPUT, "ops/s", Better::Higher),
    ("latency_p50_us", "µs", Better::Lower),
    ("latency_p99_us", "µs", Better::Lower),
    ("latency_p999_us", "µs", Better::Lower),
    (SERVER_CPU, "µs/op", Better::Lower),
    ("client_cpu_us_per_op", "µs/op", Better::Lower),
    ("total_cpu_us_per_op", "µs/op", Better::Lower),
    (WITHOUT_SERVICE, "s", Better::Lower),
];

/// The conclusions from the runs of an experiment.
#[derive(Debug, Clone, PartialEq)]
pub struct Conclusion {
    /// Cells without runs that stand for the best placement of each arm.
    pub best_cells: Vec<Cell>,
    pub comparisons: Vec<Comparison>,
    /// Sentences, the main sentence first.
    pub headline: Vec<String>,
    /// The comparison of the main sentence.
    pub headline_comparison: Option<HeadlineComparison>,
    /// The verdict of the main sentence.
    pub verdict: Verdict,
    /// Warnings that follow from the runs.
    pub warnings: Vec<Warning>,
}

/// Computes all conclusions from `runs` of `arms` in `cells`, for a fixed number of pairs and
/// standard metrics.
#[must_use]
pub fn conclude(arms: &[Arm], cells: &[Cell], runs: &[Run], shortfall: &Shortfall) -> Conclusion {
    conclude_by(Method::Fixed, &[], arms, cells, runs, shortfall)
}

/// [`conclude`] with a method and with metrics specific to the experiment. The first of these
/// replaces the throughput if no run has a throughput.
#[must_use]
pub fn conclude_by(
    method: Method,
    own: &[Metric],
    arms: &[Arm],
    cells: &[Cell],
    runs: &[Run],
    shortfall: &Shortfall,
) -> Conclusion {
    let accepted = AcceptedRuns::of(method, own, runs);
    let groups = groups(cells);
    let (best_cells, comparisons) = compare::all(arms, cells, &groups, &accepted);
    let (mut headline, main) = headline::write(arms, &groups, &comparisons, &accepted);
    let verdict = main.as_ref().map(|main| main.verdict);
    headline.extend(service::sentences(arms, cells, &accepted));
    headline.extend(idle::sentences(arms, &accepted));
    let warnings = warnings::all(arms, cells, runs, &comparisons, &accepted, shortfall);
    Conclusion {
        best_cells,
        comparisons,
        headline,
        headline_comparison: main,
        verdict: verdict.unwrap_or(Verdict::NoDifferenceShown),
        warnings,
    }
}

/// The metric of the headline and of expectations that name no metric.
#[must_use]
pub fn main_metric<'a>(own: &'a [Metric], runs: &[Run]) -> &'a str {
    ranked(own, runs.iter().filter(|run| run.rejected.is_none())).0
}

/// The standard metric of this name.
#[must_use]
pub fn standard(name: &str) -> Option<Metric> {
    let (name, unit, better) = METRICS.into_iter().find(|(known, ..)| *known == name)?;
    Some(Metric {
        name: name.to_owned(),
        unit: unit.to_owned(),
        better,
        decides: false,
    })
}

/// The metric that is marked to decide; else the throughput, if an accepted run has one; else the
/// first metric specific to the experiment.
fn ranked<'a, 'r>(own: &'a [Metric], mut runs: impl Iterator<Item = &'r Run>) -> Measure<'a> {
    if let Some(metric) = own.iter().find(|metric| metric.decides) {
        return (&metric.name, &metric.unit, metric.better);
    }
    let serves = |run: &Run| run.metrics.contains_key(THROUGHPUT);
    match own.first() {
        Some(first) if !runs.any(serves) => (&first.name, &first.unit, first.better),
        Some(_) | None => METRICS[0],
    }
}

/// Reference and subject: the arm that the last arm varies, or the first arm, and the last arm.
fn judged(arms: &[Arm]) -> Option<(&Arm, &Arm)> {
    let [first, .., subject] = arms else {
        return None;
    };
    Some((subject.varied(arms).unwrap_or(first), subject))
}

/// Cells that differ only in placement.
#[derive(Debug)]
struct Group<'a> {
    /// Id of the best-against-best cell.
    best_id: String,
    /// Whether the cells have no CPU hog.
    undisturbed: bool,
    cells: Vec<&'a Cell>,
}

fn groups(cells: &[Cell]) -> Vec<Group<'_>> {
    let mut groups: Vec<Group<'_>> = Vec::new();
    for cell in cells {
        let same = |group: &&mut Group<'_>| {
            group.cells[0].params.workload == cell.params.workload
                && group.cells[0].params.hog == cell.params.hog
        };
        match groups.iter_mut().find(same) {
            Some(group) => group.cells.push(cell),
            None => groups.push(Group {
                best_id: best_id(cell),
                undisturbed: cell.params.hog == "none",
                cells: vec![cell],
            }),
        }
    }
    groups
}

/// `set-c50-one-core-hog-0` becomes `set-c50-best-hog-0`.
fn best_id(cell: &Cell) -> String {
    let slug = format!("-{}", cell.params.placement.replace(' ', "-"));
    let best = cell.id.replacen(&slug, "-best", 1);
    if best == cell.id {
        format!("{best}-best")
    } else {
        best
    }
}

fn best_cell(group: &Group<'_>) -> Cell {
    let mut params = group.cells[0].params.clone();
    PLACEMENT_BEST.clone_into(&mut params.placement);
    Cell {
        id: group.best_id.clone(),
        params,
    }
}

fn ratio_of(summary: &RatioSummary) -> Ratio {
    Ratio {
        median: summary.median,
        ci95: summary.ci95,
        method: summary.method,
        n_pairs: u32::try_from(summary.n_pairs).unwrap_or(u32::MAX),
    }
}

/// Name, unit for display and direction of a metric.
type Measure<'a> = (&'a str, &'a str, Better);

/// The accepted runs by cell, arm and pair, and the method to summarise their ratios.
#[derive(Debug)]
struct AcceptedRuns<'a> {
    method: Method,
    /// Metrics specific to this experiment, the main metric first.
    own: &'a [Metric],
    runs: BTreeMap<(&'a str, &'a str), BTreeMap<u32, &'a Run>>,
}

/// A side of a comparison: an arm in a cell.
#[derive(Debug, Clone, Copy)]
struct Side<'a> {
    cell: &'a str,
    arm: &'a str,
}

impl<'a> AcceptedRuns<'a> {
    fn of(method: Method, own: &'a [Metric], runs: &'a [Run]) -> Self {
        let mut by_place: BTreeMap<_, BTreeMap<u32, &Run>> = BTreeMap::new();
        for run in runs.iter().filter(|run| run.rejected.is_none()) {
            let place = (run.cell.as_str(), run.arm.as_str());
            by_place.entry(place).or_default().insert(run.pair, run);
        }
        Self {
            method,
            own,
            runs: by_place,
        }
    }

    fn summary(&self, ratios: &[f64]) -> Option<RatioSummary> {
        RatioSummary::by(self.method, ratios)
    }

    /// Summary of B/A of `metric`. A pair with a figure of 0 has no ratio; the other pairs are then
    /// a selection, without an interval.
    fn compared(&self, a: Side<'_>, b: Side<'_>, metric: &str) -> Option<RatioSummary> {
        let summary = self.summary(&self.ratios(a, b, metric))?;
        Some(if self.has_zeros(a, b, metric) {
            summary.of_selection()
        } else {
            summary
        })
    }

    fn has_zeros(&self, a: Side<'_>, b: Side<'_>, metric: &str) -> bool {
        let mut figures = self.figures(a, b, metric).into_iter();
        figures.any(|(a, b)| a <= 0.0 || b <= 0.0)
    }

    /// The positive and finite values of `metric`, by pair.
    fn values(&self, side: Side<'_>, metric: &str) -> BTreeMap<u32, f64> {
        let mut values = self.counts(side, metric);
        values.retain(|_, value| *value > 0.0);
        values
    }

    /// The finite values of `metric`, by pair, including zeros: zero lost writes are a result,
    /// although they have no ratio.
    fn counts(&self, side: Side<'_>, metric: &str) -> BTreeMap<u32, f64> {
        let Some(runs) = self.runs.get(&(side.cell, side.arm)) else {
            return BTreeMap::new();
        };
        let value = |(pair, run): (&u32, &&Run)| Some((*pair, *run.metrics.get(metric)?));
        let values = runs.iter().filter_map(value);
        values.filter(|(_, value)| value.is_finite()).collect()
    }

    /// All metrics to compare.
    fn measures(&self) -> Vec<Measure<'a>> {
        let known = |metric: &&Metric| METRICS.iter().all(|(name, ..)| *name != metric.name);
        let own = self.own.iter().filter(known);
        let own = own.map(|metric| (metric.name.as_str(), metric.unit.as_str(), metric.better));
        METRICS.into_iter().chain(own).collect()
    }

    /// The metric for the ranking of placements and for the headline.
    fn ranked(&self) -> Measure<'a> {
        ranked(
            self.own,
            self.runs.values().flat_map(BTreeMap::values).copied(),
        )
    }

    /// The main metric of a cell.
    fn main_metric(&self, cell: &Cell, arms: &[Arm]) -> &'a str {
        let measures = |arm: &Arm| {
            let (cell, arm) = (cell.id.as_str(), arm.name.as_str());
            !self.values(Side { cell, arm }, WITHOUT_SERVICE).is_empty()
        };
        if arms.iter().any(measures) {
            WITHOUT_SERVICE
        } else {
            self.ranked().0
        }
    }

    /// The figures of `metric` in each pair in which the runs of both sides are accepted.
    fn both(&self, a: Side<'_>, b: Side<'_>, metric: &str) -> Vec<(Option<f64>, Option<f64>)> {
        let places = [(a.cell, a.arm), (b.cell, b.arm)];
        let [Some(runs_a), Some(runs_b)] = places.map(|place| self.runs.get(&place)) else {
            return Vec::new();
        };
        let (a, b) = (self.counts(a, metric), self.counts(b, metric));
        let pairs = runs_a.keys().filter(|pair| runs_b.contains_key(pair));
        let figures = pairs.map(|pair| (a.get(pair).copied(), b.get(pair).copied()));
        figures.collect()
    }

    /// The figures of both sides in the pairs in which both have one, including zeros.
    fn figures(&self, a: Side<'_>, b: Side<'_>, metric: &str) -> Vec<(f64, f64)> {
        let both = self.both(a, b, metric).into_iter();
        both.filter_map(|(a, b)| a.zip(b)).collect()
    }

    /// B/A of `metric` in the pairs in which both sides have a positive value.
    fn ratios(&self, a: Side<'_>, b: Side<'_>, metric: &str) -> Vec<f64> {
        let pairs = self.pairs(a, b, metric).into_values();
        pairs.map(|(a, b)| b / a).collect()
    }

    /// The values of both sides in the pairs in which both are positive.
    fn pairs(&self, a: Side<'_>, b: Side<'_>, metric: &str) -> BTreeMap<u32, (f64, f64)> {
        let (a, b) = (self.values(a, metric), self.values(b, metric));
        a.into_iter()
            .filter_map(|(pair, a)| Some((pair, (a, *b.get(&pair)?))))
            .collect()
    }
}

#[cfg(test)]
mod tests;
