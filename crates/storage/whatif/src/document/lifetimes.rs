//! The section with the lifetimes of pages for each kind of file.

use saiga_document::model::{Cell, Line, LineAxis, LinePanel, Lines, Row};
use saiga_document::number;

use super::{Align, Block, Class, Content, Section, Table, Visibility, columns, format};
use crate::measure::Age;

/// Lines of one chart, the number of colours.
const LINES: usize = 5;
/// Most charts.
const CHARTS: usize = 3;
/// Most rows of the table.
const ROWS: usize = 40;
/// Ages with a tick on the axis, in seconds.
const TICKS: [f64; 10] = [
    0.001, 0.01, 0.1, 1.0, 10.0, 60.0, 600.0, 3600.0, 36_000.0, 864_000.0,
];

pub(super) fn section(content: &Content<'_>) -> Option<Section> {
    let classes = content.classes;
    if classes.is_empty() {
        return None;
    }
    let mut blocks = vec![Block::Text(format!(
        "The time until a page is written again or discarded. Pages that were still alive at the end of \
         {} count for the time that they were observed (Kaplan and Meier), so a line that stays below \
         1 means that pages live longer.",
        format::length(content.seen_s)
    ))];
    let ends = ends(classes);
    let drawn: Vec<&Class> = classes
        .iter()
        .filter(|class| class.evidence.lifetimes.ended() > 0)
        .collect();
    for chart in drawn.chunks(LINES).take(CHARTS) {
        blocks.push(Block::Lines(lines(chart, ends)));
    }
    blocks.push(Block::Table(table(content)));
    if classes.len() > ROWS {
        let left = classes.len() - ROWS;
        blocks.push(Block::Text(format!(
            "{left} more, with fewer writes, are not listed."
        )));
    }
    Some(Section {
        id: "lifetimes",
        title: "Lifetimes of pages".to_owned(),
        visibility: Visibility::Detail,
        blocks,
    })
}

/// Returns the least and the greatest age at which a page died.
fn ends(classes: &[Class]) -> [f64; 2] {
    let points = classes
        .iter()
        .flat_map(|class| class.evidence.lifetimes.distribution());
    let (mut low, mut high) = (f64::INFINITY, 0.0_f64);
    for [age, _] in points {
        low = low.min(age);
        high = high.max(age);
    }
    if low < high { [low, high] } else { [1e-3, 1e3] }
}

fn lines(classes: &[&Class], [low, high]: [f64; 2]) -> Lines {
    let line = |(series, class): (usize, &&Class)| {
        let mut points = vec![[low, 0.0]];
        let mut dead = 0.0;
        for [age, share] in class.evidence.lifetimes.distribution() {
            points.push([age, dead]);
            points.push([age, share]);
            dead = share;
        }
        points.push([high, dead]);
        Line {
            series,
            points,
            text: format!("half dead after {}", age_of(class, 0.5)),
        }
    };
    let ticks = TICKS.into_iter().filter(|tick| (low..=high).contains(tick));
    Lines {
        caption: "Share of the pages that are dead".to_owned(),
        series: classes.iter().map(|class| class.name.clone()).collect(),
        axis: LineAxis {
            title: "age of the page".to_owned(),
            ends: [low, high],
            is_logarithmic: true,
            ticks: ticks.map(|tick| (tick, number::seconds(tick))).collect(),
        },
        panels: vec![LinePanel {
            title: "dead, from 0 to 1".to_owned(),
            lines: classes.iter().enumerate().map(line).collect(),
        }],
    }
}

fn age_of(class: &Class, share: f64) -> String {
    let age: Option<Age> = class.evidence.lifetimes.quantile(share);
    age.map_or("–".to_owned(), format::age)
}

fn table(content: &Content<'_>) -> Table {
    let row = |class: &Class| {
        let doubt = class.conclusion.doubt(content.seen_s);
        let mut name = Cell::new(class.name.clone());
        name.note = doubt;
        let texts = [
            class.conclusion.description().to_owned(),
            number::bytes(class.evidence.written_bytes),
            age_of(class, 0.25),
            age_of(class, 0.5),
            age_of(class, 0.75),
            number::two_figures(class.conclusion.rewrites_per_h),
            class.hint.to_string(),
        ];
        Row::Cells([name].into_iter().chain(texts.map(Cell::new)).collect())
    };
    Table {
        caption: "Observations of each kind of file".to_owned(),
        columns: columns(&[
            ("file", Align::Left),
            ("written", Align::Left),
            ("bytes", Align::Right),
            ("a quarter dead after", Align::Right),
            ("half", Align::Right),
            ("three quarters", Align::Right),
            ("rewrites of a page per hour", Align::Right),
            ("hint", Align::Left),
        ]),
        rows: content.classes.iter().take(ROWS).map(row).collect(),
    }
}
