//! Sentences, order and tone of the report, for complete, extreme and empty results.

use saiga_document::model::{Block, Forest, Tone, Visibility};
use saiga_document::{Document, html, text};
use saiga_experiment::result::{ExperimentResult, Verdict};
use saiga_experiment::stats::Method;
use saiga_report::document;

const SAMPLE: &str = include_str!("../../experiment/tests/data/result-v1.json");

fn sample() -> ExperimentResult {
    ExperimentResult::from_json(SAMPLE).expect("the sample is readable")
}

fn section<'a>(report: &'a Document, id: &str) -> Option<&'a [Block]> {
    let found = report.sections.iter().find(|section| section.id == id)?;
    Some(&found.blocks)
}

fn forest(report: &Document) -> &Forest {
    let blocks = section(report, "ratios").expect("the report has the section of the main chart");
    let found = blocks.iter().find_map(|block| {
        if let Block::Forest(forest) = block {
            Some(forest)
        } else {
            None
        }
    });
    found.expect("the section has a forest plot")
}

fn as_text(report: &Document) -> String {
    text::render(report, text::Style::plain())
}

#[test]
fn best_against_best_comes_first_and_apart_from_the_same_placement() {
    let report = document(&sample());
    let forest = forest(&report);
    let titles: Vec<_> = forest
        .groups
        .iter()
        .map(|group| group.title.as_str())
        .collect();
    assert_eq!(
        titles,
        [
            "Best against best",
            "Same placement: one core",
            "Same placement: two cores",
            "Same placement: unpinned"
        ]
    );
    let first = &forest.groups[0].rows[0];
    assert_eq!(first.label, "set, 1 client");
    assert_eq!(
        first.note.as_deref(),
        Some("kernel: one core; saiga: two cores")
    );
    assert_eq!(first.values, ["101,700", "700,100"]);
    assert!(forest.groups[1].rows.iter().all(|row| row.note.is_none()));
}

/// A terminal should show the whole answer: the best placements only, and what else to read.
#[test]
fn the_answer_is_short_and_names_what_it_leaves_out() {
    let report = document(&sample());
    let shown = Visibility::Answer;
    let plain = text::Style::plain();
    let answer = text::render(&report, text::Style { shown, ..plain });
    assert!(
        answer.starts_with(&format!("{}\n", report.title)),
        "{answer}"
    );
    assert!(answer.contains(&report.figures[0].value) && answer.contains("Best against best"));
    for left_out in ["Same placement", "Server CPU\n", "  ! "] {
        assert!(!answer.contains(left_out), "{left_out}: {answer}");
        assert!(as_text(&report).contains(left_out), "{left_out}");
    }
    let (_, after_table) = answer
        .split_once("In the report\n")
        .expect("a list of pointers");
    for pointer in &report.pointers {
        assert!(
            after_table.contains(&format!("  - {}\n", pointer.text)),
            "{answer}"
        );
    }
}

#[test]
fn the_headline_is_the_experiments_own() {
    let report = document(&sample());
    assert_eq!(report.verdict.lead, sample().headline[0]);
    assert_eq!(report.verdict.more, sample().headline[1..]);
    assert_eq!(report.verdict.tone, Tone::Better);
}

/// The colour follows the lead sentence, not the corrected verdicts of single workloads.
#[test]
fn the_headline_decides_the_colour() {
    let tone = |verdict, again: bool| {
        let mut result = sample();
        if again {
            let name = format!("{} (again)", result.arms[0].name);
            let repeated = result.arms[0].clone();
            result.arms[2] = saiga_experiment::result::Arm { name, ..repeated };
        }
        let b = result.arms[2].name.clone();
        let headline = result.headline_comparison.as_mut();
        let headline = headline.expect("the sample has one");
        (headline.verdict, headline.b) = (verdict, b);
        document(&result).verdict.tone
    };
    assert_eq!(tone(Verdict::Faster, false), Tone::Better);
    assert_eq!(tone(Verdict::NoDifferenceShown, false), Tone::Neutral);
    assert_eq!(tone(Verdict::Slower, false), Tone::Worse);
    // A difference between an arm and itself is neither a gain nor a loss.
    assert_eq!(tone(Verdict::Faster, true), Tone::Caution);
}

/// With a single cell, the lead sentence and the figure are about the same comparison; the figure
/// must not correct it.
#[test]
fn figure_and_lead_agree_about_a_single_cell() {
    let mut result = sample();
    let cell = "set-c1-one-core";
    result.comparisons.retain(|one| one.cell == cell);
    let main = result
        .comparisons
        .iter_mut()
        .find(|one| one.metric == "throughput_ops_s" && one.b == "saiga" && one.a == "kernel");
    let main = main.expect("the sample has it");
    (main.ratio.median, main.ratio.ci95) = (1.03, Some([1.01, 1.05]));
    (main.verdict, main.holds_corrected) = (Verdict::Faster, Some(false));
    let ratio = main.ratio.clone();
    let headline = result.headline_comparison.as_mut();
    headline.expect("the sample has one").ratio = ratio;
    let report = document(&result);
    assert_eq!(report.verdict.tone, Tone::Better);
    let figure = &report.figures[0];
    assert_eq!(
        (figure.detail.as_str(), figure.tone),
        ("faster in 1 of 1 cells", Tone::Better)
    );
    result.headline_comparison = None;
    let older = document(&result);
    assert_eq!(older.verdict.tone, Tone::Neutral, "a file without headline");
}

/// An arm that failed before its first run has no settings, which is not a difference.
#[test]
fn an_arm_that_never_ran_is_not_in_the_table_of_settings() {
    let mut result = sample();
    for (arm, value) in result.arms.iter_mut().zip(["1", "2", "2"]) {
        arm.configuration = [("buffer".to_owned(), value.to_owned())].into();
    }
    let settings =
        |result: &ExperimentResult| section(&document(result), "configuration").map(<[Block]>::len);
    assert_eq!(settings(&result), Some(2), "a sentence and a table");
    let idle = |run: &mut saiga_experiment::result::Run| {
        if run.arm == "kernel" {
            run.metrics.clear();
        }
    };
    result.runs.iter_mut().for_each(idle);
    assert_eq!(settings(&result), Some(1), "the two others are alike");
}

#[test]
fn the_report_explains_how_latencies_were_measured() {
    let mut result = sample();
    let page = |result: &ExperimentResult| html::render(&document(result));
    assert!(page(&result).contains("in a closed loop: each connection waits"));
    for cell in &mut result.cells {
        cell.params.workload.insert("rate".into(), "600/min".into());
    }
    let open = page(&result);
    assert!(open.contains("in an open loop") && !open.contains("in a closed loop"));
}

#[test]
fn comparisons_without_a_gain_are_listed_worst_first() {
    let mut result = sample();
    for one in &mut result.comparisons {
        if one.cell == "set-c50-p16-two-cores" && one.b == "saiga" && one.a == "kernel" {
            (one.verdict, one.holds_corrected) = (Verdict::Slower, Some(true));
            one.ratio.median = 0.5;
        }
    }
    let report = document(&result);
    let Some([Block::List(lines)]) = section(&report, "no-help") else {
        panic!("a list is expected")
    };
    assert!(
        lines[0].starts_with("set, 50 clients, pipeline 16 · two cores: throughput 0.500× (slower")
    );
    assert!(
        lines[1].starts_with("set, 50 clients, 100,000-byte values · one core: throughput 1.01×")
    );
    assert_eq!(
        lines.len(),
        7,
        "throughput, then the four other metrics that got worse: {lines:?}"
    );
}

#[test]
fn a_result_with_gains_only_states_the_limits_of_its_plan() {
    let mut result = sample();
    result
        .comparisons
        .iter_mut()
        .for_each(|one| (one.verdict, one.holds_corrected) = (Verdict::Faster, Some(true)));
    let report = as_text(&document(&result));
    assert!(
        report.contains("did better in all 20 comparisons of throughput"),
        "{report}"
    );
    assert!(
        report.contains("Workloads outside the plan of this experiment were not tested."),
        "{report}"
    );
}

/// A reader of an interval must know whether the results decided when the experiment stopped.
#[test]
fn a_sequential_result_explains_its_intervals() {
    let words = "The number of pairs was not fixed beforehand";
    let at_the_chart = "which stays valid if the results are checked after every pair.";
    let mut result = sample();
    let fixed = html::render(&document(&result));
    assert!(fixed.contains("A verdict needs six pairs"));
    assert!(!fixed.contains(words) && !fixed.contains(at_the_chart));
    for one in &mut result.comparisons {
        one.ratio.method = Method::Sequential;
    }
    let page = html::render(&document(&result));
    assert!(page.contains("eight pairs and an interval"));
    assert!(page.contains(words) && page.contains(at_the_chart));
}

#[test]
fn an_interrupted_experiment_without_verdict_gives_a_report() {
    let mut result = sample();
    result.interrupted = Some("stopped by Ctrl-C after 40 of 270 runs".to_owned());
    result.headline.clear();
    for one in &mut result.comparisons {
        one.ratio.ci95 = None;
        one.ratio.n_pairs = 2;
        one.verdict = Verdict::NoDifferenceShown;
    }
    let report = document(&result);
    let text = as_text(&report);
    assert_eq!(report.verdict.tone, Tone::Neutral);
    assert!(
        text.contains("No verdict: too little was measured"),
        "{text}"
    );
    assert!(text.contains("no cell has more than 2"), "{text}");
    assert!(
        text.contains("stopped by Ctrl-C after 40 of 270 runs"),
        "{text}"
    );
    assert!(text.contains("too few pairs to tell"), "{text}");
    let page = html::render(&report);
    assert!(
        !page.contains("class=\"interval\""),
        "a comparison without an interval is drawn without one"
    );
    assert_eq!(page.matches("point hollow").count(), 140);
}

#[test]
fn an_empty_result_gives_a_report() {
    let mut result = sample();
    result.runs.clear();
    result.comparisons.clear();
    result.headline.clear();
    result.warnings.clear();
    result.cells.clear();
    let report = document(&result);
    assert!(section(&report, "ratios").is_none());
    assert!(as_text(&report).contains("no cell has more than 0"));
    assert!(html::render(&report).contains("No verdict"));
}

#[test]
fn ratios_that_cannot_be_drawn_are_left_out() {
    let mut result = sample();
    result.comparisons[0].ratio.median = 0.0;
    result.comparisons[1].ratio.ci95 = Some([-1.0, 1e300]);
    result.runs[0]
        .metrics
        .insert("throughput_ops_s".to_owned(), -5.0);
    let page = html::render(&document(&result));
    assert!(!page.contains("NaN") && !page.contains("inf%"));
}

#[test]
fn the_terminal_gets_aligned_columns_and_colour_only_when_asked() {
    let report = document(&sample());
    let plain = as_text(&report);
    assert!(!plain.contains('\u{1b}'));
    let wanted = "  set, 1 client                           101,700    700,100   6.86  6.76–6.99          6  faster";
    assert!(plain.lines().any(|line| line == wanted), "{plain}");
    let coloured = text::render(&report, text::Style::terminal(120));
    assert!(coloured.contains("\u{1b}[32mfaster\u{1b}[0m"));
}

#[test]
fn a_narrow_terminal_drops_columns_but_never_the_verdict() {
    let shown = text::render(&document(&sample()), text::Style::terminal(90));
    let plain: String = shown.replace("\u{1b}[32m", "").replace("\u{1b}[0m", "");
    let row = plain
        .lines()
        .find(|line| line.starts_with("  set, 1 client"))
        .expect("a row");
    assert!(
        row.chars().count() <= 90 && row.ends_with("faster"),
        "{row}"
    );
    assert!(!row.contains("101,700"), "{row}");
}
