//! Measured latencies beside the firmware's distances.

use saiga_document::number;

use crate::draw::lines::Lines;
use crate::latency::{Comparison, Latency, Samples, compare};
use crate::machine::Machine;

pub(super) fn draw(lines: &mut Lines, machine: &Machine, latency: &Latency) {
    lines.gap();
    lines.text(0, &title(latency));
    let (heading, rows) = table(latency);
    lines.table(2, &heading, &rows);
    let comparison = compare(machine, latency);
    if latency.nodes.len() > 1 {
        lines.gap();
        lines.text(0, RATIOS);
        let (heading, rows) = ratios(latency, &comparison);
        lines.table(2, &heading, &rows);
    }
    for sentence in sentences(latency, &comparison) {
        lines.text(2, &sentence);
    }
}

pub(crate) const RATIOS: &str = "Ratios to the local node: measured / by the firmware's distances";

pub(crate) fn title(latency: &Latency) -> String {
    let repetitions = latency
        .rows
        .iter()
        .flat_map(|row| row.cells.iter().flatten());
    let repetitions = repetitions
        .map(|samples| samples.ns.len())
        .max()
        .unwrap_or(0);
    format!(
        "Latency in ns: least to greatest of {repetitions} repetitions, {} in {}",
        number::bytes(latency.bytes),
        latency.pages
    )
}

/// A heading with the nodes, and a row for each CPU.
pub(crate) fn table(latency: &Latency) -> (Vec<String>, Vec<Vec<String>>) {
    let range = |samples: &Samples| format!("{:.0}-{:.0}", samples.least(), samples.greatest());
    let rows = latency.rows.iter().map(|row| {
        let cells = row
            .cells
            .iter()
            .map(|cell| cell.as_ref().map_or_else(dash, range));
        labelled(row.cpu, row.node, cells)
    });
    (heading(latency), rows.collect())
}

pub(crate) fn ratios(
    latency: &Latency,
    comparison: &Comparison,
) -> (Vec<String>, Vec<Vec<String>>) {
    let rows = latency
        .rows
        .iter()
        .zip(&comparison.ratios)
        .map(|(row, ratios)| {
            let cell = |ratio: &Option<[f64; 2]>| {
                ratio.map_or_else(dash, |[measured, firmware]| {
                    format!("{} / {}", number::ratio(measured), number::ratio(firmware))
                })
            };
            labelled(row.cpu, row.node, ratios.iter().map(cell))
        });
    (heading(latency), rows.collect())
}

/// Remarks on the measurement and the comparison.
pub(crate) fn sentences(latency: &Latency, comparison: &Comparison) -> Vec<String> {
    let mut all = comparison.differences.clone();
    let has_ratios = comparison.ratios.iter().flatten().flatten().count() > latency.rows.len();
    if all.is_empty() && has_ratios {
        all.push("The order of the nodes is that of the firmware's distances.".to_owned());
    }
    all.extend(latency.notes.iter().cloned());
    all
}

fn heading(latency: &Latency) -> Vec<String> {
    let nodes = latency.nodes.iter().map(u32::to_string);
    std::iter::once("memory of node".to_owned())
        .chain(nodes)
        .collect()
}

fn labelled(cpu: u32, node: u32, cells: impl Iterator<Item = String>) -> Vec<String> {
    std::iter::once(format!("CPU {cpu} on node {node}"))
        .chain(cells)
        .collect()
}

fn dash() -> String {
    "-".to_owned()
}
