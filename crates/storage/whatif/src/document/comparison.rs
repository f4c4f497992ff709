//! The section with the write amplification of every set, as bars and as a table.

use saiga_document::model::{Bar, BarGroup, BarLabels, BarPanel, Bars, Cell, Row};
use saiga_document::number;
use saiga_ftl::replay::Placement;

use crate::compare::{ceiling, spared};

use super::{
    Align, Block, Column, Condition, Content, Notice, Run, Section, Table, Visibility, columns,
    condition_words, format, placement_name, ratio,
};

const PLACEMENTS: [Placement; 3] = [
    Placement::OneStream,
    Placement::InitiallyIsolated,
    Placement::PersistentlyIsolated,
];
/// The short names of [`PLACEMENTS`] beside bars.
const SHORT: [&str; 3] = ["one stream", "II", "PI"];
const WORDS: BarLabels = BarLabels {
    series: "placement",
    value: "WAF",
    dots: "intervals",
};

pub(super) fn section(content: &Content<'_>) -> Option<Section> {
    let notices = content.notes.iter().map(|note| Notice {
        text: note.clone(),
        cause: None,
        action: None,
        about: Vec::new(),
    });
    Some(Section {
        id: "comparison",
        title: "Write amplification".to_owned(),
        visibility: Visibility::Summary,
        blocks: vec![
            Block::Notices(notices.collect()),
            Block::Bars(bars(content.runs)),
            Block::Text(
                "II is initially isolated, PI persistently. Dots are the intervals of the measurement: \
                 whole repetitions of the trace that write the device once or more; ± is half their \
                 range, if there are several. No placement can save more than 1 - 1/WAF of one stream, \
                 which is all moved pages. The oracle is the best of six placements by the known \
                 death times of single pages."
                    .to_owned(),
            ),
            Block::Table(table(content.runs)),
        ],
    })
}

/// Divides the runs by condition.
fn by_condition(runs: &[Run]) -> Vec<&[Run]> {
    runs.chunk_by(|a, b| a.condition == b.condition).collect()
}

fn bars(runs: &[Run]) -> Bars {
    let panels = by_condition(runs).into_iter().map(|runs| BarPanel {
        title: runs
            .first()
            .map_or(String::new(), |run| condition_words(run.condition)),
        groups: runs
            .chunk_by(|a, b| a.label() == b.label())
            .map(group)
            .collect(),
    });
    Bars {
        caption: "Write amplification".to_owned(),
        unit: "pages programmed for each page written".to_owned(),
        labels: WORDS,
        series: SHORT.map(str::to_owned).into(),
        panels: panels.collect(),
    }
}

fn group(runs: &[Run]) -> BarGroup {
    let bar = |run: &Run| {
        let outcome = &run.case.outcome;
        let measured = &outcome.intervals[outcome.warm_up_intervals..];
        Bar {
            series: PLACEMENTS
                .iter()
                .position(|one| *one == run.placement)
                .unwrap_or(0),
            value: outcome.waf(),
            text: match run.half_range() {
                Some(half) => format!("{:.3} ± {half:.3}", outcome.waf()),
                None => format!("{:.3}", outcome.waf()),
            },
            dots: measured.iter().map(|interval| interval.waf).collect(),
        }
    };
    BarGroup {
        label: runs.first().map_or(String::new(), Run::label),
        bars: runs.iter().map(bar).collect(),
    }
}

/// Runs that only differ in the unit size share a row.
fn table(runs: &[Run]) -> Table {
    let mut sizes: Vec<Option<u32>> = Vec::new();
    for run in runs {
        if !sizes.contains(&run.condition.unit_pages) {
            sizes.push(run.condition.unit_pages);
        }
    }
    let mut rows = Vec::new();
    for runs_of_one in runs.chunk_by(|a, b| a.condition.is_like(&b.condition)) {
        let first = &runs_of_one[0];
        rows.push(title(runs, first, sizes.len()));
        let is_first = |run: &&Run| run.condition == first.condition;
        for run in runs_of_one.iter().filter(is_first) {
            let names = [
                run.label(),
                placement_name(run.placement).to_owned(),
                run.case.streams.len().to_string(),
            ];
            let mut cells: Vec<Cell> = names.map(Cell::new).into();
            for size in &sizes {
                let is_it = |one: &&Run| one.condition.unit_pages == *size && one.is_like(run);
                let found = runs_of_one.iter().find(is_it);
                let texts = found.map_or(["–"; 4].map(str::to_owned), |run| figures(runs, run));
                cells.extend(texts.map(Cell::new));
            }
            rows.push(Row::Cells(cells));
        }
    }
    Table {
        caption: "Every rule set under every placement".to_owned(),
        columns: heading(&sizes),
        rows,
    }
}

/// Returns the row with the condition and the most that a placement can save, unless that depends
/// on the unit size and so on the column.
fn title(runs: &[Run], first: &Run, sizes: usize) -> Row {
    let condition = Condition {
        unit_pages: first.condition.unit_pages.filter(|_| sizes == 1),
        ..first.condition
    };
    let mut text = condition_words(condition);
    if sizes == 1 {
        let ceiling = number::percent(ceiling(runs, first).unwrap_or(0.0));
        text.push_str(&format!(": no placement saves more than {ceiling}"));
    }
    Row::Group(text)
}

/// Formats write amplification, half its range, the change of writes to flash, and the share of
/// moved pages that is saved.
fn figures(runs: &[Run], run: &Run) -> [String; 4] {
    let unless_base = |text: Option<String>| {
        let text = text.filter(|_| !run.is_base());
        text.unwrap_or("–".to_owned())
    };
    [
        format!("{:.3}", run.case.outcome.waf()),
        run.half_range()
            .map_or("–".to_owned(), |half| format!("{half:.3}")),
        unless_base(ratio(runs, run).map(format::change)),
        unless_base(spared(runs, run).map(number::percent)),
    ]
}

fn heading(sizes: &[Option<u32>]) -> Vec<Column> {
    let mut columns = columns(&[
        ("rules", Align::Left),
        ("placement", Align::Left),
        ("streams", Align::Right),
    ]);
    for size in sizes {
        let size = size.filter(|_| sizes.len() > 1);
        let size = size.map_or(String::new(), |pages| format!(", {pages} pages"));
        for title in ["WAF", "±", "writes to flash", "moved pages saved"] {
            columns.push(Column {
                title: format!("{title}{size}"),
                align: Align::Right,
            });
        }
    }
    columns
}
