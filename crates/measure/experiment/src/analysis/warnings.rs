//! What a reader must know before believing the numbers.

use std::collections::BTreeMap;

use crate::engine::{OTHERS, REPEATED, STOLEN};
use crate::result::{Arm, Cell, Comparison, Run, Warning};
use crate::stats::{Method, median};

use super::{Counted, Side, THROUGHPUT, judged, left_out};

/// An interval whose ends differ by more than this factor is wide.
const WIDE: f64 = 1.5;
/// Share of its cores from which on a client is busy all the time.
const BUSY: f64 = 0.95;
/// Share of a core below which a server has time left.
const IDLE: f64 = 0.85;

/// What kept a plan from being done as planned.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Shortfall {
    /// Why it ended before the plan was done.
    pub stopped: Option<String>,
    /// Cell, arm and reason of each arm that was given up.
    pub given_up: Vec<(String, String, String)>,
    /// What makes runs of the workload longer, for advice: `longer --seconds`.
    pub longer: String,
}

/// Every warning that the runs and comparisons justify, the gravest first.
pub(super) fn all(
    arms: &[Arm],
    cells: &[Cell],
    runs: &[Run],
    comparisons: &[Comparison],
    counted: &Counted<'_>,
    shortfall: &Shortfall,
) -> Vec<Warning> {
    let mut warnings = Vec::new();
    warnings.extend(stopped(shortfall));
    warnings.extend(given_up(shortfall));
    warnings.extend(rejected(runs));
    warnings.extend(without_ratio(arms, cells, counted));
    warnings.extend(too_few(arms, cells, counted));
    warnings.extend(wide(arms, comparisons, counted, &shortfall.longer));
    warnings.extend(client_limited(arms, cells, counted));
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
    let text = format!(
        "The experiment ended early ({reason}): only what was measured until then is here."
    );
    let action = "Repeat it to the end before you draw conclusions.";
    Some(warning(text, "", action, vec![]))
}

/// `1 cell`, `2 cells`.
fn counted_as(count: usize, noun: &str) -> String {
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
    let mute = matching(|reason| reason.starts_with("not accelerated"));
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
    if let [first, ..] = mute.as_slice() {
        let reason = first.rejected.as_deref().unwrap_or_default();
        let text = format!("{} of {total} runs were {reason}", mute.len());
        let action = "`saiga status` on such a server says why; those runs do not count.";
        warnings.push(warning(text, "", action, cells_of(&mute)));
    }
    if !noisy.is_empty() {
        let text = format!(
            "{} of {total} runs were rejected: other processes used the CPU.",
            noisy.len()
        );
        let cause = "Something else was running on this machine.";
        let action = "Stop it or wait until it is done, then repeat; --max-foreign sets the limit.";
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

/// Pairs that drop out of what the headline is about.
fn without_ratio(arms: &[Arm], cells: &[Cell], counted: &Counted<'_>) -> Vec<Warning> {
    let Some((reference, subject)) = judged(arms) else {
        return Vec::new();
    };
    let sides = [reference.name.as_str(), subject.name.as_str()];
    let of_cell = |cell: &Cell| {
        let metric = counted.main_metric(cell, arms);
        left_out::of_cell(counted, &cell.id, sides, metric)
    };
    cells.iter().filter_map(of_cell).collect()
}

/// Pairs without a ratio are told by [`without_ratio`].
fn too_few(arms: &[Arm], cells: &[Cell], counted: &Counted<'_>) -> Option<Warning> {
    let (reference, subject) = judged(arms)?;
    let least = counted.method.min_pairs();
    let lacks = |cell: &&Cell| {
        let side = |arm| Side {
            cell: &cell.id,
            arm,
        };
        let metric = counted.main_metric(cell, arms);
        let pairs = counted.both(side(&reference.name), side(&subject.name), metric);
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
            match counted.method {
                Method::Fixed => "six",
                Method::Sequential => "eight",
            },
            counted_as(cells.len(), "cell")
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
    counted: &Counted<'_>,
    longer: &str,
) -> Option<Warning> {
    let (reference, subject) = judged(arms)?;
    let wide = |c: &&Comparison| {
        c.metric == counted.ranked().0
            && c.a == reference.name
            && c.b == subject.name
            && c.ratio.ci95.is_some_and(|[lo, hi]| hi > lo * WIDE)
    };
    let cells: Vec<String> = comparisons
        .iter()
        .filter(wide)
        .map(|c| c.cell.clone())
        .collect();
    // Best-against-best cells have no runs of their own; the result lists them all the same.
    (!cells.is_empty()).then(|| {
        let text = format!(
            "The spread is wide in {}: the interval's ends differ by more than half.",
            counted_as(cells.len(), "comparison")
        );
        warning(
            text,
            "Runs are short, or the scheduler decides the outcome.",
            &format!("Repeat with more --pairs or {longer}."),
            cells,
        )
    })
}

fn client_limited(arms: &[Arm], cells: &[Cell], counted: &Counted<'_>) -> Vec<Warning> {
    let on = |arm: &Arm| {
        let limited = |cell: &&Cell| client_was_the_limit(cell, &arm.name, counted);
        let cells: Vec<String> = cells
            .iter()
            .filter(limited)
            .map(|cell| cell.id.clone())
            .collect();
        (!cells.is_empty()).then(|| {
            let text = format!(
                "The client was the limit of the {} arm in {}: it used its whole core while the \
                 server had time left.",
                arm.name,
                counted_as(cells.len(), "cell")
            );
            let action =
                "Throughput there understates this arm's server; its CPU per operation does not.";
            warning(text, "The load generator runs one thread.", action, cells)
        })
    };
    arms.iter().filter_map(on).collect()
}

fn client_was_the_limit(cell: &Cell, arm: &str, counted: &Counted<'_>) -> bool {
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
    let rates = counted.values(side, THROUGHPUT);
    let cores = |metric: &str| {
        let cpu = counted.values(side, metric);
        let used = |(pair, rate): (&u32, &f64)| Some(cpu.get(pair)? * rate / 1e6);
        median(&rates.iter().filter_map(used).collect::<Vec<_>>())
    };
    let (client, server) = (cores("client_cpu_us_per_op"), cores("server_cpu_us_per_op"));
    client.is_some_and(|cores| cores > BUSY * threads.unwrap_or(1.0))
        && server.is_some_and(|cores| cores < IDLE)
}
