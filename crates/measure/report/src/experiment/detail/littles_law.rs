//! Checks throughput, response time and concurrency against Little's law: N = X * R.
//!
//! Covers the measured interval of all accepted runs. R is weighted by throughput, as the law
//! requires. A point that covers several seconds enters with its mean for each of them.

use saiga_experiment::result::Detail;
use saiga_experiment::result::detail::Series;

use super::super::tables::explained;
use super::super::{View, new_section};
use super::{accepted_runs, cells_with_details};
use saiga_document::model::{Align, Cell, Row, Section, Visibility};
use saiga_document::number;

const COLUMNS: [(&str, Align); 7] = [
    ("Arm", Align::Left),
    ("Runs", Align::Right),
    ("N, transactions", Align::Right),
    ("X, per second", Align::Right),
    ("R, ms", Align::Right),
    ("X \u{b7} R", Align::Right),
    ("X \u{b7} R relative to N", Align::Right),
];

/// Sums over points of equal length.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Sums {
    points: f64,
    in_system: f64,
    per_s: f64,
    /// Sum of throughput times response time in seconds.
    product: f64,
}

/// One row for each arm in each cell whose runs have all three series.
pub(in super::super) fn littles_law(view: &View) -> Section {
    let title = "Check by Little's law: N = X \u{b7} R";
    let mut section = new_section("littles-law", title, Visibility::Detail);
    let mut rows = Vec::new();
    for cell in cells_with_details(view) {
        let arms = view.result.arms.iter().filter_map(|arm| {
            let runs = accepted_runs(view, cell, &arm.name);
            let known = runs.iter().filter_map(|(_, detail)| sums(detail));
            let known: Vec<Sums> = known.collect();
            (!known.is_empty()).then(|| Row::Cells(row(&arm.name, &known)))
        });
        let arms: Vec<Row> = arms.collect();
        if !arms.is_empty() {
            rows.push(Row::Group(view.workloads.full_label(cell)));
            rows.extend(arms);
        }
    }
    if !rows.is_empty() {
        let text = "By Little's law, the number of transactions in the system (N) equals the \
                    throughput per second (X) times the response time (R). N is measured \
                    independently of X and R, so if X \u{b7} R differs from N by more than a few \
                    per cent, one of the three figures was not measured correctly.";
        let caption = "N, X and R in the measured interval, by arm";
        section
            .blocks
            .extend(explained(text, caption, &COLUMNS, rows));
    }
    section
}

fn row(arm: &str, runs: &[Sums]) -> Vec<Cell> {
    let sum = |of: fn(&Sums) -> f64| runs.iter().map(of).sum::<f64>();
    let points = sum(|one| one.points);
    let (in_system, per_s) = (
        sum(|one| one.in_system) / points,
        sum(|one| one.per_s) / points,
    );
    let product = sum(|one| one.product) / points;
    let numbers = [
        runs.len().to_string(),
        number::value(in_system),
        number::value(per_s),
        number::value(1000.0 * product / per_s),
        number::value(product),
        format!("{:+.1} %", 100.0 * (product - in_system) / in_system),
    ];
    std::iter::once(Cell::new(arm))
        .chain(numbers.map(Cell::new))
        .collect()
}

/// Sums over the points of one run that lie in its measured interval and have N and X. `None` if
/// a series is missing, or if no such point shows activity.
fn sums(detail: &Detail) -> Option<Sums> {
    let named = |name: &str| detail.series.iter().find(|one| one.name == name);
    let throughput = named("throughput_ops_s")?;
    let (response, concurrency) = (named("response_mean_ms")?, named("concurrency")?);
    let measured = detail.marks.iter().find(|mark| mark.what == "measured");
    let is_measured = |at_s: f64| {
        measured.is_none_or(|mark| at_s >= mark.from_s && mark.to_s.is_none_or(|to| at_s < to))
    };
    let mut sums = Sums::default();
    for (at, at_s) in throughput.at_s.iter().enumerate() {
        let known = |series: &Series| series.mean.get(at).copied().flatten();
        let (Some(per_s), Some(in_system)) = (known(throughput), known(concurrency)) else {
            continue;
        };
        if !is_measured(*at_s) {
            continue;
        }
        sums.points += 1.0;
        sums.in_system += in_system;
        sums.per_s += per_s;
        // A point without completed transactions has no response time and adds zero.
        sums.product += per_s * known(response).unwrap_or(0.0) / 1000.0;
    }
    (sums.in_system > 0.0 && sums.per_s > 0.0).then_some(sums)
}

#[cfg(test)]
mod tests {
    use saiga_experiment::result::detail::Mark;

    use super::*;

    fn series(name: &str, mean: [Option<f64>; 4]) -> Series {
        Series {
            name: name.to_owned(),
            at_s: vec![0.5, 1.5, 2.5, 3.5],
            mean: mean.to_vec(),
            low: Vec::new(),
            high: Vec::new(),
        }
    }

    fn detail() -> Detail {
        Detail {
            series: vec![
                series(
                    "throughput_ops_s",
                    [Some(900.0), Some(100.0), Some(0.0), Some(300.0)],
                ),
                series(
                    "response_mean_ms",
                    [Some(1.0), Some(20.0), None, Some(10.0)],
                ),
                series("concurrency", [Some(9.0), Some(2.0), Some(0.0), Some(3.2)]),
            ],
            marks: vec![Mark {
                from_s: 1.0,
                to_s: Some(4.0),
                what: "measured".to_owned(),
            }],
            ..Detail::default()
        }
    }

    /// 100/s of 20 ms and 300/s of 10 ms give 2 + 3 in the system; 5.2 were measured.
    #[test]
    fn response_times_are_weighted_by_throughput_in_the_measured_interval() {
        let sums = sums(&detail()).expect("all three are known");
        let texts = row("kernel", &[sums, sums]);
        let texts: Vec<&str> = texts.iter().map(|cell| cell.text.as_str()).collect();
        assert_eq!(
            texts,
            ["kernel", "2", "1.733", "133.3", "12.50", "1.667", "-3.8 %"]
        );
    }

    #[test]
    fn a_run_that_lacks_a_series_is_left_out() {
        for lacking in 0..3 {
            let mut detail = detail();
            detail.series.remove(lacking);
            assert_eq!(sums(&detail), None);
        }
        let mut idle = detail();
        idle.marks[0].from_s = 3.9;
        assert_eq!(sums(&idle), None);
    }
}
