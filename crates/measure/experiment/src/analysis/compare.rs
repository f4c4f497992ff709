//! Compares arms pair by pair: in the same placement, and each arm in its best placement.
//!
//! The best placement of an arm is that with the highest median throughput. It is chosen from the
//! same runs for both arms, so the choice favours both equally. Runs of one pair belong to one
//! round, so they are at most minutes apart even in different placements. `holds_corrected` is
//! Holm's procedure over all comparisons of the experiment.

use crate::result::{Arm, Better, Cell, Comparison, ComparisonKind, Verdict};
use crate::stats::{RatioSummary, holm, median};

use super::{AcceptedRuns, Group, Measure, Side, best_cell, ratio_of};

/// Probability of at least one wrong corrected verdict in an experiment.
pub(super) const FAMILY_ERROR: f64 = 0.05;

/// All comparisons, and the cells of the best-against-best comparisons.
pub(super) fn all(
    arms: &[Arm],
    cells: &[Cell],
    groups: &[Group<'_>],
    accepted: &AcceptedRuns<'_>,
) -> (Vec<Cell>, Vec<Comparison>) {
    let mut found: Vec<(Comparison, f64)> = Vec::new();
    let mut best_cells = Vec::new();
    for (a, b) in arm_pairs(arms) {
        for cell in cells {
            let (a, b) = (
                Side {
                    cell: &cell.id,
                    arm: a,
                },
                Side {
                    cell: &cell.id,
                    arm: b,
                },
            );
            found.extend(compare(
                &cell.id,
                a,
                b,
                ComparisonKind::SamePlacement,
                accepted,
            ));
        }
        for group in groups.iter().filter(|group| group.cells.len() > 1) {
            let (Some(a), Some(b)) = (best(group, a, accepted), best(group, b, accepted)) else {
                continue;
            };
            let kind = ComparisonKind::BestAgainstBest;
            found.extend(compare(&group.best_id, a, b, kind, accepted));
            let cell = best_cell(group);
            if !best_cells.contains(&cell) {
                best_cells.push(cell);
            }
        }
    }
    let p_values: Vec<f64> = found.iter().map(|(_, p)| *p).collect();
    let adjusted = holm(&p_values);
    let corrected = found
        .into_iter()
        .zip(adjusted)
        .map(|((mut comparison, _), p)| {
            let shown = comparison.verdict != Verdict::NoDifferenceShown;
            comparison.holds_corrected = Some(shown && p < FAMILY_ERROR);
            comparison
        });
    (best_cells, corrected.collect())
}

/// All pairs of arms, the earlier arm first.
fn arm_pairs(arms: &[Arm]) -> Vec<(&str, &str)> {
    let later = |i: usize| {
        arms[i + 1..]
            .iter()
            .map(move |b| (arms[i].name.as_str(), b.name.as_str()))
    };
    (0..arms.len()).flat_map(later).collect()
}

/// The arm in the placement with its best median of the ranking metric.
pub(super) fn best<'a>(
    group: &Group<'a>,
    arm: &'a str,
    accepted: &AcceptedRuns<'_>,
) -> Option<Side<'a>> {
    let (metric, _, better) = accepted.ranked();
    let median_of = |cell: &&'a Cell| {
        let side = Side {
            cell: &cell.id,
            arm,
        };
        let values: Vec<f64> = accepted.counts(side, metric).into_values().collect();
        Some((side, median(&values)?))
    };
    let sides = group.cells.iter().filter_map(median_of);
    sides
        .max_by(|(_, a), (_, b)| match better {
            Better::Higher => a.total_cmp(b),
            Better::Lower => b.total_cmp(a),
        })
        .map(|(side, _)| side)
}

/// A comparison for each metric that both sides have, with its p-value.
fn compare(
    cell: &str,
    a: Side<'_>,
    b: Side<'_>,
    kind: ComparisonKind,
    accepted: &AcceptedRuns<'_>,
) -> Vec<(Comparison, f64)> {
    let one = |(metric, unit, better): Measure<'_>| {
        let pairs = accepted.figures(a, b, metric);
        let summary = accepted.compared(a, b, metric)?;
        let side = |of: fn(&(f64, f64)) -> f64| median(&pairs.iter().map(of).collect::<Vec<_>>());
        let crossed = kind == ComparisonKind::BestAgainstBest;
        let comparison = Comparison {
            cell: cell.to_owned(),
            a: a.arm.to_owned(),
            b: b.arm.to_owned(),
            metric: metric.to_owned(),
            unit: unit.to_owned(),
            better,
            a_median: side(|pair| pair.0)?,
            b_median: side(|pair| pair.1)?,
            ratio: ratio_of(&summary),
            verdict: verdict(&summary, better),
            kind,
            a_cell: crossed.then(|| a.cell.to_owned()),
            b_cell: crossed.then(|| b.cell.to_owned()),
            holds_corrected: None,
        };
        Some((comparison, summary.p_value))
    };
    accepted.measures().into_iter().filter_map(one).collect()
}

/// The verdict about B from the interval and the direction of the metric.
pub(super) fn verdict(summary: &RatioSummary, better: Better) -> Verdict {
    let improvement = match better {
        Better::Higher => summary.direction(),
        Better::Lower => -summary.direction(),
    };
    match improvement {
        1.. => Verdict::Faster,
        0 => Verdict::NoDifferenceShown,
        ..=-1 => Verdict::Slower,
    }
}
