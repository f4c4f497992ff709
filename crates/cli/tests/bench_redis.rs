//! `saiga bench redis` with a list of tests, as redis-benchmark takes it.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod marked;

use marked::Marked;
use saiga_experiment::result::Run;

/// Two runs of the minimum length.
const SMALL: &str = "bench redis --arm kernel -c 3 -n 3000";

fn words(more: &'static str) -> Vec<&'static str> {
    SMALL.split(' ').chain(more.split(' ')).collect()
}

fn records(stdout: &str) -> Vec<Run> {
    let record = |line| serde_json::from_str(line).unwrap();
    stdout.lines().map(record).collect()
}

#[test]
fn each_test_of_a_list_is_a_run_on_its_own_servers() {
    let test = Marked::new();
    let said = test.said(&mut test.saiga(&words("-t get,set,get --json")));
    assert_eq!(said.code, Some(0), "{said:?}");
    let runs = records(&said.stdout);
    let cells: Vec<&str> = runs.iter().map(|run| run.cell.as_str()).collect();
    assert_eq!(cells, ["get-c3-unpinned", "set-c3-unpinned"]);
    for run in &runs {
        assert!(run.metrics["throughput_ops_s"] > 0.0, "{}", run.cell);
        assert_eq!(run.rejected, None, "{}", run.cell);
    }
    assert!((runs[0].metrics["hit_share"] - 1.0).abs() < 1e-9);
    test.assert_nothing_left();
}

#[test]
fn text_records_follow_each_other() {
    let test = Marked::new();
    let said = test.said(&mut test.saiga(&words("-t ping,set")));
    assert_eq!(said.code, Some(0), "{said:?}");
    let heads: Vec<&str> = said
        .stdout
        .lines()
        .filter(|line| !line.starts_with(' '))
        .filter_map(|line| line.split(": ").next())
        .collect();
    let wanted = ["ping_mbulk-c3-unpinned kernel", "set-c3-unpinned kernel"];
    assert_eq!(heads, wanted, "{}", said.stdout);
}

/// Records of runs before the failure are still printed.
#[test]
fn a_failed_test_is_named_after_the_records_of_the_previous_ones() {
    let test = Marked::new();
    let script = "#!/bin/sh\ncase \"$*\" in *'-t get'*) echo no gets today >&2; exit 1;; esac\n\
                  exec /usr/bin/redis-benchmark \"$@\"\n";
    let programs = test.script("programs/redis-benchmark", script);
    let programs = programs.parent().unwrap().display();
    let mut saiga = test.saiga(&words("-t set,get,ping --json"));
    let said = test.said(saiga.env("PATH", format!("{programs}:/usr/bin:/bin")));
    assert_eq!(said.code, Some(2), "{said:?}");
    let cells: Vec<String> = records(&said.stdout)
        .into_iter()
        .map(|run| run.cell)
        .collect();
    assert_eq!(cells, ["set-c3-unpinned"]);
    assert!(said.stderr.contains("no gets today"), "{}", said.stderr);
    test.assert_nothing_left();
}

#[test]
fn an_invalid_list_is_refused_before_the_first_run() {
    let test = Marked::new();
    for (list, message) in [
        (
            "-t set,failover",
            "saiga: -t failover needs --topology sentinel, not standalone",
        ),
        (
            "-t set,lpush",
            "saiga: invalid value 'lpush' for '--tests <TESTS>'",
        ),
    ] {
        let said = test.refused(&mut test.saiga(&words(list)));
        assert!(said.starts_with(message), "{list}: {said}");
    }
}
