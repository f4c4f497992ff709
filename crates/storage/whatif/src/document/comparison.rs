//! Write amplification of every set, as bars and as a table.

use saiga_document::model::{Bar, BarGroup, BarLabels, BarPanel, Bars, Cell, Row};
use saiga_document::number;
use saiga_ftl::replay::Placement;

use crate::compare::{ceiling, spared};

use super::{
    Align, Block, Content, Notice, Run, Section, Table, Visibility, columns, condition_words,
    placement_name, ratio, words,
};

const PLACEMENTS: [Placement; 3] = [
    Placement::OneStream,
    Placement::InitiallyIsolated,
    Placement::PersistentlyIsolated,
];
/// Their names beside a bar.
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
                "II is initially isolated, PI persistently. Dots are the intervals of the measurement, whole repetitions of the \
                 trace that write the device once or more; ± is half of their range, where there are several. The most that \
                 any placement can save is 1 - 1/WAF of one stream, all that is moved. The oracle is the best of six placements \
                 by the known death times of single pages."
                    .to_owned(),
            ),
            Block::Table(table(content.runs)),
        ],
    })
}

/// Runs of one condition after the other.
fn by_condition(runs: &[Run]) -> Vec<&[Run]> {
    runs.chunk_by(|a, b| a.condition == b.condition).collect()
}

fn bars(runs: &[Run]) -> Bars {
    let panels = by_condition(runs).into_iter().map(|runs| BarPanel {
        title: runs
            .first()
            .map_or(String::new(), |run| condition_words(run.condition)),
        groups: runs
            .chunk_by(|a, b| (&a.set, a.by) == (&b.set, b.by))
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

fn table(runs: &[Run]) -> Table {
    let mut rows = Vec::new();
    for runs_of_one in by_condition(runs) {
        if let Some(first) = runs_of_one.first() {
            let ceiling = ceiling(runs, first).unwrap_or(0.0);
            rows.push(Row::Group(format!(
                "{}: no placement saves more than {}",
                condition_words(first.condition),
                number::percent(ceiling)
            )));
        }
        for run in runs_of_one {
            let change = match ratio(runs, run) {
                Some(ratio) if run.placement != Placement::OneStream => words::change(ratio),
                Some(_) | None => "–".to_owned(),
            };
            let cells = [
                run.label(),
                placement_name(run.placement).to_owned(),
                run.case.streams.len().to_string(),
                format!("{:.3}", run.case.outcome.waf()),
                run.half_range()
                    .map_or("–".to_owned(), |half| format!("{half:.3}")),
                change,
                match spared(runs, run) {
                    Some(share) if run.placement != Placement::OneStream => number::percent(share),
                    Some(_) | None => "–".to_owned(),
                },
            ];
            rows.push(Row::Cells(cells.map(Cell::new).into()));
        }
    }
    Table {
        caption: "Every rule set under every placement".to_owned(),
        columns: columns(&[
            ("rules", Align::Left),
            ("placement", Align::Left),
            ("streams", Align::Right),
            ("WAF", Align::Right),
            ("±", Align::Right),
            ("writes to flash", Align::Right),
            ("moved pages that went", Align::Right),
        ]),
        rows,
    }
}
