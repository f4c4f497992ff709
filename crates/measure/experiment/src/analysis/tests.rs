//! Comparisons, headlines and warnings of invented runs.

mod left_out;

use super::*;
use crate::result::{CellParams, ComparisonKind};

fn arm(name: &str) -> Arm {
    Arm {
        name: name.into(),
        server: String::new(),
        client: String::new(),
        env: BTreeMap::new(),
        description: None,
        varies: None,
        configuration: BTreeMap::new(),
    }
}

fn cell(load: &str, placement: &str) -> Cell {
    Cell {
        id: format!("{load}-{}", placement.replace(' ', "-")),
        params: CellParams {
            placement: placement.into(),
            hog: "none".into(),
            workload: BTreeMap::from([("test".into(), load.into())]),
        },
    }
}

fn run(cell: &str, arm: &str, pair: u32, throughput: f64) -> Run {
    Run {
        cell: cell.into(),
        arm: arm.into(),
        pair,
        position: 0,
        started: String::new(),
        seconds: 1.0,
        metrics: BTreeMap::from([
            (THROUGHPUT.to_owned(), throughput),
            (SERVER_CPU.to_owned(), 1e5 / throughput),
        ]),
        foreign_cpu_s: 0.0,
        rejected: None,
        detail: None,
    }
}

/// Six pairs around the given throughputs, with 1 % of noise.
fn runs(cell: &str, kernel: f64, saiga: f64) -> Vec<Run> {
    let noise = [1.0, 0.99, 1.01, 1.005, 0.995, 1.002];
    (0..6u32)
        .zip(noise)
        .flat_map(|(pair, noise)| {
            [
                run(cell, "kernel", pair, kernel * noise),
                run(cell, "saiga", pair, saiga / noise),
            ]
        })
        .collect()
}

fn two_loads() -> (Vec<Arm>, Vec<Cell>, Vec<Run>) {
    let cells = vec![
        cell("set", "one core"),
        cell("set", "two cores"),
        cell("get", "one core"),
        cell("get", "two cores"),
    ];
    let mut all = runs("set-one-core", 100.0, 400.0);
    all.extend(runs("set-two-cores", 50.0, 800.0));
    all.extend(runs("get-one-core", 100.0, 100.0));
    all.extend(runs("get-two-cores", 90.0, 200.0));
    (vec![arm("kernel"), arm("saiga")], cells, all)
}

fn find<'a>(conclusion: &'a Conclusion, cell: &str, metric: &str) -> &'a Comparison {
    let wanted = |c: &&Comparison| c.cell == cell && c.metric == metric;
    conclusion.comparisons.iter().find(wanted).unwrap()
}

#[test]
fn each_arm_is_compared_in_its_best_placement() {
    let (arms, cells, runs) = two_loads();
    let conclusion = conclude(&arms, &cells, &runs, &Shortfall::default());
    let ids: Vec<&str> = conclusion
        .best_cells
        .iter()
        .map(|cell| cell.id.as_str())
        .collect();
    assert_eq!(ids, ["set-best", "get-best"]);
    let best = find(&conclusion, "set-best", THROUGHPUT);
    assert_eq!(best.kind, ComparisonKind::BestAgainstBest);
    assert_eq!(best.a_cell.as_deref(), Some("set-one-core"));
    assert_eq!(best.b_cell.as_deref(), Some("set-two-cores"));
    assert!((best.ratio.median - 8.0).abs() < 0.1, "{:?}", best.ratio);
    assert_eq!(
        (best.verdict, best.holds_corrected),
        (Verdict::Faster, Some(true))
    );
    let same = find(&conclusion, "set-one-core", THROUGHPUT);
    assert!((same.ratio.median - 4.0).abs() < 0.1, "{:?}", same.ratio);
    assert_eq!(same.a_cell, None);
}

#[test]
fn less_cpu_is_faster_and_equal_is_no_difference() {
    let (arms, cells, runs) = two_loads();
    let conclusion = conclude(&arms, &cells, &runs, &Shortfall::default());
    let cpu = find(&conclusion, "set-one-core", SERVER_CPU);
    assert_eq!(cpu.verdict, Verdict::Faster);
    assert!((cpu.ratio.median - 0.25).abs() < 0.01, "{:?}", cpu.ratio);
    let equal = find(&conclusion, "get-one-core", THROUGHPUT);
    assert_eq!(equal.verdict, Verdict::NoDifferenceShown);
    assert_eq!(equal.holds_corrected, Some(false));
}

/// Best against best is 8 for set and 2 for get; the geometric mean is 4.
#[test]
fn the_headline_is_the_geometric_mean_of_workloads() {
    let (arms, cells, runs) = two_loads();
    let conclusion = conclude(&arms, &cells, &runs, &Shortfall::default());
    assert_eq!(conclusion.verdict, Verdict::Faster);
    let [main, cpu, tally] = conclusion.headline.as_slice() else {
        panic!("{:?}", conclusion.headline)
    };
    assert!(
        main.starts_with("Saiga served 3.99 times as many") && main.contains("6 pairs"),
        "{main}"
    );
    assert!(cpu.contains("less CPU per operation"), "{cpu}");
    assert!(tally.contains("faster in 2 of 2"), "{tally}");
}

/// Saiga with idle connections is compared with Saiga without, not with the kernel.
#[test]
fn an_arm_that_varies_another_is_compared_with_it() {
    let mut beside = arm("saiga+idle");
    beside.varies = Some("saiga".to_owned());
    let arms = [arm("kernel"), arm("saiga"), beside];
    let cells = [cell("get", "unpinned")];
    let mut all = runs("get-unpinned", 100.0, 400.0);
    let idle = |pair: u32, throughput: f64| {
        let mut run = run("get-unpinned", "saiga+idle", pair, throughput);
        run.metrics.extend([
            ("idle_connections".to_owned(), 19_000.0),
            ("server_rss_per_idle_bytes".to_owned(), 4000.0),
            ("client_rss_per_idle_bytes".to_owned(), 1700.0),
        ]);
        run
    };
    let saiga: Vec<f64> = all
        .iter()
        .filter(|run| run.arm == "saiga")
        .map(|run| run.metrics[THROUGHPUT])
        .collect();
    let noise = [0.99, 1.0, 1.01, 1.0, 0.995, 1.0];
    let slower = (0..).zip(saiga).zip(noise);
    all.extend(slower.map(|((pair, saiga), noise)| idle(pair, 0.9 * saiga * noise)));
    let conclusion = conclude(&arms, &cells, &all, &Shortfall::default());
    assert_eq!(conclusion.verdict, Verdict::Slower);
    let [main, .., held] = conclusion.headline.as_slice() else {
        panic!("{:?}", conclusion.headline)
    };
    let wanted = "Saiga+idle was slower: it served 0.90 times the operations per second of the \
                  saiga arm";
    assert!(main.starts_with(wanted), "{main}");
    assert_eq!(
        held,
        "Each of the 19000 idle connections of the saiga+idle arm held 4000 bytes of resident \
         memory in the server and 1700 in its client (medians of 6 runs)."
    );
}

#[test]
fn rejected_runs_are_ignored_with_a_warning() {
    let (arms, cells, mut runs) = two_loads();
    let bad = runs
        .iter_mut()
        .find(|run| run.cell == "set-one-core" && run.arm == "saiga")
        .unwrap();
    bad.rejected =
        Some("other processes used 0.40 s of CPU in 1.00 s, more than 0.12 of a core".into());
    let conclusion = conclude(&arms, &cells, &runs, &Shortfall::default());
    let same = find(&conclusion, "set-one-core", THROUGHPUT);
    assert_eq!((same.ratio.n_pairs, same.ratio.ci95), (5, None));
    assert_eq!(same.verdict, Verdict::NoDifferenceShown);
    let texts: Vec<&str> = conclusion
        .warnings
        .iter()
        .map(|w| w.text.as_str())
        .collect();
    assert!(texts[0].contains("1 of 48 runs were rejected"), "{texts:?}");
    assert!(
        texts[1].contains("Fewer than six pairs count in 1 cell:"),
        "{texts:?}"
    );
    assert_eq!(conclusion.warnings[1].cells, ["set-one-core"]);
}

#[test]
fn a_saturated_client_is_named() {
    let cells = vec![cell("set", "two cores")];
    let mut runs = runs("set-two-cores", 100_000.0, 100_000.0);
    for run in runs.iter_mut().filter(|run| run.arm == "saiga") {
        // At 100,000 operations per second, 10 µs each use a whole core and 5 µs half of it.
        run.metrics.insert("client_cpu_us_per_op".into(), 10.0);
        run.metrics.insert(SERVER_CPU.into(), 5.0);
    }
    let conclusion = conclude(
        &[arm("kernel"), arm("saiga")],
        &cells,
        &runs,
        &Shortfall::default(),
    );
    let [limit] = conclusion.warnings.as_slice() else {
        panic!("{:?}", conclusion.warnings)
    };
    assert!(
        limit
            .text
            .starts_with("The client was the limit of the saiga arm in 1 cell:")
    );
}

#[test]
fn without_runs_there_is_no_conclusion() {
    let (arms, cells, _) = two_loads();
    let shortfall = Shortfall {
        stopped: Some("interrupted".into()),
        given_up: vec![],
        longer: String::new(),
    };
    let conclusion = conclude(&arms, &cells, &[], &shortfall);
    assert_eq!(
        (conclusion.comparisons.len(), conclusion.headline.len()),
        (0, 0)
    );
    assert_eq!(conclusion.verdict, Verdict::NoDifferenceShown);
    assert!(conclusion.warnings[0].text.contains("interrupted"));
}

fn fail_over(arm: &str, pair: u32, without_service_s: f64, lost: f64) -> Run {
    let mut run = run("failover-unpinned", arm, pair, 1.0);
    run.metrics = BTreeMap::from([
        (WITHOUT_SERVICE.to_owned(), without_service_s),
        ("acknowledged_writes".to_owned(), 1000.0),
        ("lost_writes".to_owned(), lost),
    ]);
    run
}

#[test]
fn each_arm_has_a_sentence_about_fail_overs_and_no_false_warning() {
    let cells = [cell("failover", "unpinned")];
    let arms = [arm("kernel"), arm("saiga")];
    let runs: Vec<Run> = (0..6u32)
        .flat_map(|pair| {
            let more = f64::from(pair) / 10.0;
            [
                fail_over("kernel", pair, 2.0 + more, 0.0),
                fail_over("saiga", pair, 1.0 + more, f64::from(pair)),
            ]
        })
        .collect();
    let conclusion = conclude(&arms, &cells, &runs, &Shortfall::default());
    assert_eq!(
        conclusion.headline,
        [
            "Fail-over on the kernel arm: 2.25 s without service (median of 6 runs, 2.00 to \
             2.50 s); 0 of 6000 acknowledged writes were lost.",
            "Fail-over on the saiga arm: 1.25 s without service (median of 6 runs, 1.00 to \
             1.50 s); 15 of 6000 acknowledged writes were lost.",
        ]
    );
    assert_eq!(conclusion.warnings, []);
    let compared = find(&conclusion, "failover-unpinned", WITHOUT_SERVICE);
    assert_eq!(compared.verdict, Verdict::Faster);
}

/// Without a throughput the first metric specific to the experiment decides, in its direction.
#[test]
fn an_own_metric_decides_if_there_is_no_throughput() {
    let own = [crate::result::Metric {
        name: "build_s".to_owned(),
        unit: "s".to_owned(),
        better: Better::Lower,
        decides: false,
    }];
    let arms = [arm("old"), arm("new")];
    let taking = |arm: &str, pair: u32, seconds: f64| Run {
        metrics: BTreeMap::from([("build_s".to_owned(), seconds)]),
        ..run("x-unpinned", arm, pair, 1.0)
    };
    let pairs = [1.0, 1.01, 0.99, 1.02, 0.98, 1.0].into_iter().zip(0..);
    let runs: Vec<Run> = pairs
        .flat_map(|(noise, pair)| [taking("old", pair, 10.0 * noise), taking("new", pair, 5.0)])
        .collect();
    let cells = [cell("x", "unpinned")];
    let shortfall = Shortfall::default();
    let conclusion = conclude_by(Method::Fixed, &own, &arms, &cells, &runs, &shortfall);
    assert_eq!(conclusion.verdict, Verdict::Faster);
    let headline = &conclusion.headline[0];
    assert!(
        headline.starts_with("New did better: it had 0.50 times the build s (s)"),
        "{headline}"
    );
    assert_eq!(conclusion.warnings, []);
}

/// Eight pairs of an arm and its repetition; `second` is added to all throughputs of the
/// repetition.
fn against_itself(method: Method, second: f64) -> Conclusion {
    let again = arm("kernel (again)");
    let noise = [0.0, 1.0, -1.0, 2.0, -2.0, 0.5, -0.5, 1.5];
    let runs: Vec<Run> = (0u32..)
        .zip(noise)
        .flat_map(|(pair, noise)| {
            [
                run("set-unpinned", "kernel", pair, 100.0),
                run(
                    "set-unpinned",
                    "kernel (again)",
                    pair,
                    100.0 + noise + second,
                ),
            ]
        })
        .collect();
    let cells = [cell("set", "unpinned")];
    conclude_by(
        method,
        &[],
        &[arm("kernel"), again],
        &cells,
        &runs,
        &Shortfall::default(),
    )
}

#[test]
fn a_repeated_arm_is_named_as_such() {
    let same = against_itself(Method::Fixed, 0.0);
    assert_eq!(same.verdict, Verdict::NoDifferenceShown);
    let wanted = "No difference shown between the arm and its repetition, as expected: kernel (again) \
                  served 1.00 times the operations per second of the kernel arm (";
    assert!(same.headline[0].starts_with(wanted), "{}", same.headline[0]);
    let other = against_itself(Method::Fixed, 10.0);
    assert_eq!(other.verdict, Verdict::Faster);
    let wanted =
        "A difference is shown between the arm and its repetition: kernel (again) served 1.10";
    assert!(
        other.headline[0].starts_with(wanted),
        "{}",
        other.headline[0]
    );
    assert!(other.headline[0].contains("One such experiment in twenty"));
}

/// Arms with similar names but different commands are different arms.
#[test]
fn an_arm_is_a_repetition_only_with_equal_commands() {
    let (kernel, again) = (arm("kernel"), arm("kernel (again)"));
    assert!(again.repeats(&kernel) && !kernel.repeats(&again) && !kernel.repeats(&kernel));
    let mut other = again.clone();
    other.env.insert("LD_PRELOAD".into(), "/libsaiga.so".into());
    assert!(!other.repeats(&kernel));
    assert!(!arm("kernel-tuned").repeats(&kernel));
}

#[test]
fn the_sequential_method_is_used_in_figures_and_sentences() {
    let fixed = against_itself(Method::Fixed, 0.0);
    let sequential = against_itself(Method::Sequential, 0.0);
    for (one, other) in fixed.comparisons.iter().zip(&sequential.comparisons) {
        assert_eq!(
            (one.ratio.method, other.ratio.method),
            (Method::Fixed, Method::Sequential)
        );
        let width = |one: &Comparison| one.ratio.ci95.map(|[lo, hi]| hi / lo).unwrap();
        assert!(
            width(other) > width(one),
            "what holds at every look is wider"
        );
    }
    assert!(!fixed.headline[0].contains("valid after every pair"));
    let wanted = "95 % interval, valid after every pair: 0.98 to 1.02, 8 pairs";
    assert!(
        sequential.headline[0].contains(wanted),
        "{}",
        sequential.headline[0]
    );
}

#[test]
fn six_pairs_are_too_few_for_the_sequential_method() {
    let (arms, cells, runs) = two_loads();
    let conclusion = conclude_by(
        Method::Sequential,
        &[],
        &arms,
        &cells,
        &runs,
        &Shortfall::default(),
    );
    assert_eq!(conclusion.verdict, Verdict::NoDifferenceShown);
    let [few, ..] = conclusion.warnings.as_slice() else {
        panic!("{:?}", conclusion.warnings)
    };
    assert!(
        few.text
            .starts_with("Fewer than eight pairs count in 4 cells"),
        "{few:?}"
    );
}

#[test]
fn stolen_time_has_a_warning_of_its_own() {
    let (arms, cells, mut runs) = two_loads();
    let reason = "the hypervisor took 0.40 s of CPU in 1.00 s, more than 0.12 of a core";
    runs[0].rejected = Some(reason.into());
    let conclusion = conclude(&arms, &cells, &runs, &Shortfall::default());
    assert_eq!(
        conclusion.warnings[0].text,
        "1 of 48 runs were rejected: the hypervisor took CPU time from this machine."
    );
    assert!(
        conclusion
            .warnings
            .iter()
            .all(|one| !one.text.contains("failed"))
    );
}

/// Headlines, and expectations without a metric, are about the same metric.
#[test]
fn the_first_own_metric_decides_unless_runs_have_a_throughput() {
    let own = ["rate_per_s", THROUGHPUT].map(|name| Metric {
        name: name.to_owned(),
        unit: "1/s".to_owned(),
        better: Better::Higher,
        decides: false,
    });
    let mut all = runs("command", 100.0, 110.0);
    assert_eq!(main_metric(&own, &all), THROUGHPUT);
    for run in &mut all {
        run.metrics.remove(THROUGHPUT);
    }
    assert_eq!(main_metric(&own, &all), "rate_per_s");
    let mut rejected = run("command", "kernel", 0, 5.0);
    rejected.rejected = Some("it was slow".to_owned());
    all.push(rejected);
    assert_eq!(main_metric(&own, &all), "rate_per_s");
    assert_eq!(main_metric(&[], &all), THROUGHPUT);
    let named = Metric {
        decides: true,
        ..own[0].clone()
    };
    let all = runs("command", 100.0, 110.0);
    assert_eq!(main_metric(&[own[1].clone(), named], &all), "rate_per_s");
}
