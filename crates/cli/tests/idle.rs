//! `--idle N`: idle connections beside the load; their cost, refusals, no processes left.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod marked;

use std::fs;

use marked::Marked;
use saiga_experiment::result::{ExperimentResult, Run};

/// The idle connections use channels before the load starts, and are counted separately.
#[test]
fn idle_connections_are_upgraded_and_measured() {
    let test = Marked::with_real_library();
    let mut saiga = test.saiga(&["bench", "redis", "--idle", "300", "-t", "get", "--json"]);
    saiga.args(["-c", "8", "-n", "40000"]);
    let said = test.said(&mut saiga);
    assert_eq!(said.code, Some(0), "{said:?}");
    let run: Run = serde_json::from_str(&said.stdout).unwrap();
    assert_eq!(run.arm, "saiga+idle");
    assert_eq!(run.rejected, None);
    let count = |metric: &str| run.metrics[metric];
    assert!((count("idle_connections") - 300.0).abs() < 1e-9);
    let active = count("upgraded_sockets");
    assert!((4.0..=8.0).contains(&active), "{active} of 8 active ones");
    // At least a slot of a segment and its share of the header; no ring, which has 8 KiB.
    let client = count("client_rss_per_idle_bytes");
    assert!((1024.0..8192.0).contains(&client), "{client} bytes each");
    test.assert_nothing_left();
}

/// With `--idle` one arm is enough: it is compared with itself.
#[test]
fn an_arm_is_compared_with_itself_beside_idle_connections() {
    let test = Marked::new();
    let mut saiga = test.saiga(&["compare", "redis", "--idle", "50", "--arms", "kernel"]);
    saiga.args(["--only", "unpinned", "--pairs", "1", "-n", "4000"]);
    saiga.args(["--max-foreign", "100", "--out", &test.text("out")]);
    let said = test.said(&mut saiga);
    assert_eq!(said.code, Some(0), "{said:?}");
    let result = fs::read_to_string(test.path("out/result.json")).unwrap();
    let result = ExperimentResult::from_json(&result).unwrap();
    let arms: Vec<_> = result.arms.iter().map(|arm| arm.name.as_str()).collect();
    assert_eq!(arms, ["kernel", "kernel+idle"]);
    assert_eq!(result.arms[1].varies.as_deref(), Some("kernel"));
    assert_eq!(result.cells[0].id, "get-c50-unpinned");
    let held = "Each of the 50 idle connections of the kernel+idle arm held ";
    assert!(result.headline.iter().any(|said| said.starts_with(held)));
    for wanted in [
        "kernel+idle against kernel",
        "Server memory per connection, bytes",
    ] {
        assert!(said.stdout.contains(wanted), "{wanted}: {}", said.stdout);
    }
    test.assert_nothing_left();
}

/// Each arm is compared with itself, not with the first one.
#[test]
fn a_dry_run_shows_the_holders_of_both_arms() {
    let test = Marked::with_library();
    let mut saiga = test.saiga(&["compare", "redis", "--idle", "6000", "--dry-run"]);
    saiga.args(["--pairs", "1", "--only", "two-cores", "--port", "7000"]);
    let said = test.said(saiga.env("PATH", test.path("nowhere")));
    assert_eq!(said.code, Some(0), "{said:?}");
    for address in ["127.0.0.1", "127.0.0.2"] {
        let holder =
            format!("saiga redis-holder --address {address} --port 7000 --connections 3000 &");
        assert_eq!(said.stdout.matches(&holder).count(), 2, "{}", said.stdout);
    }
    for arm in [
        "# arm kernel\n",
        "# arm kernel+idle\n",
        "# arm saiga+idle\n",
    ] {
        assert!(said.stdout.contains(arm), "{arm}: {}", said.stdout);
    }
}

#[test]
fn too_many_idle_connections_are_refused() {
    let test = Marked::with_library();
    for (words, wanted) in [
        (
            &["compare", "redis", "--idle", "1000000", "--out", "x"][..],
            "descriptors, but the hard limit is ",
        ),
        (
            &["bench", "redis", "--idle", "1000000"],
            "--idle 1000000 beside 50 clients: redis-server needs 1031433 descriptors",
        ),
        (
            &["bench", "redis", "--idle", "9", "--arm", "unix"],
            "the unix arm cannot be used with --idle",
        ),
        (
            &["bench", "redis", "--idle", "9", "--cluster"],
            "--idle needs --topology standalone, not cluster",
        ),
        (
            &["compare", "sql", "--engine", "postgres", "--idle", "9"],
            "unexpected argument '--idle'",
        ),
    ] {
        let said = test.said(&mut test.saiga(words));
        assert_eq!(said.code, Some(2), "{words:?}: {said:?}");
        assert!(said.stderr.contains(wanted), "{words:?}: {}", said.stderr);
    }
    test.assert_nothing_left();
}
