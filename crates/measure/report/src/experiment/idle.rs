//! Memory that idle connections beside the load use, by arm.

use saiga_experiment::result::Run;
use saiga_experiment::stats;

use super::{View, new_section, tables};
use saiga_document::model::{Align, Cell, Row, Section, Visibility};
use saiga_document::number;

/// Metric that only runs beside idle connections have.
const CONNECTIONS: &str = "idle_connections";

/// One row per arm; the section is empty when no run had idle connections beside it.
pub(super) fn connections(view: &View) -> Section {
    let mut section = new_section("idle", "Idle connections", Visibility::Answer);
    let beside = |run: &&Run| run.rejected.is_none() && run.metrics.contains_key(CONNECTIONS);
    let runs: Vec<&Run> = view.result.runs.iter().filter(beside).collect();
    let row_of = |arm: &str| {
        let own: Vec<&Run> = runs.iter().filter(|run| run.arm == arm).copied().collect();
        row(arm, &own).map(Row::Cells)
    };
    let arms = view.result.arms.iter();
    let rows: Vec<Row> = arms.filter_map(|arm| row_of(&arm.name)).collect();
    if rows.is_empty() {
        return section;
    }
    let text = "Every idle connection has carried requests before; under Saiga it therefore uses \
                a channel. The table shows how much resident memory of the server and of the \
                clients each idle connection adds, compared with the same processes without idle \
                connections. Memory that both processes share counts for both. Kernel memory of \
                the TCP connection is the same in every arm and is not included.";
    let columns = [
        ("Arm", Align::Left),
        ("Runs", Align::Right),
        ("Idle connections", Align::Right),
        ("Server memory per connection, bytes", Align::Right),
        ("Client memory per connection, bytes", Align::Right),
    ];
    section.blocks.extend(tables::explained(
        text,
        "Memory of an idle connection, by arm",
        &columns,
        rows,
    ));
    section
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
