//! `saiga compare FILE.toml` with redis-server under Saiga: which runs count as accelerated.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod marked;

use std::fs;
use std::net::TcpListener;
use std::path::Path;

use marked::Marked;
use saiga_experiment::result::Run;

/// A port that was free when this was called.
fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().port()
}

/// The example with fewer runs and a shorter load.
#[test]
fn the_example_for_one_redis_runs() {
    let test = Marked::with_real_library();
    let example =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/redis-standalone.toml");
    let port = format!("PORT={}", free_port());
    let out = test.text("out");
    let words = [
        "compare",
        example.to_str().unwrap(),
        "--pairs",
        "1",
        "--out",
        &out,
    ];
    let small = [
        "--set",
        &port,
        "--set",
        // Some status checks, 50 ms apart, must fall into a run.
        "N=200000",
        "--set",
        "CLIENTS=5",
        "--set",
        "THREADS=2",
    ];
    let mut saiga = test.saiga(&words);
    let said = test.said(saiga.args(small));
    assert!(matches!(said.code, Some(0 | 2)), "{said:?}");
    let result = test.result();
    let saiga: Vec<&Run> = result
        .runs
        .iter()
        .filter(|run| run.arm == "saiga")
        .collect();
    assert!(!saiga.is_empty());
    for run in saiga {
        // Other programs or the hypervisor may invalidate runs, but every run is accelerated.
        let rejected = run.rejected.as_deref().unwrap_or_default();
        assert!(!rejected.starts_with("not accelerated"), "{rejected}");
        assert!(run.metrics["throughput_ops_s"] > 0.0);
        assert!(run.metrics["channel_share"] >= 0.9, "{:?}", run.metrics);
    }
    assert_eq!(result.arms[1].configuration["redis.saiga"], "true");
    test.assert_nothing_left();
}

/// Also for the runs of `compare redis` and `bench redis`.
#[test]
fn many_bytes_by_tcp_invalidate_runs_of_redis_too() {
    let test = Marked::with_real_library();
    let mut saiga = test.saiga(&["bench", "redis", "--arm", "saiga", "--json"]);
    saiga.args(["-c", "2", "-n", "100000", "-t", "set"]);
    let said = test.said(saiga.env("SAIGA_EVIDENCE_MESSAGES", "30000"));
    assert_eq!(said.code, Some(1), "{said:?}");
    let run: Run = serde_json::from_str(&said.stdout).unwrap();
    let why = run.rejected.unwrap();
    assert!(why.starts_with("not accelerated: "), "{why}");
    let all = "), and 2 of the client's 2 connections were upgraded";
    assert!(why.contains(" by TCP (") && why.ends_with(all), "{why}");
    assert!(run.metrics["channel_share"] < 0.9, "{:?}", run.metrics);
    test.assert_nothing_left();
}

/// Both connections get a channel, but after most of their bytes went over TCP.
#[test]
fn many_bytes_by_tcp_invalidate_a_run_with_upgraded_connections() {
    let test = Marked::with_real_library();
    let port = free_port();
    let late = "env = { SAIGA_EVIDENCE_MESSAGES = 30000 }";
    let text = format!(
        "[plan]\npairs = 1\nseed = 1\nmax_foreign_cores = 100\n\
         [[server]]\nname = \"redis\"\nport = {port}\nready = {{ probe = \"redis\" }}\n\
         command = \"redis-server --port {port} --bind 127.0.0.1 --save '' --dir ${{HERE}}\"\n\
         [[arm]]\nname = \"kernel\"\n\
         [[arm]]\nname = \"saiga\"\nsaiga = true\n[arm.client]\n{late}\n\
         [[arm.server]]\nname = \"redis\"\n{late}\n\
         [workload]\nkind = \"redis-benchmark\"\nflags = \"-c 2 -n 100000 -t set\"\n"
    );
    fs::write(test.path("e.toml"), text).unwrap();
    let words = ["compare", &test.text("e.toml"), "--out", &test.text("out")];
    let said = test.said(&mut test.saiga(&words));
    assert_eq!(said.code, Some(2), "{said:?}");
    let runs = test.result().runs.into_iter();
    let reasons = runs
        .filter(|run| run.arm == "saiga")
        .map(|run| run.rejected.unwrap());
    // A run whose partner is rejected is repeated with it.
    let reasons: Vec<String> = reasons.filter(|why| !why.starts_with("repeated")).collect();
    assert!(!reasons.is_empty());
    for why in reasons {
        assert!(why.starts_with("not accelerated: "), "{why}");
        let all = " by TCP, and 2 of the client's 2 connections were upgraded";
        assert!(why.ends_with(all), "{why}");
    }
    test.assert_nothing_left();
}
