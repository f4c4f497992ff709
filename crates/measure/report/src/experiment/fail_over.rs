//! Cost of a fail-over: time without service, and acknowledged writes that were lost.

use saiga_experiment::result::Run;

use super::{View, new_section, tables};
use saiga_document::model::{Align, Cell, Row, Section, Visibility};
use saiga_document::number;

/// Metric that only runs with a killed master have.
const WITHOUT_SERVICE: &str = "without_service_s";

/// One row per cell and arm; the section is empty when no master was killed.
pub(super) fn section(view: &View) -> Section {
    let mut section = new_section("fail-over", "Fail-over", Visibility::Answer);
    let killed = |run: &&Run| run.rejected.is_none() && run.metrics.contains_key(WITHOUT_SERVICE);
    let runs: Vec<&Run> = view.result.runs.iter().filter(killed).collect();
    let mut rows = Vec::new();
    for cell in &view.result.cells {
        for arm in &view.result.arms {
            let own = |run: &&&Run| run.cell == cell.id && run.arm == arm.name;
            let own: Vec<&Run> = runs.iter().filter(own).copied().collect();
            rows.extend(row(&arm.name, &own).map(Row::Cells));
        }
    }
    if rows.is_empty() {
        return section;
    }
    let text = "The master was killed while clients wrote to it, each key once. The time without \
                service is the longest time in which no write was acknowledged. A write is lost if \
                the old master acknowledged it and the new master does not have it; this can \
                happen because replication is asynchronous.";
    let columns = [
        ("Arm", Align::Left),
        ("Runs", Align::Right),
        ("Time without service, s", Align::Right),
        ("Acknowledged writes", Align::Right),
        ("Lost writes", Align::Right),
        ("Runs with lost writes", Align::Right),
    ];
    section
        .blocks
        .extend(tables::explained(text, "Fail-over, by arm", &columns, rows));
    section
}

fn row(arm: &str, runs: &[&Run]) -> Option<Vec<Cell>> {
    let of = |metric: &str| tables::values(runs, metric);
    let lost = of("lost_writes");
    let losing = lost.iter().filter(|lost| **lost > 0.0).count();
    Some(vec![
        Cell::new(arm),
        Cell::new(runs.len().to_string()),
        tables::spread(&of(WITHOUT_SERVICE))?,
        Cell::new(number::value(of("acknowledged_writes").iter().sum())),
        Cell::new(number::value(lost.iter().sum())),
        Cell::new(losing.to_string()),
    ])
}
