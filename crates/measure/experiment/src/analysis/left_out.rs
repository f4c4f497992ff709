//! Warns of pairs that have no ratio although both of their runs are accepted.
//!
//! The cause is a figure that is missing or not positive. Zeros are results, for example that no
//! writes were lost. The pairs without zeros are a selection that allows no conclusion about the
//! others, so a comparison with zeros has no interval and shows no difference (ADR 6).

use std::collections::BTreeMap;

use saiga_document::number;

use crate::result::{Metric, Run, Warning};
use crate::stats::{Method, median};

use super::{AcceptedRuns, Side};

/// A part of the text of these warnings, by which they are recognised.
pub const NO_RATIO: &str = "no ratio:";

/// Warns of the pairs of arms `a` and `b` without a ratio of `metric`, for each of `cells`.
#[must_use]
pub fn left_out(
    own: &[Metric],
    runs: &[Run],
    cells: &[&str],
    [a, b]: [&str; 2],
    metric: &str,
) -> Vec<Warning> {
    let accepted = AcceptedRuns::of(Method::Fixed, own, runs);
    let of_cell = |cell: &&str| of_cell(&accepted, cell, [a, b], metric);
    cells.iter().filter_map(of_cell).collect()
}

/// [`left_out`] for one cell.
pub(super) fn of_cell(
    accepted: &AcceptedRuns<'_>,
    cell: &str,
    [a, b]: [&str; 2],
    metric: &str,
) -> Option<Warning> {
    let side = |arm| Side { cell, arm };
    let pairs = accepted.both(side(a), side(b), metric);
    let mut reasons: BTreeMap<String, usize> = BTreeMap::new();
    for reason in pairs.iter().filter_map(|pair| reason(*pair, [a, b])) {
        *reasons.entry(reason).or_default() += 1;
    }
    let without: usize = reasons.values().sum();
    if without == 0 {
        return None;
    }
    let have = if without == 1 { "has" } else { "have" };
    let mut text = format!(
        "{without} of {} pairs {have} {NO_RATIO} {metric} {}.",
        pairs.len(),
        listed(&reasons)
    );
    let action = if accepted.has_zeros(side(a), side(b), metric) {
        text.push_str(&medians(
            &accepted.figures(side(a), side(b), metric),
            [a, b],
        ));
        "Compare a figure that is never 0, such as completed operations instead of lost ones."
    } else {
        "Find the runs without the figure in result.json, or compare another figure."
    };
    Some(Warning {
        text,
        cause: None,
        action: Some(action.to_owned()),
        cells: vec![cell.to_owned()],
    })
}

fn reason((a, b): (Option<f64>, Option<f64>), names: [&str; 2]) -> Option<String> {
    let fault = |figure: Option<f64>| match figure {
        None => Some("missing"),
        Some(figure) if figure < 0.0 => Some("negative"),
        Some(0.0) => Some("0"),
        Some(_) => None,
    };
    let [name_a, name_b] = names;
    match (fault(a), fault(b)) {
        (None, None) => None,
        (Some(fault), None) => Some(format!("is {fault} in {name_a}")),
        (None, Some(fault)) => Some(format!("is {fault} in {name_b}")),
        (Some(a), Some(b)) if a == b => Some(format!("is {a} in {name_a} and {name_b}")),
        (Some(a), Some(b)) => Some(format!("is {a} in {name_a} and {b} in {name_b}")),
    }
}

/// For example `is 0 in b`; several reasons are listed with their number of pairs.
fn listed(reasons: &BTreeMap<String, usize>) -> String {
    let mut all = reasons.iter();
    match (all.next(), all.next()) {
        (Some((only, _)), None) => only.clone(),
        _ => {
            let each = reasons
                .iter()
                .map(|(why, n)| format!("{why} in {n} of them"));
            each.collect::<Vec<_>>().join(", ")
        }
    }
}

fn medians(figures: &[(f64, f64)], [a, b]: [&str; 2]) -> String {
    let of = |side: fn(&(f64, f64)) -> f64| {
        let values: Vec<f64> = figures.iter().map(side).collect();
        median(&values).map_or_else(String::new, shown)
    };
    format!(
        " The other pairs are a selection and show no direction; the medians of all pairs are {} in \
         {a} and {} in {b}.",
        of(|pair| pair.0),
        of(|pair| pair.1)
    )
}

/// A figure without trailing zeros: `4`, `2.5`.
pub(super) fn shown(figure: f64) -> String {
    let text = number::value(figure);
    if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        text
    }
}
