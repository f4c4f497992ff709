//! Figures that are 0 or missing in accepted runs.

use super::*;

const LOST: &str = "lost_orders";

fn lost_orders() -> [Metric; 1] {
    [Metric {
        name: LOST.to_owned(),
        unit: "orders".to_owned(),
        better: Better::Lower,
        decides: true,
    }]
}

/// A pair for each two figures; `None` means a run without the figure.
fn losing(cell: &str, figures: &[(Option<f64>, Option<f64>)]) -> Vec<Run> {
    let run = |arm: &str, pair, lost: Option<f64>| {
        let mut run = run(cell, arm, pair, 1.0);
        run.metrics = lost
            .map(|lost| (LOST.to_owned(), lost))
            .into_iter()
            .collect();
        run
    };
    let both = |(pair, (a, b)): (u32, &(Option<f64>, Option<f64>))| {
        [run("a", pair, *a), run("b", pair, *b)]
    };
    (0..).zip(figures).flat_map(both).collect()
}

fn concluded(cells: &[Cell], runs: &[Run]) -> Conclusion {
    let arms = [arm("a"), arm("b")];
    let (own, shortfall) = (lost_orders(), Shortfall::default());
    conclude_by(Method::Fixed, &own, &arms, cells, runs, &shortfall)
}

fn of_one_cell(figures: &[(Option<f64>, Option<f64>)]) -> Conclusion {
    concluded(&[cell("x", "unpinned")], &losing("x-unpinned", figures))
}

/// B loses nothing in two pairs and twice as much as A in six; the six are a selection.
#[test]
fn pairs_with_zeros_leave_no_direction() {
    let mut figures = vec![(Some(4.0), Some(8.0)); 6];
    figures.extend([(Some(4.0), Some(0.0)), (Some(5.0), Some(0.0))]);
    let conclusion = of_one_cell(&figures);
    assert_eq!(conclusion.verdict, Verdict::NoDifferenceShown);
    let compared = find(&conclusion, "x-unpinned", LOST);
    assert_eq!((compared.a_median, compared.b_median), (4.0, 8.0));
    assert_eq!(compared.verdict, Verdict::NoDifferenceShown);
    assert_eq!((compared.ratio.n_pairs, compared.ratio.ci95), (6, None));
    assert_eq!(
        conclusion.headline[0],
        "No difference shown: the median lost orders (orders) is 4 in the a arm and 8 in the b arm (8 \
         pairs, of which 6 have a ratio)."
    );
    let [warning] = conclusion.warnings.as_slice() else {
        panic!("{:?}", conclusion.warnings)
    };
    assert_eq!(
        warning.text,
        "2 of 8 pairs have no ratio: lost_orders is 0 in b. The other pairs are a selection and show \
         no direction; the medians of all pairs are 4 in a and 8 in b."
    );
    assert_eq!(warning.cells, ["x-unpinned"]);
}

#[test]
fn a_figure_that_is_always_0_has_a_warning_and_no_comparison() {
    let conclusion = of_one_cell(&[(Some(4.0), Some(0.0)); 8]);
    assert_eq!(
        (conclusion.headline.len(), conclusion.comparisons.len()),
        (0, 0)
    );
    let text = &conclusion.warnings[0].text;
    assert!(
        text.starts_with("8 of 8 pairs have no ratio: lost_orders is 0 in b."),
        "{text}"
    );
}

/// An idle drive has no write amplification; the other pairs keep their direction.
#[test]
fn a_missing_figure_has_a_warning_and_keeps_the_direction() {
    let mut figures = vec![(Some(4.0), Some(8.0)); 6];
    figures.extend([(Some(4.0), None), (None, None), (None, None)]);
    let conclusion = of_one_cell(&figures);
    assert_eq!(conclusion.verdict, Verdict::Slower);
    let [warning] = conclusion.warnings.as_slice() else {
        panic!("{:?}", conclusion.warnings)
    };
    assert_eq!(
        warning.text,
        "3 of 9 pairs have no ratio: lost_orders is missing in a and b in 2 of them, is missing in b \
         in 1 of them."
    );
}

#[test]
fn a_rejected_run_is_not_a_missing_figure() {
    let figures = [(Some(4.0), Some(8.0)); 8];
    let mut runs = losing("x-unpinned", &figures);
    runs[3].rejected = Some("it failed".to_owned());
    runs[3].metrics.clear();
    let conclusion = concluded(&[cell("x", "unpinned")], &runs);
    let is_about_ratios = |one: &Warning| one.text.contains(NO_RATIO);
    assert!(
        !conclusion.warnings.iter().any(is_about_ratios),
        "{:?}",
        conclusion.warnings
    );
    assert_eq!(conclusion.verdict, Verdict::Slower);
}

#[test]
fn one_workload_with_zeros_leaves_no_direction() {
    let cells = [cell("x", "unpinned"), cell("y", "unpinned")];
    let mut runs = losing("x-unpinned", &[(Some(4.0), Some(8.0)); 6]);
    runs.extend(losing("y-unpinned", &[(Some(4.0), Some(0.0)); 6]));
    let conclusion = concluded(&cells, &runs);
    assert_eq!(conclusion.verdict, Verdict::NoDifferenceShown);
    assert_eq!(
        conclusion.headline[0],
        "No difference shown: lost orders (orders) is 0 in runs of 1 of 2 workloads, whose pairs have \
         no ratio."
    );
}

/// The placement without losses is the best.
#[test]
fn zeros_count_in_the_ranking_of_placements() {
    let cells = [cell("x", "one core"), cell("x", "two cores")];
    let mut zeros = [(Some(4.0), Some(0.0)); 6];
    zeros[0].1 = Some(9.0);
    let mut runs = losing("x-one-core", &zeros);
    runs.extend(losing("x-two-cores", &[(Some(4.0), Some(8.0)); 6]));
    let conclusion = concluded(&cells, &runs);
    let best = find(&conclusion, "x-best", LOST);
    assert_eq!(best.b_cell.as_deref(), Some("x-one-core"));
    assert_eq!(
        (best.b_median, best.verdict),
        (0.0, Verdict::NoDifferenceShown)
    );
}

/// A server whose CPU time is less than a tick of the kernel.
#[test]
fn cpu_time_of_0_is_reported() {
    let (arms, cells, mut runs) = two_loads();
    let run = runs.iter_mut().find(|run| run.arm == "saiga").unwrap();
    run.metrics.insert(SERVER_CPU.to_owned(), 0.0);
    let conclusion = conclude(&arms, &cells, &runs, &Shortfall::default());
    let cpu = &conclusion.headline[1];
    assert!(
        cpu.contains("no difference shown") && cpu.contains("the figure is 0 in some runs"),
        "{cpu}"
    );
}

#[test]
fn a_selection_never_ends_a_sequential_experiment() {
    let mut figures = vec![(Some(4.0), Some(4.0)); 12];
    figures[0].1 = Some(0.0);
    let runs = losing("x-unpinned", &figures);
    let cells = [cell("x", "unpinned")];
    let [width] = &widths(&lost_orders(), &[arm("a"), arm("b")], &cells, &runs)[..] else {
        panic!("one cell")
    };
    assert_eq!((width.ratios.len(), width.half_width), (11, None));
}
