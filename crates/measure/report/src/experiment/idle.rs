//! What idle connections beside the load hold in memory, by arm.

use saiga_experiment::result::Run;
use saiga_experiment::stats;

use super::{View, section, tables};
use saiga_document::model::{Align, Cell, Reach, Row, Section};
use saiga_document::number;

/// The metric that marks a run beside idle connections.
const CONNECTIONS: &str = "idle_connections";

/// One row per arm; empty when nothing ran beside idle connections.
pub(super) fn connections(view: &View) -> Section {
    let mut made = section("idle", "Idle connections", Reach::Summary);
    let beside = |run: &&Run| run.rejected.is_none() && run.metrics.contains_key(CONNECTIONS);
    let runs: Vec<&Run> = view.result.runs.iter().filter(beside).collect();
    let row_of = |arm: &str| {
        let own: Vec<&Run> = runs.iter().filter(|run| run.arm == arm).copied().collect();
        row(arm, &own).map(Row::Cells)
    };
    let arms = view.result.arms.iter();
    let rows: Vec<Row> = arms.filter_map(|arm| row_of(&arm.name)).collect();
    if rows.is_empty() {
        return made;
    }
    let text = "Each idle connection has carried requests and rests: under Saiga it is in a \
                channel. Resident memory of the server and of the clients that hold them, against \
                that of the same processes without; memory that both share counts on both sides. \
                What the kernel holds for the TCP connection, the same on every arm, is not in it.";
    let columns = [
        ("Arm", Align::Left),
        ("Runs", Align::Right),
        ("Idle connections", Align::Right),
        ("Server memory each, bytes", Align::Right),
        ("Client memory each, bytes", Align::Right),
    ];
    made.blocks.extend(tables::explained(
        text,
        "Memory of an idle connection, by arm",
        &columns,
        rows,
    ));
    made
}

fn row(arm: &str, runs: &[&Run]) -> Option<Vec<Cell>> {
    let of = |metric: &str| tables::values(runs, metric);
    Some(vec![
        Cell::new(arm),
        Cell::new(runs.len().to_string()),
        Cell::new(number::value(stats::median(&of(CONNECTIONS))?)),
        tables::spread(&of("server_rss_per_idle_bytes"))?,
        tables::spread(&of("client_rss_per_idle_bytes"))?,
    ])
}
