//! `saiga diagnose` on files, and on a live server with a planted fault.

use std::fs;
use std::process::Command;

use serde_json::Value;

use crate::support::{Installation, Said, said};

fn diagnose(saiga: &Installation, words: &[&str]) -> Said {
    let mut command = Command::new(saiga.path("bin/saiga"));
    command.arg("diagnose").args(words);
    command.current_dir(saiga.path(""));
    said(&mut command)
}

/// Two steps of the load of a payment system: more clients, the same throughput.
const SATURATED: &str = "time,N,X,R_ms\n0,3000,10000,290\n60,5000,9856,499\n";

#[test]
fn a_file_of_a_saturated_system_is_answered_in_three_sentences() {
    let saiga = Installation::bare();
    fs::write(saiga.path("load.csv"), SATURATED).unwrap();
    let said = diagnose(&saiga, &["load.csv", "--html", "page.html"]);
    assert_eq!(said.code, Some(1), "{said:?}");
    assert!(
        said.stdout.contains("The system is saturated at 9,856/s."),
        "{said:?}"
    );
    let page = fs::read_to_string(saiga.path("page.html")).unwrap();
    assert!(page.contains("The system is saturated at 9,856/s."));
}

#[test]
fn hops_name_the_one_whose_own_time_grows() {
    let saiga = Installation::bare();
    fs::write(saiga.path("client.csv"), SATURATED).unwrap();
    let ingress = "time,N,X,R_ms\n0,2600,10000,257.5\n60,3750,9856,381\n";
    fs::write(saiga.path("ingress.csv"), ingress).unwrap();
    let application = "time,N,X,R_ms\n0,2250,10000,225\n60,1920,9856,195\n";
    fs::write(saiga.path("application.csv"), application).unwrap();
    let said = diagnose(
        &saiga,
        &[
            "--json",
            "--hop=client=client.csv",
            "--hop=client/ingress=ingress.csv",
            "--hop=ingress/application=application.csv",
        ],
    );
    assert_eq!(said.code, Some(1), "{said:?}");
    let verdict: Value = serde_json::from_str(&said.stdout).unwrap();
    assert_eq!(verdict["findings"][0]["rule"], "hops", "{verdict}");
    assert_eq!(
        verdict["findings"][0]["bottleneck"],
        "ingress up to application"
    );
}

#[test]
fn bad_input_is_named() {
    let saiga = Installation::bare();
    fs::write(saiga.path("load.csv"), SATURATED).unwrap();
    fs::write(saiga.path("bad.csv"), "time,N,X\n0,1,1\n").unwrap();
    for (words, expected) in [
        (
            &["bad.csv"][..],
            "bad.csv has no column for the response time",
        ),
        (&["none.csv"], "cannot read none.csv"),
        (
            &["--hop", "a=load.csv", "--hop", "b=load.csv"],
            "name the hop that calls it",
        ),
        (&["--hop", "b/a=load.csv"], "give --hop b=FILE before it"),
        (
            &["--hop", "a=load.csv", "--hop", "a/a=load.csv"],
            "a is given twice",
        ),
        (&["--hop", "load.csv"], "write NAME=FILE"),
        (&["--pid", "4194304"], "there is no process 4194304"),
        (
            &["--port", "1"],
            "no process that listens on port 1 is visible",
        ),
        (&["--for", "0s"], "the time must be greater than zero"),
    ] {
        let said = diagnose(&saiga, words);
        assert_eq!(said.code, Some(2), "{words:?}: {said:?}");
        assert!(said.stderr.contains(expected), "{words:?}: {said:?}");
    }
}

/// Redis answers 2000 requests of five clients; the capture has the load, and one cut short too.
#[test]
fn a_capture_of_a_server_is_a_load() {
    let saiga = Installation::bare();
    let script = r#"
        ip link set lo up
        redis-server --port 6379 --save "" --dir "$DIR" >/dev/null & server=$!
        until redis-cli ping 2>/dev/null | grep -q PONG; do kill -0 $server; done
        tcpdump -Z root -i lo -U -w r.pcap port 6379 2>/dev/null & capture=$!
        until [ -s r.pcap ]; do kill -0 $capture; done
        redis-benchmark -t set -c 5 -n 2000 -q >/dev/null
        kill -INT $capture; wait $capture || true
        kill $server; wait $server || true
        head -c -5 r.pcap >cut.pcap
    "#;
    let mut command = Command::new("unshare");
    command.args(["-n", "sh", "-ec", script]);
    command
        .env("DIR", saiga.path(""))
        .current_dir(saiga.path(""));
    let made = said(&mut command);
    assert_eq!(made.code, Some(0), "{made:?}");
    let judged = |file: &str| {
        let said = diagnose(&saiga, &[file, "--json"]);
        let verdict: Value = serde_json::from_str(&said.stdout).unwrap_or_default();
        let clear = verdict["clear"].as_array().cloned().unwrap_or_default();
        let tail = clear.iter().any(|one| one["rule"] == "tail");
        let found = verdict["findings"].to_string().contains("\"tail\"");
        assert!(
            tail || found,
            "{file}: the response times are judged: {said:?}"
        );
        verdict["gaps"].clone()
    };
    assert_eq!(judged("r.pcap"), Value::Array(vec![]));
    assert!(
        judged("cut.pcap")
            .to_string()
            .contains("ends inside a record")
    );
    let hops = [
        "--hop=client=r.pcap",
        "--hop=client/server=r.pcap",
        "--json",
    ];
    let joined = diagnose(&saiga, &hops);
    let verdict: Value = serde_json::from_str(&joined.stdout).unwrap();
    let gaps = verdict["gaps"].to_string();
    assert!(gaps.contains("packets that are in both"), "{joined:?}");
    let none = diagnose(&saiga, &["r.pcap", "--port", "5"]);
    assert_eq!(none.code, Some(2));
    assert!(
        none.stderr
            .contains("r.pcap has no request with a response at port 5")
    );
}

/// A listener with a backlog of one that accepts nothing drops connections; the kernel counts them.
#[test]
fn a_full_backlog_of_a_live_server_is_found() {
    let saiga = Installation::bare();
    let script = r#"
        import socket, subprocess, sys, threading
        listener = socket.create_server(("127.0.0.1", 0), backlog=1)
        port = listener.getsockname()[1]
        ended = threading.Event()
        def knock():
            while not ended.is_set():
                client = socket.socket()
                client.settimeout(0.05)
                try:
                    client.connect(("127.0.0.1", port))
                except OSError:
                    pass
        knocking = threading.Thread(target=knock)
        knocking.start()
        command = [sys.argv[1], "diagnose", "--port", str(port), "--for", "3s", "--json"]
        said = subprocess.run(command, stdout=subprocess.PIPE)
        ended.set()
        knocking.join()
        sys.stdout.buffer.write(said.stdout)
        sys.exit(said.returncode)
    "#;
    let mut command = Command::new("unshare");
    let lines = script
        .lines()
        .map(|line| line.strip_prefix("        ").unwrap_or(line));
    let program = lines.collect::<Vec<_>>().join("\n");
    let started = r#"ip link set lo up; exec python3 -c "$PROGRAM" "$SAIGA""#;
    command.args(["-n", "sh", "-ec", started]);
    command
        .env("PROGRAM", program.trim())
        .env("SAIGA", saiga.path("bin/saiga"));
    let said = said(&mut command);
    assert_eq!(said.code, Some(1), "{said:?}");
    let verdict: Value = serde_json::from_str(&said.stdout).unwrap();
    let rules: Vec<&str> = verdict["findings"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|finding| finding["rule"].as_str())
        .collect();
    assert!(rules.contains(&"listen-backlog"), "{verdict}");
}

/// The packets of a live server and the counters of Redis are sources of their rules.
#[test]
fn packets_and_counters_of_a_live_server_are_read() {
    let saiga = Installation::bare();
    let script = r#"
        ip link set lo up
        redis-server --port 6379 --save "" --requirepass secret --dir "$DIR" >/dev/null &
        server=$!
        trap 'kill $(jobs -p) 2>/dev/null; wait' EXIT
        until redis-cli ping 2>/dev/null | grep -q NOAUTH; do kill -0 $server; done
        redis-benchmark -a secret -l -t set -c 2 -q >/dev/null 2>&1 &
        REDISCLI_AUTH=secret "$SAIGA" diagnose --engine redis --packets --for 3s --json
    "#;
    let mut command = Command::new("unshare");
    command.args(["-n", "bash", "-c", script]);
    command
        .env("DIR", saiga.path(""))
        .env("SAIGA", saiga.path("bin/saiga"));
    let said = said(&mut command);
    let verdict: Value = serde_json::from_str(&said.stdout).expect(&said.stderr);
    let unknown = verdict["unknown"].as_array().unwrap();
    let lacking: Vec<&str> = unknown
        .iter()
        .filter_map(|one| one["rule"].as_str())
        .collect();
    for rule in ["tail", "replica-lag", "max-connections", "pool", "clock"] {
        assert!(!lacking.contains(&rule), "{rule}: {verdict:#}");
    }
    assert!(!said.stdout.contains("secret"), "{said:?}");
}

/// A result of `saiga compare` with response times: one client, and fifty.
#[test]
fn the_runs_of_an_experiment_are_a_load() {
    let saiga = Installation::bare();
    let text = include_str!("../../../measure/experiment/tests/data/result-v1.json");
    let mut result: Value = serde_json::from_str(text).unwrap();
    for run in result["runs"].as_array_mut().unwrap() {
        let clients = if run["cell"].as_str().unwrap().contains("-c50-") {
            50.0
        } else {
            1.0
        };
        let throughput = run["metrics"]["throughput_ops_s"].as_f64().unwrap();
        run["metrics"]["latency_mean_us"] = Value::from(clients / throughput * 1e6);
    }
    fs::create_dir(saiga.path("out")).unwrap();
    fs::write(saiga.path("out/result.json"), result.to_string()).unwrap();
    for words in [
        &["out", "--json"][..],
        &["out/result.json", "--arm", "kernel", "--json"],
    ] {
        let said = diagnose(&saiga, words);
        let verdict: Value = serde_json::from_str(&said.stdout).expect(&said.stderr);
        let unknown = verdict["unknown"].to_string();
        assert!(!unknown.contains("\"saturation\""), "{verdict:#}");
        let gaps = verdict["gaps"].to_string();
        assert!(gaps.contains("other loads left out"), "{verdict:#}");
    }
    for (words, expected) in [
        (
            &["out", "--arm", "x"][..],
            "--arm: the experiment has the arms kernel, unix, saiga",
        ),
        (&["out", "--latency", "out/result.json"], "has no latencies"),
        (&["--hop", "a=out"], "out is an experiment; give it as FILE"),
    ] {
        let said = diagnose(&saiga, words);
        assert_eq!(said.code, Some(2), "{words:?}: {said:?}");
        assert!(said.stderr.contains(expected), "{words:?}: {said:?}");
    }
    let mut command = Command::new(saiga.path("bin/saiga"));
    command
        .args(["history", "out", "--json"])
        .current_dir(saiga.path(""));
    let history = said(&mut command);
    let stages: Value = serde_json::from_str(&history.stdout).expect(&history.stderr);
    assert_eq!(stages[0]["before_after"][1]["clients"], 1.0, "{stages:#}");
    assert!(stages[0]["diagnosis"][1].is_string(), "{stages:#}");
}
