//! Details of runs beyond their metrics: transactions, checks, time series, distributions.
//!
//! Counts are added over the runs of one arm and cell; times are medians over these runs. Time
//! series are those of the median run of each arm, because an average over several runs would hide
//! events that each run has at another time.

mod checks;
mod configuration;
pub(crate) mod distribution;
mod littles_law;
pub(crate) mod time_series;
mod transactions;

use saiga_experiment::result::{Cell, Detail, Run};

pub(super) use checks::{all_checks, violations};
pub(super) use configuration::differences;
pub(super) use distribution::distribution;
pub(super) use littles_law::littles_law;
pub(super) use time_series::time_series;
pub(super) use transactions::transactions;

use super::View;

/// The accepted runs of one arm in one cell that have details.
fn accepted_runs<'a>(view: &View<'a>, cell: &Cell, arm: &str) -> Vec<(&'a Run, &'a Detail)> {
    let accepted = view
        .result
        .runs
        .iter()
        .filter(|run| run.cell == cell.id && run.arm == arm && run.rejected.is_none());
    accepted
        .filter_map(|run| Some((run, run.detail.as_deref()?)))
        .collect()
}

/// Cells in which at least one arm has accepted runs with details.
fn cells_with_details<'a>(view: &View<'a>) -> Vec<&'a Cell> {
    let has_detail = |cell: &&Cell| {
        let arms = &view.result.arms;
        arms.iter()
            .any(|arm| !accepted_runs(view, cell, &arm.name).is_empty())
    };
    view.result.cells.iter().filter(has_detail).collect()
}

/// The median run by the main metric; of an even number of runs the lower middle one.
fn median_run<'a>(
    view: &View<'a>,
    runs: &[(&'a Run, &'a Detail)],
) -> Option<(&'a Run, &'a Detail)> {
    let value = |run: &Run| run.metrics.get(view.main_metric).copied().unwrap_or(0.0);
    let mut sorted = runs.to_vec();
    sorted.sort_by(|(a, _), (b, _)| value(a).total_cmp(&value(b)));
    sorted.get(sorted.len().saturating_sub(1) / 2).copied()
}
