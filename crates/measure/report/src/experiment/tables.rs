//! The tables of an experiment: medians and spread in every cell, and every rejected run.

use saiga_experiment::result::{Cell as Condition, Run};
use saiga_experiment::stats;

use super::{View, first_seen, format, new_section};
use saiga_document::model::{Align, Block, Cell, Column, Row, Section, Table, Visibility};
use saiga_document::number;

/// A longer list of rejected runs is folded; a warning states their number and the reasons.
const UNFOLDED_REJECTIONS: usize = 30;

/// One row per cell and arm: the number of accepted runs, and median and range of each metric.
pub(super) fn cells(view: &View) -> Section {
    let mut section = new_section("cells", "Every cell", Visibility::Evidence);
    let runs = || view.result.runs.iter().filter(|run| run.rejected.is_none());
    let mut metrics = view.metrics();
    metrics.extend(runs().flat_map(|run| run.metrics.keys().map(String::as_str)));
    let metrics = first_seen(metrics.into_iter());
    let mut columns = vec![column("Arm", Align::Left), column("Runs", Align::Right)];
    columns.extend(
        metrics
            .iter()
            .map(|name| column(&title_with_unit(name), Align::Right)),
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
        let text = "Each value is the median of the accepted runs. Below it are the lowest and the \
                    highest value, and half of this range as a percentage of the median.";
        section.blocks.push(Block::Text(text.to_owned()));
        let caption = "Medians and spread of every metric, by cell and arm".to_owned();
        section.blocks.push(Block::Table(Table {
            caption,
            columns,
            rows,
        }));
    }
    section
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

/// The median of `values` with their range; `None` if there are no values.
pub(super) fn spread(values: &[f64]) -> Option<Cell> {
    let median = stats::median(values)?;
    let low = values.iter().copied().min_by(f64::total_cmp)?;
    let high = values.iter().copied().max_by(f64::total_cmp)?;
    let mut note = format!("{}–{}", number::value(low), number::value(high));
    // A range has no share of a median of zero, such as zero lost writes.
    if median > 0.0 {
        let share = number::percent((high - low) / 2.0 / median);
        note = format!("{note}, ±{share}");
    }
    Some(Cell::new(number::value(median)).with_note(Some(note)))
}

fn title_with_unit(metric: &str) -> String {
    let title = format::metric(metric).title;
    match format::unit(metric) {
        "" => title,
        unit => format!("{title}, {unit}"),
    }
}

/// The paragraph `text`, which explains the table, and the table below it.
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

/// The values of one metric; runs without the metric are skipped.
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

/// One row per rejected run, with the reason of the rejection.
pub(super) fn rejected(view: &View) -> Section {
    let mut section = new_section("rejected", "Rejected runs", Visibility::Detail);
    let row = |run: &Run| {
        let reason = run.rejected.as_deref()?;
        let cell: Option<&Condition> = view.result.cell(&run.cell);
        let label = cell.map_or_else(|| run.cell.clone(), |cell| view.workloads.full_label(cell));
        let numbers = [(run.pair + 1).to_string(), number::value(run.foreign_cpu_s)];
        let [pair, foreign] = numbers.map(Cell::new);
        let start = Cell::new(format::timestamp(&run.started));
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
        return section;
    }
    if rows.len() > UNFOLDED_REJECTIONS {
        section.visibility = Visibility::Evidence;
    }
    section.blocks.push(Block::Text(
        "No figure of this report includes these runs. Each was repeated if time allowed. Their \
         values are in result.json."
            .to_owned(),
    ));
    let columns = vec![
        column("Cell", Align::Left),
        column("Arm", Align::Left),
        column("Pair", Align::Right),
        column("Started", Align::Left),
        column("CPU time of other processes, s", Align::Right),
        column("Reason", Align::Left),
    ];
    let caption = "Rejected runs with their reasons".to_owned();
    section.blocks.push(Block::Table(Table {
        caption,
        columns,
        rows,
    }));
    section
}
