//! Details of runs in the report: transactions, checks, time series and distributions.

mod details;
mod support;

use details::{POINTS, detail};
use saiga_document::model::{Block, CurvePanel, Row, Tone, Visibility};
use saiga_document::{Document, html, text};
use saiga_experiment::result::detail::Series;
use saiga_experiment::result::{Detail, ExperimentResult};
use saiga_report::document;
use serde_json::json;
use support::{Window, open_in_browser};

const SAMPLE: &str = include_str!("../../experiment/tests/data/result-v1.json");

/// The sample, with details in one cell; the first arm completes a tenth less than the others.
fn sample() -> ExperimentResult {
    let mut result = ExperimentResult::from_json(SAMPLE).expect("the sample is readable");
    let arm = result.arms[0].name.clone();
    let cells: Vec<String> = result
        .runs
        .iter()
        .take(1)
        .map(|run| run.cell.clone())
        .collect();
    for run in result
        .runs
        .iter_mut()
        .filter(|run| cells.contains(&run.cell))
    {
        let level = if run.arm == arm { 0.9 } else { 1.0 };
        run.detail = Some(Box::new(detail(level)));
    }
    for (arm, flushes) in result.arms.iter_mut().zip(["1", "2"]) {
        let settings = [
            ("innodb_flush_log_at_trx_commit", flushes),
            ("port", "3306"),
        ];
        arm.configuration = settings
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .into();
    }
    result.check().expect("the sample with details is valid");
    result
}

fn blocks<'a>(report: &'a Document, id: &str) -> &'a [Block] {
    let found = report.sections.iter().find(|section| section.id == id);
    &found.unwrap_or_else(|| panic!("{id} is missing")).blocks
}

fn panels(report: &Document) -> Vec<&CurvePanel> {
    let mut all = Vec::new();
    for block in blocks(report, "time-series") {
        if let Block::Curves(curves) = block {
            all.extend(&curves.panels);
        }
    }
    all
}

#[test]
fn all_arms_are_in_one_panel_with_their_gaps_and_peaks() {
    let report = document(&sample());
    let panels = panels(&report);
    let titles: Vec<&str> = panels.iter().map(|panel| panel.title.as_str()).collect();
    assert_eq!(
        titles,
        [
            "new orders, per minute",
            "latency p95, ms",
            "CPU user, % of all cores"
        ]
    );
    let curves = &panels[0].curves;
    assert_eq!(curves.len(), 3, "one for each arm with runs in the cell");
    assert_eq!(curves[0].points[100].values, None);
    assert_eq!(curves[1].points[0].values, Some([1.0, 0.7, 1.5]));
    assert_eq!(curves[0].points.len(), POINTS as usize);
}

/// Holds for any order of a run's series, and for any number of them.
#[test]
fn panels_have_an_order_and_a_limit() {
    let mut result = sample();
    for run in &mut result.runs {
        let Some(detail) = &mut run.detail else {
            continue;
        };
        let one = detail.series[0].clone();
        let named = |name: &str| Series {
            name: name.to_owned(),
            ..one.clone()
        };
        let host = ["steal_percent", "server_cpu_percent", "cpu_user_percent"];
        let many = (0..30).map(|number| named(&format!("db_mysql_counter{number}_s")));
        let load = ["concurrency", "throughput_ops_s"].map(named);
        detail.series = many.chain(host.map(named)).chain(load).collect();
    }
    let report = document(&result);
    let titles: Vec<String> = panels(&report)
        .iter()
        .map(|panel| panel.title.clone())
        .collect();
    let first = [
        "throughput, per second",
        "transactions in the system",
        "CPU user, % of all cores",
        "server CPU, % of one core",
        "steal, % of all cores",
        "mysql: counter0, per second",
    ];
    assert_eq!(titles[..6], first);
    assert_eq!(titles.len(), 24);
    let has_note = blocks(&report, "time-series").iter().any(
        |block| matches!(block, Block::Text(text) if text == "11 more series are in result.json."),
    );
    assert!(has_note);
}

#[test]
fn arms_whose_runs_have_n_x_and_r_are_checked_by_littles_law() {
    let report = document(&sample());
    assert!(
        report
            .sections
            .iter()
            .all(|section| section.id != "littles-law")
    );
    let mut result = sample();
    for run in &mut result.runs {
        let Some(detail) = &mut run.detail else {
            continue;
        };
        let constant = |name: &str, value: f64| Series {
            name: name.to_owned(),
            mean: vec![Some(value); detail.series[0].at_s.len()],
            low: Vec::new(),
            high: Vec::new(),
            at_s: detail.series[0].at_s.clone(),
        };
        let added = [
            constant("throughput_ops_s", 500.0),
            constant("response_mean_ms", 4.0),
            constant("concurrency", 2.0),
        ];
        detail.series.extend(added);
    }
    let report = document(&result);
    let Block::Table(table) = &blocks(&report, "littles-law")[1] else {
        panic!("a table follows the text")
    };
    let rows: Vec<Vec<&str>> = table
        .rows
        .iter()
        .filter_map(|row| match row {
            Row::Cells(cells) => Some(cells.iter().map(|cell| cell.text.as_str()).collect()),
            Row::Group(_) => None,
        })
        .collect();
    assert_eq!(rows.len(), 3, "one for each arm");
    assert_eq!(
        rows[0],
        ["kernel", "6", "2.000", "500.0", "4.000", "2.000", "+0.0 %"]
    );
}

#[test]
fn violations_are_warnings_and_the_rest_is_a_table() {
    let report = document(&sample());
    let blocks = blocks(&report, "checks");
    let Block::Text(sentence) = &blocks[0] else {
        panic!("{blocks:?}")
    };
    assert_eq!(sentence, "18 of 54 checks found a violation.");
    let Block::Notices(notices) = &blocks[1] else {
        panic!("{blocks:?}")
    };
    assert_eq!(notices.len(), 1, "one for each rule");
    assert_eq!(
        notices[0].text,
        "Remote order lines: 0.50 % (required: 0.9 to 1.1 %)"
    );
    let about =
        ["kernel", "unix", "saiga"].map(|arm| format!("set, 1 client · one core: {arm}, 6 runs"));
    assert_eq!(notices[0].about, about);
}

#[test]
fn settings_that_differ_are_named_and_the_others_counted() {
    let report = document(&sample());
    let page = text::render(
        &report,
        text::Style {
            shown: Visibility::Evidence,
            ..text::Style::plain()
        },
    );
    assert!(
        page.contains("1 other setting is the same in all arms."),
        "{page}"
    );
    let line = page
        .lines()
        .find(|line| line.contains("innodb_flush_log"))
        .expect("the page has the setting that differs");
    assert_eq!(
        line.split_whitespace().skip(1).collect::<Vec<_>>(),
        ["1", "2"]
    );
    assert!(!page.contains("3306"));
}

#[test]
fn a_terminal_shows_a_time_series_in_one_line() {
    let style = text::Style {
        shown: Visibility::Evidence,
        ..text::Style::plain()
    };
    let page = text::render(&document(&sample()), style);
    assert!(page.contains("CPU user, % of all cores"), "{page}");
    let kernel = "  kernel  0.904  ▇██▇▇▆▆▇▇██";
    assert!(page.lines().any(|line| line.starts_with(kernel)), "{page}");
    assert!(page.contains("server gone: 14400 s to 14700 s"), "{page}");
}

#[test]
fn details_are_optional_and_lists_of_unequal_length_are_refused() {
    let mut result = sample();
    result
        .runs
        .iter_mut()
        .for_each(|run| run.detail = run.detail.take().map(|_| Box::default()));
    let report = document(&result);
    for id in ["time-series", "checks", "transactions", "distribution"] {
        assert!(
            report.sections.iter().all(|section| section.id != id),
            "{id}"
        );
    }
    let mut detail: Detail = detail(1.0);
    detail.series[1].high.pop();
    result.runs[0].detail = Some(Box::new(detail));
    let error = result.to_json().expect_err("the lists differ").to_string();
    assert!(
        error.ends_with("runs[0]: the lists of the series \"latency_p95_ms\" differ in length"),
        "{error}"
    );
}

/// A browser draws every chart, and no element is wider than the window.
#[test]
fn twelve_hours_are_drawn_in_a_browser() {
    let script = "
        document.querySelectorAll('details').forEach(fold => { fold.open = true; });
        const count = (selector) => document.querySelectorAll(selector).length;
        const drawn = [...document.querySelectorAll('.curve-panel svg')].map(svg => svg.getBoundingClientRect());
        return {
            panels: count('.curve-panel'), curves: count('.curve-panel polyline'), spans: count('.curve-panel .span'),
            histograms: count('.histogram .panel polyline'), keys: count('.curves .key'),
            low: drawn.filter(box => box.height < 60 || box.width < 250).length,
            wide: document.documentElement.scrollWidth > innerWidth,
        };
    ";
    let report = document(&sample());
    let page = html::render(&report);
    assert!(page.len() < 2_000_000, "{} bytes", page.len());
    assert_eq!(
        report
            .sections
            .iter()
            .find(|one| one.id == "checks")
            .map(|_| report.verdict.tone),
        Some(Tone::Better)
    );
    for width in [1280, 390] {
        let page = open_in_browser(
            &page,
            Window {
                width,
                height: 900,
                dark: false,
            },
            script,
        );
        assert_eq!(page.errors, Vec::<String>::new());
        // Three arms and three panels; in the first panel a gap splits each line in two.
        let wanted = json!({
            "panels": 3, "curves": 12, "spans": 9, "histograms": 3, "keys": 3, "low": 0, "wide": false,
        });
        assert_eq!(page.findings, wanted, "{width}");
    }
}
