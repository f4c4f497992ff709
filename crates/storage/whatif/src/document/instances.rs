//! The section with the share of each directory in written and moved pages.

use saiga_document::model::{Cell, Row};
use saiga_document::number;

use super::{Align, Block, Content, Section, Table, Visibility, columns, placement_name};
use crate::compare::Run;
use crate::directories::Part;

pub(super) fn section(content: &Content<'_>) -> Option<Section> {
    let directories = content.directories?;
    let condition = content.runs.first()?.condition;
    let is_shown =
        |run: &&Run| run.condition == condition && run.without.is_none() && !run.is_oracle;
    let mut rows = Vec::new();
    for run in content.runs.iter().filter(is_shown) {
        let parts = directories.parts(&run.case);
        if !parts.is_empty() {
            let title = format!("{}, {}", run.label(), placement_name(run.placement));
            rows.push(Row::Group(title));
            rows.extend(parts.iter().map(row));
        }
    }
    if rows.is_empty() {
        return None;
    }
    Some(Section {
        id: "directories",
        title: "By directory".to_owned(),
        visibility: Visibility::Summary,
        blocks: vec![
            Block::Text(
                "Pages written to each directory, pages of it that were moved, and its share of the \
                 write amplification: moved pages of any directory that were moved because pages of \
                 its files had died in the same unit."
                    .to_owned(),
            ),
            Block::Table(Table {
                caption: "The share of each directory".to_owned(),
                columns: columns(&[
                    ("directory", Align::Left),
                    ("written", Align::Right),
                    ("of all", Align::Right),
                    ("pages moved", Align::Right),
                    ("WAF of its pages", Align::Right),
                    ("moved because of it", Align::Right),
                    ("of all that is moved", Align::Right),
                ]),
                rows,
            }),
        ],
    })
}

fn row(part: &Part) -> Row {
    let cells = [
        part.name.clone(),
        number::bytes(part.written_bytes),
        number::percent(part.of_written),
        part.moved_pages.to_string(),
        part.waf().map_or("–".to_owned(), |waf| format!("{waf:.3}")),
        format!("{:.0}", part.caused_pages),
        part.of_caused.map_or("–".to_owned(), number::percent),
    ];
    Row::Cells(cells.map(Cell::new).into())
}
