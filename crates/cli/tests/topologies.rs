//! `saiga compare redis` and `saiga bench redis` with several servers: results, fail-overs,
//! refusals, no processes left.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod marked;

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, Stdio};

use marked::{Marked, send};
use rustix::process::Signal;
use saiga_experiment::result::Run;
use saiga_trials::witness::await_true;

const TOPOLOGIES: [&str; 3] = ["replica", "sentinel", "cluster"];

/// Runs `bench redis` with these arguments.
fn bench(test: &Marked, words: &str) -> Run {
    let mut saiga = test.saiga(&["bench", "redis", "--json"]);
    let said = test.said(saiga.args(words.split(' ')));
    test.assert_nothing_left();
    let run: Run = serde_json::from_str(&said.stdout).unwrap();
    let code = i32::from(run.rejected.is_some());
    assert_eq!(said.code, Some(code), "{words}: {said:?}");
    run
}

#[test]
fn every_topology_starts_is_measured_and_stops() {
    let test = Marked::with_real_library();
    for topology in TOPOLOGIES {
        for arm in ["kernel", "saiga"] {
            let load = "-t get -c 50 -n 40000 -r 500";
            let run = bench(&test, &format!("--topology {topology} --arm {arm} {load}"));
            assert_eq!(run.cell, format!("get-c50-r500-{topology}-unpinned"));
            assert_eq!(run.rejected, None, "{topology} {arm}");
            assert!(run.metrics["throughput_ops_s"] > 0.0);
            let share = run.metrics["hit_share"];
            assert!(
                (share - 1.0).abs() < 1e-9,
                "{topology} {arm}: {share} found"
            );
            // Connections of the 50 clients; links between servers were upgraded before and are not
            // counted.
            let upgraded = run.metrics.get("upgraded_sockets");
            assert_eq!(upgraded.is_some(), arm == "saiga", "{topology} {arm}");
            assert!(
                upgraded.is_none_or(|count| *count >= 25.0),
                "{topology}: {upgraded:?}"
            );
        }
    }
}

/// The library of this installation accelerates nothing, so its runs are not valid.
#[test]
fn topologies_without_acceleration_are_rejected() {
    let test = Marked::with_library();
    for (topology, kind) in [("replica", "get"), ("sentinel", "failover")] {
        let run = bench(&test, &format!("--topology {topology} -t {kind} -n 8000"));
        let reason = run.rejected.unwrap_or_default();
        assert!(
            reason.starts_with("not accelerated: "),
            "{topology} {kind}: {reason}"
        );
    }
}

#[test]
fn a_fail_over_is_measured_and_reported_for_both_arms() {
    let test = Marked::with_real_library();
    let mut saiga = test.saiga(&["compare", "redis", "--topology", "sentinel"]);
    saiga.args(["--only", "failover", "--pairs", "1", "--max-foreign", "100"]);
    saiga.args(["--arms", "kernel,saiga", "--out", &test.text("out")]);
    let said = test.said(&mut saiga);
    assert_eq!(said.code, Some(0), "{said:?}");
    let result = test.result();
    assert_eq!(result.cells[0].params.workload["topology"], "sentinel");
    assert_eq!(result.runs.len(), 2);
    for run in &result.runs {
        assert_eq!(run.rejected, None);
        // A sentinel waits at least a second before it declares a master down.
        let gap = run.metrics["without_service_s"];
        assert!((1.0..20.0).contains(&gap), "{gap}");
        let written = run.metrics["acknowledged_writes"];
        assert!(run.metrics["lost_writes"] < written && written > 1000.0);
        // Four connections to the old master, and four to the new one.
        let upgraded = run.metrics.get("upgraded_sockets");
        assert_eq!(upgraded.is_some(), run.arm == "saiga");
        assert!(upgraded.is_none_or(|count| *count >= 4.0), "{upgraded:?}");
    }
    for (nth, arm) in ["kernel", "saiga"].into_iter().enumerate() {
        let headline = &result.headline[nth];
        let wanted = format!("Fail-over on the {arm} arm: ");
        assert!(headline.starts_with(&wanted), "{headline}");
    }
    let report = fs::read_to_string(test.path("out/report.html")).unwrap();
    for wanted in [
        "sentinel: saiga against kernel",
        "Time without service, s",
        "Lost writes",
    ] {
        assert!(report.contains(wanted), "{wanted}");
    }
    assert!(
        said.stdout.contains("Time without service, s"),
        "{}",
        said.stdout
    );
    test.assert_nothing_left();
}

/// A cluster under an endless load; returns when every node serves requests.
fn endless(test: &Marked) -> Child {
    let mut saiga = test.saiga(&["bench", "redis", "--arm", "kernel", "--cluster"]);
    saiga.args(["-n", "2000000000"]).stderr(Stdio::null());
    let child = saiga.stdout(Stdio::null()).spawn().unwrap();
    let loads = |pid: &u32| {
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let line = String::from_utf8_lossy(&line);
        line.starts_with("redis-benchmark") && line.contains("2000000000")
    };
    await_true(
        || test.processes_but(child.id()).iter().any(loads),
        || "no load".to_owned(),
    );
    child
}

#[test]
fn an_interrupt_and_a_kill_leave_no_node_behind() {
    for (signal, code) in [(Signal::INT, Some(2)), (Signal::KILL, None)] {
        let test = Marked::new();
        let mut child = endless(&test);
        send(&child, signal);
        assert_eq!(child.wait().unwrap().code(), code);
        test.wait_until_gone();
    }
}

#[test]
fn a_dry_run_prints_the_commands_of_an_operator() {
    let test = Marked::with_library();
    let library = test.text("lib/saiga/libsaiga.so");
    let steps = |topology: &str, more: &[&str]| {
        let mut saiga = test.saiga(&["compare", "redis", "--dry-run", "--pairs", "1"]);
        saiga
            .args(["--topology", topology, "--port", "7000"])
            .args(more);
        // PATH is empty, so that no program can be started.
        let said = test.said(saiga.env("PATH", test.path("nowhere")));
        assert_eq!(said.code, Some(0), "{said:?}");
        said.stdout
    };
    let dressed = format!("env LD_PRELOAD={library} ");
    let has = |steps: &str, wanted: &str| assert!(steps.contains(wanted), "{wanted}: {steps}");
    let replica = steps(
        "replica",
        &[
            "-t",
            "set,get",
            "-c",
            "1000",
            "-d",
            "3",
            "-r",
            "9",
            "--threads",
            "12",
        ],
    );
    has(
        &replica,
        "'replicaof 127.0.0.1 7000' > {dir-2}/redis.conf\n",
    );
    has(&replica, "redis-cli -p 7002 REPLICAOF 127.0.0.1 7000\n");
    has(
        &replica,
        &format!("\n{dressed}redis-benchmark -h 127.0.0.1 -p 7000 -t set -c 1000 "),
    );
    has(
        &replica,
        &format!("\n{dressed}redis-benchmark -h 127.0.0.1 -p 7001 -t get -c 1000 "),
    );
    has(&replica, "-d 3 --threads 12 -r 9 --csv\n");
    let sentinel = steps("sentinel", &[]);
    has(
        &sentinel,
        &format!("\n{dressed}redis-server {{dir-4}}/redis.conf --sentinel\n"),
    );
    has(&sentinel, "redis-cli -p 7005 SENTINEL MASTERS\n");
    has(
        &sentinel,
        " redis-writer --sentinel 7003 --sentinel 7004 --sentinel 7005 ",
    );
    let cluster = steps("cluster", &[]);
    let nodes: Vec<String> = (7000..7006)
        .map(|port| format!("127.0.0.1:{port}"))
        .collect();
    let join = format!(
        "redis-cli --cluster create {} --cluster-replicas 1",
        nodes.join(" ")
    );
    has(&cluster, &format!("\n{dressed}{join} --cluster-yes\n"));
    has(&cluster, "redis-cli -p 7005 CLUSTER INFO\n");
    has(&cluster, "-P 1 -d 3 --cluster --csv\n");
}

#[test]
fn errors_are_reported_once_and_exit_with_2() {
    let (_taken, port) = port_behind_two_free_ones();
    let before = (port - 2).to_string();
    let test = Marked::new();
    let bench = ["bench", "redis", "--arm", "kernel"];
    for (words, message) in [
        (
            vec!["--topology", "ring"],
            "invalid value 'ring' for '--topology <TOPOLOGY>'".to_owned(),
        ),
        (
            vec!["--topology", "replica", "-t", "failover"],
            "-t failover needs --topology sentinel, not replica".to_owned(),
        ),
        (
            vec!["--topology", "sentinel", "--arm", "unix"],
            "the unix arm cannot be used with topology sentinel".to_owned(),
        ),
        (
            vec!["--topology", "replica", "--port", &before],
            format!("port {port} on 127.0.0.1 is in use (3 are needed from {before})"),
        ),
        (
            vec!["--cluster", "--port", "60000"],
            "--port 60000 is too high: the cluster topology needs 6 ports".to_owned(),
        ),
    ] {
        let given = bench
            .iter()
            .filter(|word| !words.contains(&"unix") || !["--arm", "kernel"].contains(*word));
        let line: Vec<&str> = given.copied().chain(words.iter().copied()).collect();
        test.assert_refused(&line, &message);
    }
}

/// A port below the ephemeral range, so that no other test gets one of the two ports.
fn port_behind_two_free_ones() -> (TcpListener, u16) {
    let listen = |port| TcpListener::bind(("127.0.0.1", port)).ok();
    (20_000..32_000)
        .step_by(3)
        .find_map(|port| {
            let _two = (listen(port - 2)?, listen(port - 1)?);
            Some((listen(port)?, port))
        })
        .expect("three free ports in a row")
}

/// Servers that run but never form a topology. The limit is half a minute for all three together.
#[test]
fn a_topology_that_does_not_converge_is_reported_with_its_state() {
    let forgets =
        "[ -f \"$1\" ] && /usr/bin/sed -i /^replicaof/d \"$1\"\nexec /usr/bin/redis-server \"$@\"";
    let looks_elsewhere = "case \"$*\" in\n*--sentinel) \
                           /usr/bin/sed -i 's/127.0.0.1 [0-9]* /127.0.0.1 1 /' \"$1\";;\nesac\n\
                           exec /usr/bin/redis-server \"$@\"";
    let does_nothing = "[ \"$1\" = --version ] && exec /usr/bin/redis-cli --version; exit 0";
    let cases = [
        (
            "replica",
            "redis-server",
            forgets,
            "the master at 127.0.0.1:",
            "1 of 2 replicas are online",
        ),
        (
            "sentinel",
            "redis-server",
            looks_elsewhere,
            "the sentinel at 127.0.0.1:",
            "flags is \"s_down",
        ),
        (
            "cluster",
            "redis-cli",
            does_nothing,
            "the node at 127.0.0.1:",
            "cluster_state is \"fail\", not ok",
        ),
    ];
    std::thread::scope(|scope| {
        for (topology, program, script, who, missing) in cases {
            scope.spawn(move || {
                let test = Marked::new();
                let path = with_script(&test, program, script);
                let mut saiga = test.saiga(&["bench", "redis", "--arm", "kernel"]);
                saiga.args(["--topology", topology]).env("PATH", path);
                let said = test.refused(&mut saiga);
                let wanted =
                    format!("saiga: the {topology} topology was not complete after 30 s: {who}");
                assert!(said.starts_with(&wanted), "{said}");
                let (what, log) = said.split_once("; last output of ").unwrap();
                assert!(what.contains(missing), "{said}");
                assert!(log.trim_end() != "nothing", "{said}");
            });
        }
    });
}

/// Redis's programs, with a script in place of `name`.
fn with_script(test: &Marked, name: &str, script: &str) -> String {
    let folder = test.path("programs");
    fs::create_dir(&folder).unwrap();
    for program in ["redis-server", "redis-cli", "redis-benchmark"] {
        if program != name {
            let real = format!("/usr/bin/{program}");
            std::os::unix::fs::symlink(real, folder.join(program)).unwrap();
        }
    }
    let path = folder.join(name);
    if !script.is_empty() {
        fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }
    folder.display().to_string()
}

#[test]
fn a_topology_that_does_not_form_is_reported_with_server_output() {
    let sentinel_ends = "case \"$*\" in *--sentinel*) echo no sentinel today; exit 1;; esac\n\
                         exec /usr/bin/redis-server \"$@\"";
    let cli_fails = "case \"$*\" in *create*) echo '[ERR] no cluster today'; exit 1;; esac\n\
                     exec /usr/bin/redis-cli \"$@\"";
    for (topology, program, script, wanted) in [
        (
            "sentinel",
            "redis-server",
            sentinel_ends,
            &["saiga: redis-server ended before it was ready; its output: no sentinel today"][..],
        ),
        (
            "cluster",
            "redis-cli",
            cli_fails,
            &[
                "saiga: redis-cli --cluster create failed (exit status: 1): [ERR] no cluster today",
                "the node at 127.0.0.1:",
                "Ready to accept connections",
            ],
        ),
        (
            "cluster",
            "redis-cli",
            "",
            &["saiga: redis-cli is not installed (not found in PATH)"],
        ),
    ] {
        let test = Marked::new();
        let path = with_script(&test, program, script);
        let mut saiga = test.saiga(&["bench", "redis", "--arm", "kernel"]);
        let said = test.refused(saiga.args(["--topology", topology]).env("PATH", path));
        for wanted in wanted {
            assert!(said.contains(wanted), "{wanted}: {said}");
        }
    }
}
