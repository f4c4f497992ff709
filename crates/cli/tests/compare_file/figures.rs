//! Figures that hooks print.

use super::{Marked, PLAIN, rejections, run};

/// Figures from hooks belong to the run, and the figure that the file selects decides.
#[test]
fn figures_of_hooks_are_compared_and_may_decide() {
    let test = Marked::new();
    // Arm b moves half as much, but serves a tenth less.
    let printing = |arm: &str, line: &str| {
        let hook = format!("after_arm = {{ command = \"{line}\", metrics = true }}");
        format!("name = \"{arm}\"\nhooks = {{ {hook} }}")
    };
    let (a, b) = (
        printing("a", "echo moved_bytes 4096 B"),
        printing(
            "b",
            "echo noise >&2; echo moved_bytes 2048 B; echo other_files 3 files",
        ),
    );
    let text = PLAIN
        .replace(
            "[plan]\npairs = 1",
            "headline = \"moved_bytes\"\n[plan]\npairs = 6",
        )
        .replace("name = \"a\"", &a)
        .replace("name = \"b\"", &b)
        + "[[metric]]\nname = \"moved_bytes\"\nunit = \"B\"\nbetter = \"lower\"\n\
           [[expect]]\nratio_below = 0.6\n";
    let said = run(&test, &text);
    assert_eq!(said.code, Some(0), "{said:?}");
    let result = test.result();
    let of = |arm: &str, name: &str| -> Vec<Option<f64>> {
        let runs = result.runs.iter().filter(|run| run.arm == arm);
        runs.map(|run| run.metrics.get(name).copied()).collect()
    };
    assert_eq!(of("a", "moved_bytes"), [Some(4096.0); 6]);
    assert_eq!(of("b", "moved_bytes"), [Some(2048.0); 6]);
    assert_eq!(of("a", "other_files"), [None; 6]);
    assert_eq!(of("b", "other_files"), [Some(3.0); 6]);
    assert_eq!(of("b", "rate_per_s"), [Some(12.5); 6]);
    // The unit of a figure that is not compared is kept with its run.
    let detail = result.runs.iter().find(|run| run.arm == "b").unwrap();
    let units = &detail.detail.as_ref().unwrap().units;
    assert_eq!(units.len(), 1, "{units:?}");
    assert_eq!(units["other_files"], "files");
    assert!(
        result.headline[0].contains("moved bytes"),
        "{:?}",
        result.headline
    );
    let compared: Vec<&str> = result
        .comparisons
        .iter()
        .map(|one| one.metric.as_str())
        .collect();
    assert!(
        compared.contains(&"moved_bytes") && !compared.contains(&"other_files"),
        "{compared:?}"
    );
}

#[test]
fn hook_output_must_be_figures_with_unique_names() {
    let declared = "[[metric]]\nname = \"moved_bytes\"\nunit = \"B\"\nbetter = \"lower\"\n";
    for (hook, wanted) in [
        ("echo moved 4 kilo bytes", "which is not `name value unit`"),
        (
            "echo moved_bytes 4 kB",
            "printed moved_bytes in kB; the unit in its [[metric]] is B",
        ),
        ("true", "no hook with metrics = true printed moved_bytes"),
        (
            "echo moved_bytes 4 B; echo rate_per_s 9 1/s",
            "a hook printed rate_per_s, which is a metric of Saiga; use another name",
        ),
    ] {
        let test = Marked::new();
        let rule = "metrics = true, on_failure = \"reject\"";
        let hooks = format!("[hooks]\nafter_run = {{ command = \"{hook}\", {rule} }}\n");
        let said = run(&test, &format!("{PLAIN}{hooks}{declared}"));
        let rejected = rejections(&test);
        assert!(
            rejected.iter().any(|reason| reason.contains(wanted)),
            "{hook}: {rejected:?} {said:?}"
        );
        test.assert_nothing_left();
    }
}

/// Eight pairs with a figure that the hook of each arm prints, by the number of its run.
fn losing(a: &str, b: &str) -> String {
    let arm = |name: &str, lost: &str| {
        let count = format!("echo x >> ${{LOG}}.{name}; n=$(wc -l < ${{LOG}}.{name})");
        let hook = format!("{count}; echo lost_orders $(({lost})) orders");
        format!(
            "name = \"{name}\"\nhooks = {{ after_run = {{ command = \
             \"{hook}\", metrics = true }} }}"
        )
    };
    PLAIN
        .replace(
            "[plan]\npairs = 1",
            "headline = \"lost_orders\"\n[plan]\npairs = 8",
        )
        .replace("name = \"a\"", &arm("a", a))
        .replace("name = \"b\"", &arm("b", b))
        + "[[metric]]\nname = \"lost_orders\"\nunit = \"orders\"\nbetter = \"lower\"\n"
}

/// Two of eight runs have 0 and six have twice the value: the six alone would mislead.
#[test]
fn a_figure_that_is_0_in_some_runs_shows_no_difference() {
    let test = Marked::new();
    let text = losing("4", "n > 2 ? 8 : 0") + "[[expect]]\nratio_above = 1.5\n";
    let said = run(&test, &text);
    assert_eq!(said.code, Some(1), "{said:?}");
    let unmet =
        "expectation not met: lost_orders in command: no interval, because it is 0 in some runs";
    assert!(said.stderr.contains(unmet), "{}", said.stderr);
    let result = test.result();
    let wanted = "No difference shown: the median lost orders (orders) is 4 in the a arm and 8 in the \
                  b arm (8 pairs, of which 6 have a ratio).";
    assert_eq!(result.headline[0], wanted);
    let told = "2 of 8 pairs have no ratio: lost_orders is 0 in b.";
    let warnings = result
        .warnings
        .iter()
        .filter(|one| one.text.starts_with(told));
    assert_eq!(warnings.count(), 1, "{:?}", result.warnings);
    let pointer = "to read before you rely on this report";
    assert!(said.stdout.contains(pointer), "{}", said.stdout);
}

#[test]
fn a_figure_that_is_always_0_prevents_a_comparison() {
    let test = Marked::new();
    let said = run(&test, &losing("4", "0"));
    assert_eq!(said.code, Some(2), "{said:?}");
    let told =
        "saiga: no comparison is possible: 8 of 8 pairs have no ratio: lost_orders is 0 in b.";
    assert!(said.stderr.contains(told), "{}", said.stderr);
    assert_eq!(test.result().runs.len(), 16);
}

/// The figure of an expectation, in addition to that of the headline.
#[test]
fn a_missing_expected_figure_is_reported() {
    let test = Marked::new();
    let printing = "hooks = { after_run = { command = \"echo moved_bytes 4 B\", metrics = true } }";
    let text = PLAIN.replace("name = \"a\"", &format!("name = \"a\"\n{printing}"))
        + "[[expect]]\nmetric = \"moved_bytes\"\nratio_above = 1.5\n";
    let said = run(&test, &text);
    assert_eq!(said.code, Some(1), "{said:?}");
    let warnings = test.result().warnings;
    let told = "1 of 1 pairs has no ratio: moved_bytes is missing in b.";
    assert!(warnings.iter().any(|one| one.text == told), "{warnings:?}");
}
