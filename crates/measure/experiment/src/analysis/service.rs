//! What a fail-over cost the clients, as sentences of the headline.
//!
//! No verdict: how long it takes is decided by time-outs of the servers more than by the
//! arm, and writes are lost in few runs or none. So every arm is said for itself.

use crate::result::{Arm, Cell};
use crate::stats::median;

use super::{Counted, Side, WITHOUT_SERVICE};

/// One sentence for each arm of each cell in which a master was killed.
pub(super) fn sentences(arms: &[Arm], cells: &[Cell], counted: &Counted<'_>) -> Vec<String> {
    let one = |cell: &Cell, arm: &Arm| {
        let side = Side {
            cell: &cell.id,
            arm: &arm.name,
        };
        let of = |metric| -> Vec<f64> { counted.counts(side, metric).into_values().collect() };
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
