//! `[restore] kind = "logical"`: data are restored through a running server, here a Redis that
//! keeps its data between starts.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod marked;

use std::fs;

use marked::{Marked, Said};
use saiga_trials::port;

/// The load increments `n`, so that it would see the effect of the previous load. The hooks print
/// the value before and after the load.
const COUNTING: &str = r#"
[plan]
pairs = 2
seed = 1
max_foreign_cores = 100
[[server]]
name = "redis"
command = "redis-server --port ${PORT} --bind 127.0.0.1 --save '3600 1' --dir ${HERE}"
port = "${PORT}"
ready = { probe = "redis" }
[[arm]]
name = "a"
[[arm]]
name = "b"
[hooks]
before_run = "redis-cli -p ${PORT} GET n >> ${LOG}"
after_run = "redis-cli -p ${PORT} GET n >> ${LOG}"
[workload]
kind = "command"
command = "sh -c 'redis-cli -p ${PORT} INCR n; echo rate 12.5'"
[[workload.metric]]
name = "rate_per_s"
regex = 'rate ([0-9.]+)'
unit = "1/s"
better = "higher"
"#;

/// Runs the comparison with this `[restore]` and more arguments.
fn compared(test: &Marked, restore: &str, more: &[&str]) -> Said {
    fs::write(test.path("e.toml"), format!("{COUNTING}{restore}")).unwrap();
    let port = format!("PORT={}", port::free());
    let log = format!("LOG={}", test.text("log"));
    let (file, out) = (test.text("e.toml"), test.text("out"));
    let words = [
        "compare", &file, "--out", &out, "--set", &port, "--set", &log,
    ];
    test.said(&mut test.saiga(&[&words, more].concat()))
}

/// The values that the hooks printed.
fn seen(test: &Marked) -> Vec<String> {
    let text = fs::read_to_string(test.path("log")).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

/// Whether the report warns that runs began with the data of other runs.
fn warns(test: &Marked) -> bool {
    let warnings = test.result().warnings;
    warnings.iter().any(|one| one.text.contains("not restored"))
}

#[test]
fn every_run_starts_with_the_restored_data() {
    let test = Marked::new();
    let said = compared(&test, "", &[]);
    assert_eq!(said.code, Some(0), "{said:?}");
    let left = ["", "1", "1", "2", "2", "3", "3", "4"];
    assert_eq!(seen(&test), left, "the server keeps its data");
    assert!(warns(&test));
    test.assert_nothing_left();

    let test = Marked::new();
    // Another order of the commands would leave 7.
    let restore = "[restore]\nkind = \"logical\"\ncommands = [\n\
                   \"redis-cli -p ${PORT} SET n 7\",\n\"redis-cli -p ${PORT} INCRBY n 10\",\n]\n";
    let said = compared(&test, restore, &[]);
    assert_eq!(said.code, Some(0), "{said:?}");
    assert_eq!(seen(&test), ["17", "18"].repeat(4));
    assert!(!warns(&test));
    test.assert_nothing_left();

    // Printed between the start of the server and the hooks of the run.
    let said = compared(&test, restore, &["--dry-run"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    let at = |part: &str| {
        said.stdout
            .find(part)
            .unwrap_or_else(|| panic!("{part} in {said:?}"))
    };
    let steps = [
        "redis-server ",
        "# restore through the server",
        "SET n 7",
        "INCRBY n 10",
        "GET n",
    ];
    assert!(steps.map(at).is_sorted(), "{}", said.stdout);
}

/// Without a restore, no run is measured, unless `on_failure` allows that.
#[test]
fn a_failed_restore_ends_the_experiment_or_its_run() {
    let failing = |rule: &str| {
        format!(
            "[restore]\nkind = \"logical\"\ncommands = [{{ command = \"echo broken; exit 3\", \
             on_failure = \"{rule}\" }}]\n"
        )
    };
    let test = Marked::new();
    let said = compared(&test, &failing("stop"), &[]);
    assert_eq!(said.code, Some(2), "{said:?}");
    let told =
        "saiga: the hook \"echo broken; exit 3\" that restores failed (exit status: 3): broken";
    assert!(said.stderr.contains(told), "{}", said.stderr);
    assert_eq!(seen(&test), [""; 0], "no load runs");
    test.assert_nothing_left();

    let test = Marked::new();
    let said = compared(&test, &failing("reject"), &[]);
    assert_eq!(said.code, Some(2), "{said:?}");
    let runs = test.result().runs;
    assert!(!runs.is_empty());
    for run in runs {
        let why = run.rejected.unwrap();
        assert!(
            why.contains("that restores failed (exit status: 3)"),
            "{why}"
        );
    }
    assert_eq!(seen(&test), [""; 0], "no load runs");
    test.assert_nothing_left();
}
