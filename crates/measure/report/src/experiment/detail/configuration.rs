//! In which settings of their servers the arms differ.

use std::collections::BTreeSet;

use saiga_experiment::result::Arm;

use super::super::{View, section, tables};
use saiga_document::model::{Align, Block, Cell, Reach, Row, Section, Table};

/// Whether the servers of an arm ever were at work: others were not asked for their settings.
fn was_asked(view: &View, arm: &Arm) -> bool {
    let mut runs = view.result.runs.iter();
    runs.any(|run| run.arm == arm.name && !run.metrics.is_empty())
}

/// A table of the settings that are not the same in all arms.
pub(in super::super) fn differences(view: &View) -> Section {
    let mut made = section(
        "configuration",
        "Settings in which the arms differ",
        Reach::Detail,
    );
    let arms: Vec<_> = view
        .result
        .arms
        .iter()
        .filter(|arm| !arm.configuration.is_empty() && was_asked(view, arm))
        .collect();
    if arms.len() < 2 {
        return made;
    }
    let names: BTreeSet<&String> = arms
        .iter()
        .flat_map(|arm| arm.configuration.keys())
        .collect();
    let value = |arm: &&Arm, name: &str| {
        arm.configuration
            .get(name)
            .map_or("(not there)", String::as_str)
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
    made.blocks.push(Block::Text(match rows.len() {
        0 => format!("None of {same}: the servers of all arms say the same of themselves."),
        _ => format!("The other {same} settings are the same in all arms."),
    }));
    if !rows.is_empty() {
        let titles = std::iter::once("Setting").chain(arms.iter().map(|arm| arm.name.as_str()));
        made.blocks.push(Block::Table(Table {
            caption: "Settings by arm".to_owned(),
            columns: titles
                .map(|title| tables::column(title, Align::Left))
                .collect(),
            rows,
        }));
    }
    made
}
