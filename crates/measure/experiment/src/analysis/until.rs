//! The stopping rule of a sequential experiment.
//!
//! Each cell is judged by the sequential interval of its headline comparison: subject over
//! reference, in the main metric of the cell. This interval is valid after every pair, so checking
//! after every round needs no correction.

use crate::engine::Outcome;
use crate::result::{Arm, Cell, Metric, Run, Warning};
use crate::stats::Method;

use super::{AcceptedRuns, Side, judged};

/// The width of intervals at which an experiment ends.
#[derive(Debug, Clone, PartialEq)]
pub struct Until {
    /// Half the width of an interval as a fraction: 0.02 is 2 %.
    pub half_width: f64,
    /// Only cells whose id contains one of these texts decide; empty means all.
    pub cells: Vec<String>,
}

/// The width of the interval of a cell so far.
#[derive(Debug, Clone, PartialEq)]
pub struct Width {
    /// Id of the cell.
    pub cell: String,
    /// Subject over reference in each accepted pair.
    pub ratios: Vec<f64>,
    /// Half the width of the sequential interval as a fraction; `None` for too few pairs.
    pub half_width: Option<f64>,
}

/// The widths of all cells by the sequential method; `own` are metrics specific to the experiment.
#[must_use]
pub fn widths(own: &[Metric], arms: &[Arm], cells: &[Cell], runs: &[Run]) -> Vec<Width> {
    let Some((reference, subject)) = judged(arms) else {
        return Vec::new();
    };
    let accepted = AcceptedRuns::of(Method::Sequential, own, runs);
    let one = |cell: &Cell| {
        let side = |arm| Side {
            cell: &cell.id,
            arm,
        };
        let metric = accepted.main_metric(cell, arms);
        let (a, b) = (side(&reference.name), side(&subject.name));
        let summary = accepted.compared(a, b, metric);
        Width {
            cell: cell.id.clone(),
            half_width: summary.and_then(|summary| summary.half_width()),
            ratios: accepted.ratios(a, b, metric),
        }
    };
    cells.iter().map(one).collect()
}

impl Until {
    /// Whether `cell` takes part in the decision. Cells in which an arm was given up do not,
    /// because they get no more pairs.
    #[must_use]
    pub fn decides(&self, cell: &str, outcome: &Outcome) -> bool {
        let named = self.cells.is_empty() || self.cells.iter().any(|text| cell.contains(text));
        named
            && !outcome
                .given_up
                .iter()
                .any(|(given_up, _, _)| given_up == cell)
    }

    /// The cells whose intervals are still too wide.
    #[must_use]
    pub fn open(
        &self,
        own: &[Metric],
        arms: &[Arm],
        cells: &[Cell],
        outcome: &Outcome,
    ) -> Vec<Width> {
        let mut widths = widths(own, arms, cells, &outcome.runs);
        widths.retain(|width| {
            let sure = width.half_width.is_some_and(|half| half <= self.half_width);
            !sure && self.decides(&width.cell, outcome)
        });
        widths
    }

    /// The warning about an experiment that ended with too wide intervals. `longer` is the advice
    /// on how to make runs longer.
    #[must_use]
    pub fn warning(&self, open: &[Width], longer: &str) -> Option<Warning> {
        let cells: Vec<String> = open.iter().map(|width| width.cell.clone()).collect();
        if cells.is_empty() {
            return None;
        }
        let noun = if cells.len() == 1 { "cell" } else { "cells" };
        Some(Warning {
            text: format!(
                "The interval of {} {noun} is still wider than \u{b1}{} %.",
                cells.len(),
                percent(self.half_width)
            ),
            cause: Some("The experiment reached --max-pairs, or was ended early.".to_owned()),
            action: Some(format!("Allow more --max-pairs, or {longer}.")),
            cells,
        })
    }
}

/// A fraction in per cent, for display: `2`, `0.5`.
#[must_use]
pub fn percent(share: f64) -> String {
    let percent = share * 100.0;
    let text = match percent {
        ..0.005 => "0".to_owned(),
        ..0.095 => format!("{percent:.2}"),
        ..9.95 => format!("{percent:.1}"),
        _ => format!("{percent:.0}"),
    };
    match text.strip_suffix(".0") {
        Some(whole) => whole.to_owned(),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::result::CellParams;

    fn arm(name: &str) -> Arm {
        Arm {
            name: name.into(),
            server: String::new(),
            client: String::new(),
            env: BTreeMap::new(),
            description: None,
            varies: None,
            configuration: BTreeMap::new(),
        }
    }

    fn cell(id: &str) -> Cell {
        Cell {
            id: id.into(),
            params: CellParams {
                placement: "unpinned".into(),
                hog: "none".into(),
                workload: BTreeMap::new(),
            },
        }
    }

    /// A pair for each ratio, with a throughput of 100 in the first arm.
    fn pairs(cell: &str, ratios: &[f64]) -> Vec<Run> {
        let run = |arm: &str, pair, throughput: f64| Run {
            cell: cell.into(),
            arm: arm.into(),
            pair,
            position: 0,
            started: String::new(),
            seconds: 1.0,
            metrics: BTreeMap::from([("throughput_ops_s".to_owned(), throughput)]),
            foreign_cpu_s: 0.0,
            rejected: None,
            detail: None,
        };
        let both =
            |(pair, ratio): (u32, &f64)| [run("a", pair, 100.0), run("b", pair, 100.0 * ratio)];
        (0..).zip(ratios).flat_map(both).collect()
    }

    fn open(until: &Until, outcome: &Outcome) -> Vec<String> {
        let cells = [cell("set-c1"), cell("get-c1")];
        let open = until.open(&[], &[arm("a"), arm("b")], &cells, outcome);
        open.into_iter().map(|width| width.cell).collect()
    }

    #[test]
    fn a_cell_is_open_until_its_interval_is_narrow() {
        let until = Until {
            half_width: 0.02,
            cells: vec![],
        };
        let wide = [0.96, 0.98, 1.0, 1.01, 1.02, 1.03, 1.04, 1.05];
        let narrow = wide.map(|ratio: f64| ratio.powf(0.4));
        let mut outcome = Outcome::default();
        assert_eq!(
            open(&until, &outcome),
            ["set-c1", "get-c1"],
            "nothing is known"
        );
        outcome.runs = pairs("set-c1", &wide);
        outcome.runs.extend(pairs("get-c1", &narrow[..7]));
        assert_eq!(
            open(&until, &outcome),
            ["set-c1", "get-c1"],
            "seven pairs are too few"
        );
        outcome.runs = pairs("set-c1", &wide);
        outcome.runs.extend(pairs("get-c1", &narrow));
        assert_eq!(open(&until, &outcome), ["set-c1"]);
        // The interval of eight pairs is from the least to the greatest.
        let widths = widths(&[], &[arm("a"), arm("b")], &[cell("set-c1")], &outcome.runs);
        let half = widths[0].half_width.unwrap();
        assert!(
            (half - ((1.05f64 / 0.96).sqrt() - 1.0)).abs() < 1e-9,
            "{half}"
        );
    }

    #[test]
    fn what_is_not_named_or_given_up_does_not_decide() {
        let outcome = Outcome::default();
        let named = Until {
            half_width: 0.02,
            cells: vec!["get".into()],
        };
        assert_eq!(open(&named, &outcome), ["get-c1"]);
        let gone = Outcome {
            given_up: vec![("get-c1".into(), "b".into(), "it failed".into())],
            ..Outcome::default()
        };
        assert_eq!(open(&named, &gone), [""; 0]);
    }

    #[test]
    fn the_warning_names_what_stayed_open() {
        let until = Until {
            half_width: 0.005,
            cells: vec![],
        };
        assert_eq!(until.warning(&[], "longer runs"), None);
        let open = until.open(
            &[],
            &[arm("a"), arm("b")],
            &[cell("set-c1")],
            &Outcome::default(),
        );
        let warning = until.warning(&open, "longer runs").unwrap();
        assert_eq!(
            warning.action.as_deref(),
            Some("Allow more --max-pairs, or longer runs.")
        );
        assert_eq!(
            warning.text,
            "The interval of 1 cell is still wider than \u{b1}0.5 %."
        );
        assert_eq!(warning.cells, ["set-c1"]);
    }

    #[test]
    fn per_cent_have_the_digits_that_matter() {
        let said = [0.02, 0.005, 0.0141, 0.123, 0.0004, 1.0, 0.0].map(percent);
        assert_eq!(said, ["2", "0.5", "1.4", "12", "0.04", "100", "0"]);
    }
}
