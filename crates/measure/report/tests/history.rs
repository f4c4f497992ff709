//! The page about many experiments.

use saiga_document::{html, text};
use saiga_experiment::result::ExperimentResult;
use saiga_report::history;

const SAMPLE: &str = include_str!("../../experiment/tests/data/result-v1.json");

#[test]
fn stages_are_in_order_of_time_with_goal_result_and_changes() {
    let first = ExperimentResult::from_json(SAMPLE).expect("the sample is readable");
    let mut second = first.clone();
    second.goal = Some("<b>more</b> memory".to_owned());
    second.started = Some("2026-11-21T08:00:00Z".to_owned());
    second
        .versions
        .insert("redis-server".to_owned(), "7.2.1".to_owned());
    let page = history::page(&history::stages(&[
        ("out/b".to_owned(), second),
        ("out/a".to_owned(), first),
    ]));
    let shown = text::render(
        &page,
        text::Style {
            width: 400,
            ..text::Style::plain()
        },
    );
    let lines: Vec<&str> = shown
        .lines()
        .filter(|line| line.starts_with("out/"))
        .collect();
    assert!(
        lines[0].starts_with("out/a (2026-11-20 14:02:11 UTC)"),
        "{shown}"
    );
    assert!(
        lines[0].contains("x (") && lines[0].contains("), faster"),
        "{shown}"
    );
    assert!(lines[1].contains("redis-server: 7.0.15 → 7.2.1"), "{shown}");
    let drawn = html::render(&page);
    assert!(drawn.contains("&lt;b&gt;more&lt;/b&gt; memory") && !drawn.contains("<b>more"));
    assert!(drawn.contains("Made by saiga history"));
}

/// The result of a stage is the headline of its experiment, not the comparison of its first load.
#[test]
fn the_result_of_a_stage_is_the_headline() {
    let row = |result: &ExperimentResult| {
        let stages = history::stages(&[("out/a".to_owned(), result.clone())]);
        let style = text::Style {
            width: 400,
            ..text::Style::plain()
        };
        let shown = text::render(&history::page(&stages), style);
        let row = shown.lines().find(|line| line.starts_with("out/"));
        row.expect("a line for each stage").to_owned()
    };
    let mut result = ExperimentResult::from_json(SAMPLE).expect("the sample is readable");
    let headline = result.headline_comparison.as_mut();
    let headline = headline.expect("the sample has one");
    headline.workloads = 5;
    headline.ratio.median = 1.234;
    headline.verdict = saiga_experiment::result::Verdict::NoDifferenceShown;
    let shown = row(&result);
    assert!(
        shown.contains("1.23x (") && shown.contains("), no difference shown"),
        "{shown}"
    );
    assert!(shown.contains("geometric mean of 5 loads"), "{shown}");
    // A file without a headline shows its first load, and the row says so.
    result.headline_comparison = None;
    let shown = row(&result);
    assert!(shown.contains("faster; first of 5 loads"), "{shown}");
    // The subject is compared with the arm that it varies, even if another arm is first.
    result.arms[2].varies = Some("unix".to_owned());
    let stages = history::stages(&[("a".to_owned(), result)]);
    let compared = stages[0].comparison.as_ref().expect("a comparison");
    assert_eq!(compared.a, "unix");
}
