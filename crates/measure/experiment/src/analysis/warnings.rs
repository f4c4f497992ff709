//! The warnings of an experiment: reasons to doubt its numbers, each with cause and advice.

use std::collections::BTreeMap;

use crate::engine::{OTHERS, REPEATED, STOLEN};
use crate::result::{Arm, Cell, Comparison, Run, Warning};
use crate::stats::{Method, median};

use super::{AcceptedRuns, Side, THROUGHPUT, judged, left_out};

/// An interval is wide if its ends differ by more than this factor.
const WIDE: f64 = 1.5;
/// A client that uses more than this share of its cores counts as saturated.
const SATURATED: f64 = 0.95;
/// A server that uses less than this share of a core counts as not saturated.
const NOT_SATURATED: f64 = 0.85;

/// The parts of a plan that were not carried out.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Shortfall {
    /// The reason if the experiment ended before its plan was complete.
    pub stopped: Option<String>,
    /// Cell, arm and last reason of each arm that was given up.
    pub given_up: Vec<(String, String, String)>,
    /// A phrase for advice that says how runs become longer: `longer --seconds`.
    pub longer: String,
}

/// All warnings about the runs and comparisons, in order of severity.
pub(super) fn all(
    arms: &[Arm],
    cells: &[Cell],
    runs: &[Run],
    comparisons: &[Comparison],
    accepted: &AcceptedRuns<'_>,
    shortfall: &Shortfall,
) -> Vec<Warning> {
    let mut warnings = Vec::new();
    warnings.extend(stopped(shortfall));
    warnings.extend(given_up(shortfall));
    warnings.extend(rejected(runs));
    warnings.extend(without_ratio(arms, cells, accepted));
    warnings.extend(too_few(arms, cells, accepted));
    warnings.extend(wide(arms, comparisons, accepted, &shortfall.longer));
    warnings.extend(client_limited(arms, cells, accepted));
    warnings
}

fn warning(text: String, cause: &str, action: &str, cells: Vec<String>) -> Warning {
    let some = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    Warning {
        text,
        cause: some(cause),
        action: some(action),
        cells,
    }
}

fn stopped(shortfall: &Shortfall) -> Option<Warning> {
    let reason = shortfall.stopped.as_ref()?;
    let text =
        format!("The experiment ended early ({reason}); the result contains the runs until then.");
    let action = "Repeat it to the end before you draw conclusions.";
    Some(warning(text, "", action, vec![]))
}

/// For example `1 cell`, `2 cells`.
fn with_plural(count: usize, noun: &str) -> String {
    if count == 1 {
        format!("1 {noun}")
    } else {
        format!("{count} {noun}s")
    }
}

fn given_up(shortfall: &Shortfall) -> Vec<Warning> {
    let mut by_cause: BTreeMap<(&str, &str), Vec<String>> = BTreeMap::new();
    for (cell, arm, reason) in &shortfall.given_up {
        by_cause
            .entry((arm, reason))
            .or_default()
            .push(cell.clone());
    }
    let one = |((arm, reason), cells): ((&str, &str), Vec<String>)| {
        let text = format!("The {arm} arm failed three times in a row and was given up: {reason}");
        warning(text, "", "", cells)
    };
    by_cause.into_iter().map(one).collect()
}

fn rejected(runs: &[Run]) -> Vec<Warning> {
    let matching = |wanted: fn(&str) -> bool| -> Vec<&Run> {
        runs.iter()
            .filter(|run| run.rejected.as_deref().is_some_and(wanted))
            .collect()
    };
    let noisy = matching(|reason| reason.starts_with(OTHERS));
    let stolen = matching(|reason| reason.starts_with(STOLEN));
    let unproven = matching(|reason| reason.starts_with("not accelerated"));
    let failed = matching(|reason| {
        ![OTHERS, STOLEN, "not accelerated", REPEATED]
            .iter()
            .any(|p| reason.starts_with(p))
    });
    let total = runs.len();
    let mut warnings = Vec::new();
    if let [first, ..] = failed.as_slice() {
        let reason = first.rejected.as_deref().unwrap_or_default();
        let text = format!(
            "{} of {total} runs failed; the first: {reason}",
            failed.len()
        );
        warnings.push(warning(text, "", "", cells_of(&failed)));
    }
    if let [first, ..] = unproven.as_slice() {
        let reason = first.rejected.as_deref().unwrap_or_default();
        let text = format!("{} of {total} runs were {reason}", unproven.len());
        let action = "Run `saiga status` while such a server runs to see the reason. These runs are rejected.";
        warnings.push(warning(text, "", action, cells_of(&unproven)));
    }
    if !noisy.is_empty() {
        let text = format!(
            "{} of {total} runs were rejected: other processes used the CPU.",
            noisy.len()
        );
        let cause = "Other programs were running on this machine.";
        let action = "Stop them or wait for their end, then repeat; --max-foreign sets the limit.";
        warnings.push(warning(text, cause, action, cells_of(&noisy)));
    }
    if !stolen.is_empty() {
        let text = format!(
            "{} of {total} runs were rejected: {STOLEN} CPU time from this machine.",
            stolen.len()
        );
        let cause = "Other virtual machines were busy on the same host.";
        let action = "Repeat at another time or on another host; --max-foreign sets the limit.";
        warnings.push(warning(text, cause, action, cells_of(&stolen)));
    }
    warnings
}

fn cells_of(runs: &[&Run]) -> Vec<String> {
    let mut cells: Vec<String> = runs.iter().map(|run| run.cell.clone()).collect();
    cells.sort();
    cells.dedup();
    cells
}

/// Pairs without a ratio of the main metric.
fn without_ratio(arms: &[Arm], cells: &[Cell], accepted: &AcceptedRuns<'_>) -> Vec<Warning> {
    let Some((reference, subject)) = judged(arms) else {
        return Vec::new();
    };
    let sides = [reference.name.as_str(), subject.name.as_str()];
    let of_cell = |cell: &Cell| {
        let metric = accepted.main_metric(cell, arms);
        left_out::of_cell(accepted, &cell.id, sides, metric)
    };
    cells.iter().filter_map(of_cell).collect()
}

/// Cells with too few accepted pairs; pairs without a ratio are the subject of [`without_ratio`].
fn too_few(arms: &[Arm], cells: &[Cell], accepted: &AcceptedRuns<'_>) -> Option<Warning> {
    let (reference, subject) = judged(arms)?;
    let least = accepted.method.min_pairs();
    let lacks = |cell: &&Cell| {
        let side = |arm| Side {
            cell: &cell.id,
            arm,
        };
        let metric = accepted.main_metric(cell, arms);
        let pairs = accepted.both(side(&reference.name), side(&subject.name), metric);
        pairs.len() < least
    };
    let cells: Vec<String> = cells
        .iter()
        .filter(lacks)
        .map(|cell| cell.id.clone())
        .collect();
    (!cells.is_empty()).then(|| {
        let text = format!(
            "Fewer than {} pairs count in {}: no verdict there.",
            match accepted.method {
                Method::Fixed => "six",
                Method::Sequential => "eight",
            },
            with_plural(cells.len(), "cell")
        );
        warning(
            text,
            "Runs were rejected, or never made.",
            "Repeat on a quiet machine, or with more --pairs.",
            cells,
        )
    })
}

fn wide(
    arms: &[Arm],
    comparisons: &[Comparison],
    accepted: &AcceptedRuns<'_>,
    longer: &str,
) -> Option<Warning> {
    let (reference, subject) = judged(arms)?;
    let wide = |c: &&Comparison| {
        c.metric == accepted.ranked().0
            && c.a == reference.name
            && c.b == subject.name
            && c.ratio.ci95.is_some_and(|[lo, hi]| hi > lo * WIDE)
    };
    let cells: Vec<String> = comparisons
        .iter()
        .filter(wide)
        .map(|c| c.cell.clone())
        .collect();
    // Best-against-best cells have no runs, but the result lists them like other cells.
    (!cells.is_empty()).then(|| {
        let text = format!(
            "The spread is wide in {}: the interval's ends differ by more than half.",
            with_plural(cells.len(), "comparison")
        );
        warning(
            text,
            "Runs are short, or the scheduler decides the outcome.",
            &format!("Repeat with more --pairs or {longer}."),
            cells,
        )
    })
}

fn client_limited(arms: &[Arm], cells: &[Cell], accepted: &AcceptedRuns<'_>) -> Vec<Warning> {
    let on = |arm: &Arm| {
        let limited = |cell: &&Cell| client_was_the_limit(cell, &arm.name, accepted);
        let cells: Vec<String> = cells
            .iter()
            .filter(limited)
            .map(|cell| cell.id.clone())
            .collect();
        (!cells.is_empty()).then(|| {
            let text = format!(
                "The client was the limit of the {} arm in {}: it used its whole core while the \
                 server was not saturated.",
                arm.name,
                with_plural(cells.len(), "cell")
            );
            let action =
                "Throughput understates the server of this arm; its CPU time per operation does not.";
            warning(text, "The load generator runs one thread.", action, cells)
        })
    };
    arms.iter().filter_map(on).collect()
}

fn client_was_the_limit(cell: &Cell, arm: &str, accepted: &AcceptedRuns<'_>) -> bool {
    if cell.params.placement == "one core" || cell.params.hog != "none" {
        return false;
    }
    let threads = cell
        .params
        .workload
        .get("client_threads")
        .and_then(serde_json::Value::as_f64);
    let side = Side {
        cell: &cell.id,
        arm,
    };
    let rates = accepted.values(side, THROUGHPUT);
    let cores = |metric: &str| {
        let cpu = accepted.values(side, metric);
        let used = |(pair, rate): (&u32, &f64)| Some(cpu.get(pair)? * rate / 1e6);
        median(&rates.iter().filter_map(used).collect::<Vec<_>>())
    };
    let (client, server) = (cores("client_cpu_us_per_op"), cores("server_cpu_us_per_op"));
    client.is_some_and(|cores| cores > SATURATED * threads.unwrap_or(1.0))
        && server.is_some_and(|cores| cores < NOT_SATURATED)
}
