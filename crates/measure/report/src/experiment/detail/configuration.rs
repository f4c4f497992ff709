//! Server settings that differ between the arms.

use std::collections::BTreeSet;

use saiga_experiment::result::Arm;

use super::super::{View, format, new_section, tables};
use saiga_document::model::{Align, Block, Cell, Row, Section, Table, Visibility};

/// Whether a server of this arm ever ran. An arm that never ran has no recorded settings.
fn has_run(view: &View, arm: &Arm) -> bool {
    let mut runs = view.result.runs.iter();
    runs.any(|run| run.arm == arm.name && !run.metrics.is_empty())
}

/// A table of the settings that are not the same in all arms.
pub(in super::super) fn differences(view: &View) -> Section {
    let mut section = new_section(
        "configuration",
        "Settings in which the arms differ",
        Visibility::Detail,
    );
    let arms: Vec<_> = view
        .result
        .arms
        .iter()
        .filter(|arm| !arm.configuration.is_empty() && has_run(view, arm))
        .collect();
    if arms.len() < 2 {
        return section;
    }
    let names: BTreeSet<&String> = arms
        .iter()
        .flat_map(|arm| arm.configuration.keys())
        .collect();
    let value = |arm: &&Arm, name: &str| {
        arm.configuration
            .get(name)
            .map_or("(not set)", String::as_str)
            .to_owned()
    };
    let mut rows = Vec::new();
    for name in &names {
        let values: Vec<String> = arms.iter().map(|arm| value(arm, name)).collect();
        if values.iter().any(|one| *one != values[0]) {
            let cells =
                std::iter::once(Cell::new(name.as_str())).chain(values.into_iter().map(Cell::new));
            rows.push(Row::Cells(cells.collect()));
        }
    }
    let same = names.len() - rows.len();
    section.blocks.push(Block::Text(match rows.len() {
        0 => format!("None: the servers of all arms have the same values in all {same} settings."),
        _ => {
            let others = format::count(same, "other setting is", "other settings are");
            format!("{others} the same in all arms.")
        }
    }));
    if !rows.is_empty() {
        let titles = std::iter::once("Setting").chain(arms.iter().map(|arm| arm.name.as_str()));
        section.blocks.push(Block::Table(Table {
            caption: "Settings by arm".to_owned(),
            columns: titles
                .map(|title| tables::column(title, Align::Left))
                .collect(),
            rows,
        }));
    }
    section
}
