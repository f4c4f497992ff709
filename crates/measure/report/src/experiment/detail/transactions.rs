//! A table of the transactions of each arm, with the limits of TPC-C.

use saiga_experiment::result::Detail;
use saiga_experiment::result::detail::Transactions;
use saiga_experiment::stats;

use super::super::{View, first_seen, format, new_section, tables};
use super::{accepted_runs, cells_with_details};
use saiga_document::model::{Align, Block, Cell, Row, Section, Table, Visibility};
use saiga_document::number;

const COLUMNS: [&str; 11] = [
    "Transaction",
    "Completed",
    "Share",
    "Mean, ms",
    "p50, ms",
    "p90, ms",
    "p99, ms",
    "Longest, ms",
    "Rolled back",
    "Retried",
    "Failed",
];

/// One table for each cell, one group of rows for each arm.
pub(in super::super) fn transactions(view: &View) -> Section {
    let mut section = new_section("transactions", "Transactions", Visibility::Summary);
    for cell in cells_with_details(view) {
        let mut rows = Vec::new();
        for arm in &view.result.arms {
            let runs = accepted_runs(view, cell, &arm.name);
            let details: Vec<&Detail> = runs.iter().map(|(_, detail)| *detail).collect();
            let own = arm_rows(&details);
            if !own.is_empty() {
                let runs = format::count(details.len(), "run", "runs");
                rows.push(Row::Group(format!("{}, {runs}", arm.name)));
                rows.extend(own);
            }
        }
        if rows.is_empty() {
            continue;
        }
        let align = |at| if at == 0 { Align::Left } else { Align::Right };
        let columns = COLUMNS.iter().enumerate();
        section.blocks.push(Block::Table(Table {
            caption: format!("Transactions: {}", view.workloads.full_label(cell)),
            columns: columns
                .map(|(at, title)| tables::column(title, align(at)))
                .collect(),
            rows,
        }));
    }
    if !section.blocks.is_empty() {
        let text = "Counts are sums over all accepted runs; response times are medians over these \
                    runs. Below p90 is the limit of TPC-C §5.2.5.3, below the share the minimum of \
                    §5.2.3. Failed transactions are included in the last column only.";
        section.blocks.insert(0, Block::Text(text.to_owned()));
    }
    section
}

fn arm_rows(details: &[&Detail]) -> Vec<Row> {
    let all = || details.iter().flat_map(|detail| &detail.transactions);
    let names = first_seen(all().map(|one| one.name.as_str()));
    let total: u64 = all().map(|one| one.count).sum();
    let row = |name: &str| {
        let own: Vec<&Transactions> = all().filter(|one| one.name == name).collect();
        Row::Cells(type_row(name, &own, total))
    };
    names.into_iter().map(row).collect()
}

fn type_row(name: &str, runs: &[&Transactions], total: u64) -> Vec<Cell> {
    let sum = |of: fn(&Transactions) -> u64| runs.iter().map(|one| of(one)).sum::<u64>();
    let total_of = |of| Cell::new(number::whole(sum(of)));
    let median = |of: fn(&Transactions) -> f64| {
        let values: Vec<f64> = runs.iter().map(|one| of(one)).collect();
        stats::median(&values)
    };
    let time = |of| Cell::new(median(of).map_or_else(|| "–".to_owned(), number::value));
    let count = sum(|one| one.count);
    let least = runs.iter().find_map(|one| one.least_share_percent);
    let limit = runs.iter().find_map(|one| one.limit_p90_ms);
    let share = Cell::new(number::percent(ratio(count, total)))
        .with_note(least.map(|least| format!("at least {least:.0} %")));
    let p90 = time(|one| one.p90_ms)
        .with_note(limit.map(|limit| format!("limit {}", number::value(limit))));
    vec![
        Cell::new(name),
        total_of(|one| one.count),
        share,
        time(|one| one.mean_ms),
        time(|one| one.p50_ms),
        p90,
        time(|one| one.p99_ms),
        time(|one| one.max_ms),
        total_of(|one| one.rolled_back),
        total_of(|one| one.retries),
        total_of(|one| one.failed),
    ]
}

fn ratio(part: u64, whole: u64) -> f64 {
    if whole == 0 {
        f64::NAN
    } else {
        part as f64 / whole as f64
    }
}
