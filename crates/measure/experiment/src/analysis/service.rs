//! Sentences of the headline about fail-overs: time without service and lost writes.
//!
//! There is no verdict, because the duration depends on timeouts of the servers more than on the
//! arm, and writes are lost in few runs or none. Each arm has a sentence of its own.

use crate::result::{Arm, Cell};
use crate::stats::median;

use super::{AcceptedRuns, Side, WITHOUT_SERVICE};

/// A sentence for each arm of each cell with a fail-over.
pub(super) fn sentences(arms: &[Arm], cells: &[Cell], accepted: &AcceptedRuns<'_>) -> Vec<String> {
    let one = |cell: &Cell, arm: &Arm| {
        let side = Side {
            cell: &cell.id,
            arm: &arm.name,
        };
        let of = |metric| -> Vec<f64> { accepted.counts(side, metric).into_values().collect() };
        let (gaps, written) = (of(WITHOUT_SERVICE), of("acknowledged_writes"));
        let lost = of("lost_writes");
        let [low, high] = range(&gaps)?;
        let runs = match gaps.len() {
            1 => "1 run".to_owned(),
            n => format!("median of {n} runs, {low:.2} to {high:.2} s"),
        };
        Some(format!(
            "Fail-over on the {} arm: {:.2} s without service ({runs}); {} of {} acknowledged \
             writes were lost.",
            arm.name,
            median(&gaps)?,
            lost.iter().sum::<f64>(),
            written.iter().sum::<f64>(),
        ))
    };
    let of_cell = |cell| arms.iter().filter_map(move |arm| one(cell, arm));
    cells.iter().flat_map(of_cell).collect()
}

fn range(values: &[f64]) -> Option<[f64; 2]> {
    let low = values.iter().copied().min_by(f64::total_cmp)?;
    let high = values.iter().copied().max_by(f64::total_cmp)?;
    Some([low, high])
}
