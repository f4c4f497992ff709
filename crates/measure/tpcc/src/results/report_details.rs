//! The sections of the HTML report that are not printed: charts, errors, settings and metrics.
//!
//! All values come from the record; this module computes none.

use saiga_document::model::{Align, Block, Cell, Column, Row, Section, Table, Visibility};
use saiga_report::run;

use super::record::{Conditions, Record};
use crate::spec::deck::Kind;

/// Name of the run in its charts.
const NAME: &str = "this run";

/// Charts of the time series and the response times.
pub(super) fn charts(record: &Record) -> Vec<Section> {
    let Some(detail) = &record.run.detail else {
        return Vec::new();
    };
    let both = [
        run::time_series(NAME, detail),
        run::distribution(NAME, detail),
    ];
    let drawn = both.into_iter().filter(|one| !one.blocks.is_empty());
    drawn.collect()
}

/// A table of all errors. The warnings contain only the most frequent ones.
pub(super) fn errors(record: &Record) -> Option<Section> {
    let columns = [("times", Align::Right), ("error", Align::Left)];
    let columns = columns.into_iter().map(|(title, align)| Column {
        title: title.to_owned(),
        align,
    });
    let row = |(text, count): &(String, u64)| {
        Row::Cells(vec![Cell::new(count.to_string()), Cell::new(text)])
    };
    let table = Table {
        caption: "Errors of the whole run, ramp-up and drain included".to_owned(),
        columns: columns.collect(),
        rows: record.errors.iter().map(row).collect(),
    };
    (!record.errors.is_empty()).then(|| Section {
        id: "errors",
        title: "Errors".to_owned(),
        visibility: Visibility::Detail,
        blocks: vec![Block::Table(table)],
    })
}

/// The settings of the run, its props file, and its metrics under their names in `result.json`.
pub(super) fn settings(record: &Record) -> Vec<Section> {
    let conditions = &record.conditions;
    let metrics = record.run.metrics.iter();
    let metrics = metrics.map(|(name, value)| (name.clone(), value.to_string()));
    [
        ("settings", "Settings of the run", of_run(conditions)),
        ("props", "The props file", conditions.props.clone()),
        ("metrics", "Metrics", metrics.collect()),
    ]
    .map(|(id, title, facts)| Section {
        id,
        title: title.to_owned(),
        visibility: Visibility::Evidence,
        blocks: vec![Block::Facts(facts)],
    })
    .into()
}

/// Settings of the database and the run, then those of the load.
fn of_run(conditions: &Conditions) -> Vec<(String, String)> {
    let (worker, workers) = conditions.share;
    let (used, loaded) = (conditions.warehouses, conditions.loaded_warehouses);
    let (start, end) = (&conditions.session_start, &conditions.session_end);
    let homes = if conditions.fixed_warehouse {
        "one for each terminal"
    } else {
        "drawn for each transaction"
    };
    let facts = [
        ("server", conditions.server.clone()),
        ("isolation", conditions.isolation.clone()),
        ("statements (db)", conditions.db.clone()),
        ("warehouses", format!("{used} of {loaded} loaded")),
        ("home warehouse", homes.to_owned()),
        ("terminals of all hosts", conditions.terminals.to_string()),
        ("worker", format!("{worker} of {workers}")),
        ("seed", conditions.seed.to_string()),
        ("session", format!("{start} to {end}")),
        ("ramp-up", conditions.ramp_up.clone()),
        ("length", conditions.length.clone()),
        ("drain", conditions.drain.clone()),
        ("give up", conditions.give_up.clone()),
    ];
    let facts = facts.into_iter().chain(load(conditions));
    let facts = facts.map(|(name, value)| (name.to_owned(), value));
    facts.collect()
}

fn load(conditions: &Conditions) -> [(&'static str, String); 8] {
    let shares = Kind::ALL.iter().zip(conditions.mix);
    let shares = shares.map(|(kind, percent)| format!("{} {percent:.2} %", kind.name()));
    let mix = shares.collect::<Vec<_>>().join(", ");
    let rate = conditions.per_min.map(|rate| rate.to_string());
    let or_none = |text: Option<String>| text.unwrap_or_else(|| "none".to_owned());
    let (keying, thinking) = conditions.keying_thinking;
    let (last_name, customer, item) = conditions.nurand;
    let deliveries = match conditions.delivery_workers {
        0 => "performed by the terminals".to_owned(),
        workers => format!("queued, {workers} connections"),
    };
    [
        ("pace", conditions.pace.clone()),
        ("transactions per minute", or_none(rate)),
        ("arrivals", or_none(conditions.arrivals.clone())),
        ("keying, think times", format!("x {keying}, x {thinking}")),
        ("deliveries", deliveries),
        ("mix", format!("{mix}; {} cards in a deck", conditions.deck)),
        (
            "attempts after a conflict",
            conditions.max_retries.to_string(),
        ),
        (
            "C-Run of C_LAST, C_ID, OL_I_ID",
            format!("{last_name}, {customer}, {item}"),
        ),
    ]
}
