//! Parses `[[expect]]` and checks a result against it. Unmet expectations make the exit code 1.

use super::reader::Table;
use super::tree::Entries;
use crate::analysis;
use crate::result::{Comparison, ComparisonKind, ExperimentResult, Verdict, Warning};

/// An expected verdict or ratio.
#[derive(Debug, Clone, PartialEq)]
pub struct Expectation {
    /// `None` for the metric of the headline.
    pub metric: Option<String>,
    /// `None` for the last arm.
    pub arm: Option<String>,
    /// The reference; `None` for the first arm.
    pub against: Option<String>,
    /// `None` for every cell.
    pub cell: Option<String>,
    pub verdict: Option<Verdict>,
    /// Lower bound on the whole interval of the ratio.
    pub above: Option<f64>,
    /// Upper bound on the whole interval of the ratio.
    pub below: Option<f64>,
}

impl Expectation {
    /// Parses an `[[expect]]` table; `arms` are the names of all arms.
    pub(super) fn read(root: &Table<'_>, line: usize, entries: &Entries, arms: &[&str]) -> Self {
        let table = root.inner("expect".to_owned(), line, entries);
        let verdicts = [
            ("faster", Verdict::Faster),
            ("slower", Verdict::Slower),
            ("no difference shown", Verdict::NoDifferenceShown),
        ];
        let named: Vec<(&str, &str)> = arms.iter().map(|arm| (*arm, *arm)).collect();
        let arm = |key| table.choice(key, &named).map(str::to_owned);
        let expectation = Self {
            metric: table.text("metric"),
            arm: arm("arm"),
            against: arm("against"),
            cell: table.text("cell"),
            verdict: table.choice("verdict", &verdicts),
            above: table.fraction("ratio_above", 0.0, 1e6),
            below: table.fraction("ratio_below", 0.0, 1e6),
        };
        let Self {
            verdict,
            above,
            below,
            ..
        } = &expectation;
        if verdict.is_none() && above.is_none() && below.is_none() {
            table.problem(
                "verdict",
                "is missing: write verdict, ratio_above or ratio_below",
            );
        }
        table.finish();
        expectation
    }

    /// Sentences about the parts that `result` does not meet; empty if it meets the expectation.
    #[must_use]
    pub fn unmet(&self, result: &ExperimentResult) -> Vec<String> {
        let (metric, [a, b]) = self.about(result);
        let concerned = |one: &&Comparison| {
            one.metric == metric
                && (one.a.as_str(), one.b.as_str()) == (a, b)
                && one.kind == ComparisonKind::SamePlacement
                && self.cell.as_ref().is_none_or(|cell| *cell == one.cell)
        };
        let found: Vec<&Comparison> = result.comparisons.iter().filter(concerned).collect();
        if found.is_empty() {
            return vec![format!("{metric} of {b} against {a} was not compared")];
        }
        found
            .into_iter()
            .filter_map(|one| self.unmet_by(one))
            .collect()
    }

    /// Warns of pairs of `result` without a ratio of the expected metric.
    #[must_use]
    pub fn left_out(&self, result: &ExperimentResult) -> Vec<Warning> {
        let (metric, arms) = self.about(result);
        let concerned = |cell: &&str| self.cell.as_ref().is_none_or(|wanted| wanted == cell);
        let cells = result.cells.iter().map(|cell| cell.id.as_str());
        let cells: Vec<&str> = cells.filter(concerned).collect();
        analysis::left_out(&result.own_metrics, &result.runs, &cells, arms, metric)
    }

    /// The metric, and the reference and subject arms.
    fn about<'a>(&'a self, result: &'a ExperimentResult) -> (&'a str, [&'a str; 2]) {
        let main = || analysis::main_metric(&result.own_metrics, &result.runs);
        let first = result.arms.first().map_or("", |arm| arm.name.as_str());
        let last = result.arms.last().map_or("", |arm| arm.name.as_str());
        let arms = [
            self.against.as_deref().unwrap_or(first),
            self.arm.as_deref().unwrap_or(last),
        ];
        (self.metric.as_deref().unwrap_or_else(main), arms)
    }

    fn unmet_by(&self, one: &Comparison) -> Option<String> {
        let Some([low, high]) = one.ratio.ci95 else {
            let reason = if one.ratio.has_too_few_pairs() {
                "too few pairs for an interval"
            } else {
                "no interval, because it is 0 in some runs"
            };
            return Some(format!("{} in {}: {reason}", one.metric, one.cell));
        };
        let met = self.verdict.is_none_or(|verdict| verdict == one.verdict)
            && self.above.is_none_or(|least| low > least)
            && self.below.is_none_or(|most| high < most);
        (!met).then(|| {
            format!(
                "{} of {} against {} in {}: ratio {:.3} ({low:.3} to {high:.3}), expected {}",
                one.metric,
                one.b,
                one.a,
                one.cell,
                one.ratio.median,
                self.wanted()
            )
        })
    }

    fn wanted(&self) -> String {
        let verdict = self.verdict.map(|verdict| match verdict {
            Verdict::Faster => "a faster arm".to_owned(),
            Verdict::Slower => "a slower arm".to_owned(),
            Verdict::NoDifferenceShown => "no difference".to_owned(),
        });
        let above = self.above.map(|least| format!("above {least}"));
        let below = self.below.map(|most| format!("below {most}"));
        let all: Vec<String> = [verdict, above, below].into_iter().flatten().collect();
        all.join(", ")
    }
}
