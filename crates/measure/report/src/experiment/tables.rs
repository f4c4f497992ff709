//! The tables of an experiment: every cell with counts and spread, and every rejected run.

use saiga_experiment::result::{Cell as Condition, Run};
use saiga_experiment::stats;

use super::{View, first_seen, section, words};
use saiga_document::model::{Align, Block, Cell, Column, Reach, Row, Section, Table};
use saiga_document::number;

/// More rejected runs than this are folded away; the warnings say how many there are and why.
const UNFOLDED_REJECTIONS: usize = 30;

/// One row per cell and arm: how many runs count, and of each metric the median and the range.
pub(super) fn cells(view: &View) -> Section {
    let mut made = section("cells", "Every cell", Reach::Evidence);
    let runs = || view.result.runs.iter().filter(|run| run.rejected.is_none());
    let mut metrics = view.metrics();
    metrics.extend(runs().flat_map(|run| run.metrics.keys().map(String::as_str)));
    let metrics = first_seen(metrics.into_iter());
    let mut columns = vec![column("Arm", Align::Left), column("Runs", Align::Right)];
    columns.extend(
        metrics
            .iter()
            .map(|name| column(&titled(name), Align::Right)),
    );
    let mut rows = Vec::new();
    for cell in &view.result.cells {
        let arms = view.result.arms.iter().filter_map(|arm| {
            let own: Vec<&Run> = runs()
                .filter(|run| run.cell == cell.id && run.arm == arm.name)
                .collect();
            (!own.is_empty()).then(|| Row::Cells(arm_row(&arm.name, &own, &metrics)))
        });
        let arms: Vec<_> = arms.collect();
        if !arms.is_empty() {
            rows.push(Row::Group(view.workloads.full_label(cell)));
            rows.extend(arms);
        }
    }
    if !rows.is_empty() {
        let text = "The median of the runs that count; under it the lowest and the highest of \
                    them, and half that range as a share of the median.";
        made.blocks.push(Block::Text(text.to_owned()));
        let caption = "Medians and spread of every metric, by cell and arm".to_owned();
        made.blocks.push(Block::Table(Table {
            caption,
            columns,
            rows,
        }));
    }
    made
}

fn arm_row(arm: &str, runs: &[&Run], metrics: &[&str]) -> Vec<Cell> {
    let mut row = vec![Cell::new(arm), Cell::new(runs.len().to_string())];
    for name in metrics {
        let values: Vec<f64> = runs
            .iter()
            .filter_map(|run| run.metrics.get(*name).copied())
            .collect();
        row.push(spread(&values).unwrap_or_else(|| Cell::new("–")));
    }
    row
}

/// The median with the range of the values.
pub(super) fn spread(values: &[f64]) -> Option<Cell> {
    let median = stats::median(values)?;
    let low = values.iter().copied().min_by(f64::total_cmp)?;
    let high = values.iter().copied().max_by(f64::total_cmp)?;
    let mut note = format!("{}–{}", number::value(low), number::value(high));
    // Of nothing, such as no lost write, there is no share.
    if median > 0.0 {
        let share = number::percent((high - low) / 2.0 / median);
        note = format!("{note}, ±{share}");
    }
    Some(Cell {
        text: number::value(median),
        note: Some(note),
    })
}

fn titled(metric: &str) -> String {
    let title = words::metric(metric).title;
    match words::unit(metric) {
        "" => title,
        unit => format!("{title}, {unit}"),
    }
}

/// A table of `rows` below `text`, which says what they mean.
pub(super) fn explained(
    text: &str,
    caption: &str,
    columns: &[(&str, Align)],
    rows: Vec<Row>,
) -> [Block; 2] {
    let columns = columns.iter();
    let table = Table {
        caption: caption.to_owned(),
        columns: columns
            .map(|(title, align)| column(title, *align))
            .collect(),
        rows,
    };
    [Block::Text(text.to_owned()), Block::Table(table)]
}

/// One metric of the runs that have it.
pub(super) fn values(runs: &[&Run], metric: &str) -> Vec<f64> {
    let values = runs.iter().filter_map(|run| run.metrics.get(metric));
    values.copied().collect()
}

pub(super) fn column(title: &str, align: Align) -> Column {
    Column {
        title: title.to_owned(),
        align,
    }
}

/// One row per rejected run, with the reason.
pub(super) fn rejected(view: &View) -> Section {
    let mut made = section("rejected", "Rejected runs", Reach::Detail);
    let row = |run: &Run| {
        let reason = run.rejected.as_deref()?;
        let cell: Option<&Condition> = view.result.cell(&run.cell);
        let label = cell.map_or_else(|| run.cell.clone(), |cell| view.workloads.full_label(cell));
        let numbers = [(run.pair + 1).to_string(), number::value(run.foreign_cpu_s)];
        let [pair, foreign] = numbers.map(Cell::new);
        let start = Cell::new(words::moment(&run.started));
        Some(Row::Cells(vec![
            Cell::new(label),
            Cell::new(run.arm.clone()),
            pair,
            start,
            foreign,
            Cell::new(reason),
        ]))
    };
    let rows: Vec<_> = view.result.runs.iter().filter_map(row).collect();
    if rows.is_empty() {
        return made;
    }
    if rows.len() > UNFOLDED_REJECTIONS {
        made.reach = Reach::Evidence;
    }
    made.blocks.push(Block::Text(
        "These runs count in no number of this report. Each was repeated where time allowed; \
         they stay in result.json."
            .to_owned(),
    ));
    let columns = vec![
        column("Cell", Align::Left),
        column("Arm", Align::Left),
        column("Pair", Align::Right),
        column("Started", Align::Left),
        column("CPU used by others, s", Align::Right),
        column("Reason", Align::Left),
    ];
    let caption = "Rejected runs and why".to_owned();
    made.blocks.push(Block::Table(Table {
        caption,
        columns,
        rows,
    }));
    made
}
