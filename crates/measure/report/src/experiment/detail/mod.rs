//! What runs tell beyond their metrics: transactions, checks, courses, distributions.
//!
//! Runs of one arm and cell are pooled where they can be added (counts), and shown by their
//! medians where they cannot. A course is that of the middle run of each arm: an average of
//! several runs would hide what happens in each.

mod balance;
mod checks;
mod configuration;
pub(crate) mod course;
pub(crate) mod distribution;
mod transactions;

use saiga_experiment::result::{Cell, Detail, Run};

pub(super) use balance::balance;
pub(super) use checks::{all_checks, violations};
pub(super) use configuration::differences;
pub(super) use course::course;
pub(super) use distribution::distribution;
pub(super) use transactions::transactions;

use super::View;

/// The runs of one arm in one cell that count and have details.
fn runs_of<'a>(view: &View<'a>, cell: &Cell, arm: &str) -> Vec<(&'a Run, &'a Detail)> {
    let counted = view
        .result
        .runs
        .iter()
        .filter(|run| run.cell == cell.id && run.arm == arm && run.rejected.is_none());
    counted
        .filter_map(|run| Some((run, run.detail.as_deref()?)))
        .collect()
}

/// Cells in which an arm has runs with details.
fn cells<'a>(view: &View<'a>) -> Vec<&'a Cell> {
    let has_detail = |cell: &&Cell| {
        let arms = &view.result.arms;
        arms.iter()
            .any(|arm| !runs_of(view, cell, &arm.name).is_empty())
    };
    view.result.cells.iter().filter(has_detail).collect()
}

/// The run in the middle by the main metric, the lower one of two.
fn middle<'a>(view: &View<'a>, runs: &[(&'a Run, &'a Detail)]) -> Option<(&'a Run, &'a Detail)> {
    let value = |run: &Run| run.metrics.get(view.main_metric).copied().unwrap_or(0.0);
    let mut sorted = runs.to_vec();
    sorted.sort_by(|(a, _), (b, _)| value(a).total_cmp(&value(b)));
    sorted.get(sorted.len().saturating_sub(1) / 2).copied()
}
