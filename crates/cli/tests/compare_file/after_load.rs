//! Failures after a load: its run is in the result, and `--resume` continues after it.

use super::{Marked, PLAIN, log, words};

/// A hook that fails until a file beside the log exists.
fn failing(hook: &str) -> String {
    format!("{PLAIN}[hooks]\n{hook} = \"echo full >&2; test -e ${{LOG}}.room\"\n")
}

/// Figures and rejection of each run.
fn runs(test: &Marked) -> Vec<(Option<f64>, Option<String>)> {
    let runs = test.result().runs.into_iter();
    let one =
        |run: saiga_experiment::result::Run| (run.metrics.get("rate_per_s").copied(), run.rejected);
    runs.map(one).collect()
}

#[test]
fn a_failed_hook_after_the_load_keeps_the_run_and_ends_the_experiment() {
    for hook in ["after_run", "after_start", "after_arm"] {
        let test = Marked::new();
        let mut words = words(&test, &failing(hook));
        let strs: Vec<&str> = words.iter().map(String::as_str).collect();
        let said = test.said(&mut test.saiga(&strs));
        assert_eq!(said.code, Some(2), "{said:?}");
        let why = format!(
            "the hook \"echo full >&2; test -e {}.room\" after the {} failed (exit status: 1): \
             full",
            test.text("log"),
            hook.trim_start_matches("after_")
        );
        let told = format!("saiga: {why}; the finished runs are in ");
        assert!(said.stderr.contains(&told), "{}", said.stderr);
        let failed = (Some(12.5), Some(why));
        assert_eq!(runs(&test), std::slice::from_ref(&failed));
        assert_eq!(log(&test), ["load"]);
        test.assert_nothing_left();

        std::fs::write(test.path("log.room"), "").unwrap();
        words.push("--resume".to_owned());
        let strs: Vec<&str> = words.iter().map(String::as_str).collect();
        let said = test.said(&mut test.saiga(&strs));
        assert_eq!(said.code, Some(0), "{said:?}");
        let good = (Some(12.5), None);
        assert_eq!(runs(&test), [failed, good.clone(), good]);
        assert_eq!(log(&test), ["load"; 3], "no run is made twice");
        test.assert_nothing_left();
    }
}

/// Figures that hooks printed before one of them failed are kept, too.
#[test]
fn a_server_that_does_not_stop_keeps_the_figures() {
    let test = Marked::new();
    let stop = "stop = { command = \"false\", timeout = \"200ms\" }";
    let hooks = "[hooks]\nafter_run = { command = \"echo moved_bytes 4 B\", metrics = true }\n\
                 after_start = \"false\"\n";
    let text = PLAIN.replace("stop = { signal = \"KILL\" }", stop) + hooks;
    let words = words(&test, &text);
    let strs: Vec<&str> = words.iter().map(String::as_str).collect();
    let said = test.said(&mut test.saiga(&strs));
    assert_eq!(said.code, Some(2), "{said:?}");
    let run = &test.result().runs[0];
    assert_eq!(
        (run.metrics["rate_per_s"], run.metrics["moved_bytes"]),
        (12.5, 4.0)
    );
    assert!(run.rejected.is_some(), "{run:?}");
    test.wait_until_gone();
}
