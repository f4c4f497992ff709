//! Builds a [`Document`] from a [`result.json`](saiga_experiment::result).
//!
//! The sections are ordered for a reader with little time: the verdict, the ratios, the
//! comparisons without a gain, the warnings, then the evidence, the rejected runs and the method.
//! An experiment that was interrupted gets a report, too.
//!
//! Deliberately absent: statistics; every ratio, interval and verdict is the experiment's own.

mod answer;
mod charts;
pub(crate) mod detail;
mod fail_over;
pub(crate) mod format;
mod idle;
mod method;
mod series_names;
mod tables;
mod workloads;

use saiga_experiment::result::{Cell, Comparison, ComparisonKind, ExperimentResult};
use saiga_experiment::stats::Method;
use saiga_experiment::two_hosts::SERVER_HOST_CPU;

use saiga_document::model::{Document, Section, Visibility};
use workloads::Workloads;

/// Metrics that can be the main metric, the preferred one first.
const MAIN_METRICS: [&str; 2] = ["throughput_ops_s", "tpmc_no_think_time"];
const SERVER_CPU: &str = "server_cpu_us_per_op";
/// CPU time of the client, and of client and server together.
const CLIENT_CPU: [&str; 2] = ["client_cpu_us_per_op", "total_cpu_us_per_op"];

/// Builds the report of one experiment; sections without content are left out.
pub fn document(result: &ExperimentResult) -> Document {
    let view = View::new(result);
    let mut sections = vec![
        charts::main_ratios(&view),
        fail_over::section(&view),
        idle::connections(&view),
        answer::no_help(&view),
        answer::warnings(&view),
        detail::violations(&view),
        detail::transactions(&view),
        detail::time_series(&view),
        detail::littles_law(&view),
        detail::distribution(&view),
        charts::server_cpu(&view),
        charts::client_cpu(&view),
        charts::values(&view),
        charts::cpu_values(&view),
        charts::other_metrics(&view),
        charts::other_arms(&view),
        detail::differences(&view),
        tables::cells(&view),
        detail::all_checks(&view),
        tables::rejected(&view),
        method::section(&view),
    ];
    sections.retain(|section| !section.blocks.is_empty());
    Document {
        title: view.title(),
        subtitle: method::subtitle(result),
        verdict: answer::verdict(&view),
        figures: answer::figures(&view),
        pointers: answer::pointers(&view),
        sections,
        origin: "Made by saiga compare. The raw runs are in result.json beside this file."
            .to_owned(),
    }
}

/// A result with the lookups that several sections need.
struct View<'a> {
    result: &'a ExperimentResult,
    workloads: Workloads,
    /// The arm that is judged.
    subject: &'a str,
    /// The arm that `subject` is compared with.
    reference: &'a str,
    /// The metric of the verdict and of the first chart.
    main_metric: &'a str,
}

impl<'a> View<'a> {
    fn new(result: &'a ExperimentResult) -> Self {
        let subject = result.subject().map_or("", |arm| arm.name.as_str());
        let judged = || {
            result
                .comparisons
                .iter()
                .filter(move |one| one.b == subject)
        };
        let varied = result.subject().and_then(|arm| arm.varied(&result.arms));
        let first_arm = || result.arms.first().map_or("", |arm| arm.name.as_str());
        let first_compared = || judged().next().map_or_else(first_arm, |one| one.a.as_str());
        let reference = varied.map_or_else(first_compared, |arm| arm.name.as_str());
        let main_metric = MAIN_METRICS
            .into_iter()
            .find(|name| judged().any(|one| one.metric == *name))
            .or_else(|| judged().next().map(|one| one.metric.as_str()))
            .unwrap_or(MAIN_METRICS[0]);
        let workloads = Workloads::new(&result.cells);
        Self {
            result,
            workloads,
            subject,
            reference,
            main_metric,
        }
    }

    /// How the number of pairs was decided: sequential if that holds for any comparison.
    fn method(&self) -> Method {
        let mut all = self.result.comparisons.iter();
        let sequential = all.any(|one| one.ratio.method == Method::Sequential);
        if sequential {
            Method::Sequential
        } else {
            Method::Fixed
        }
    }

    fn title(&self) -> String {
        let experiment = format::experiment_title(&self.result.experiment);
        let topology = self.workloads.topology();
        let topology = topology.map_or_else(String::new, |name| format!(" {name}"));
        let (subject, reference) = (self.subject, self.reference);
        format!("{experiment}{topology}: {subject} against {reference}")
    }

    /// Comparisons of one metric with reference `a` and subject `b`, each with its cell.
    fn between(&self, a: &str, b: &str, metric: &str) -> Vec<(&'a Cell, &'a Comparison)> {
        let all = self.result.comparisons.iter();
        all.filter(|one| one.a == a && one.b == b && one.metric == metric)
            .filter_map(|one| Some((self.result.cell(&one.cell)?, one)))
            .collect()
    }

    /// Comparisons of one metric with this view's reference and subject.
    fn main(&self, metric: &str) -> Vec<(&'a Cell, &'a Comparison)> {
        self.between(self.reference, self.subject, metric)
    }

    /// The comparisons that decide about a metric: best placement against best placement, or the
    /// same placement if the result has no comparison of the best ones.
    fn fairest(&self, metric: &str) -> Vec<(&'a Cell, &'a Comparison)> {
        let all = self.main(metric);
        let best: Vec<_> = all
            .iter()
            .copied()
            .filter(|(_, one)| is_best(one))
            .collect();
        if best.is_empty() { all } else { best }
    }

    /// The names of all compared metrics, in the order of the result.
    fn metrics(&self) -> Vec<&'a str> {
        first_seen(
            self.result
                .comparisons
                .iter()
                .map(|one| one.metric.as_str()),
        )
    }

    /// The placement of the cell with this id; `None` if the id is unknown.
    fn placement_of(&self, id: Option<&String>) -> Option<&'a str> {
        Some(self.result.cell(id?)?.params.placement.as_str())
    }
}

fn is_best(comparison: &Comparison) -> bool {
    comparison.kind == ComparisonKind::BestAgainstBest
}

/// The distinct items, in the order of their first appearance.
fn first_seen<'a>(items: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut seen = Vec::new();
    for item in items {
        if !seen.contains(&item) {
            seen.push(item);
        }
    }
    seen
}

fn new_section(id: &'static str, title: &str, visibility: Visibility) -> Section {
    Section {
        id,
        title: title.to_owned(),
        visibility,
        blocks: Vec::new(),
    }
}
