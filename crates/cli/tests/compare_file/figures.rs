//! Figures that hooks print.

use super::{Marked, PLAIN, rejections, run};

/// What hooks print are figures of the run, and the figure that the file names decides.
#[test]
fn figures_of_hooks_are_compared_and_may_decide() {
    let test = Marked::new();
    // Arm b moves half as much, and serves a tenth less.
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
fn what_a_hook_prints_must_be_figures_with_names_of_their_own() {
    let declared = "[[metric]]\nname = \"moved_bytes\"\nunit = \"B\"\nbetter = \"lower\"\n";
    for (hook, wanted) in [
        ("echo moved 4 kilo bytes", "which is not `name value unit`"),
        (
            "echo moved_bytes 4 kB",
            "printed moved_bytes in kB; its [[metric]] says B",
        ),
        ("true", "no hook with metrics = true printed moved_bytes"),
        (
            "echo moved_bytes 4 B; echo rate_per_s 9 1/s",
            "a hook printed rate_per_s, which Saiga measures; name it otherwise",
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
