//! Faults that are planted on real servers: `saiga diagnose` must name each as its first finding.
//!
//! The tests run one after the other and judge how busy the CPUs are, so this machine must have
//! nothing else to do: `SAIGA_SOAK=1 cargo test -p saiga-cli --features soak --test planted`.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../support/mod.rs"]
mod support;
mod unseen;

use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};

use saiga_trials::mariadb::{Kind, Server};
use saiga_trials::parity::Arm;
use saiga_trials::peer::Peer;
use serde_json::Value;
use support::{Installation, said};

/// Held by the test that runs.
fn alone() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What every script can use. `serve` starts Redis; `load` starts a benchmark until the script
/// ends; `saiga` observes for six seconds.
const COMMON: &str = r#"
    ip link set lo up
    trap 'kill $(jobs -p) 2>/dev/null; wait' EXIT
    serve() {
        "$@" redis-server --port 6379 --save "" --dir "$DIR" >/dev/null &
        server=$!
        until redis-cli ping 2>/dev/null | grep -q PONG; do kill -0 $server; done
    }
    load() { redis-benchmark -l -t set,get -q "$@" >/dev/null 2>&1 & }
    diagnose() { "$SAIGA" diagnose --for 6s --json "$@"; }
"#;

/// Runs a script in a network and a mount namespace of its own and returns the verdict.
fn verdict(script: &str) -> Value {
    let saiga = Installation::bare();
    let mut command = Command::new("unshare");
    command.args(["-nm", "bash", "-ec", &[COMMON, script].concat()]);
    command.env("SAIGA", saiga.path("bin/saiga"));
    command.env("DIR", saiga.path(""));
    let said = said(&mut command);
    serde_json::from_str(&said.stdout).unwrap_or_else(|error| panic!("{error}: {said:?}"))
}

#[track_caller]
fn assert_first(script: &str, rule: &str, bottleneck: &str) {
    let _turn = alone();
    let verdict = verdict(script);
    let first = &verdict["findings"][0];
    assert_eq!(first["rule"], rule, "{verdict:#}");
    let named = first["bottleneck"].as_str().unwrap();
    assert!(named.contains(bottleneck), "{verdict:#}");
}

#[test]
fn a_hog_on_the_cpu_of_the_server() {
    let script = r#"
        serve taskset -c 0
        taskset -c 0 sh -c 'while :; do :; done' &
        load -c 10
        diagnose --pid $server || true
    "#;
    assert_first(script, "cpu", "other programs");
}

#[test]
fn a_server_on_one_cpu() {
    let script = r#"
        serve taskset -c 0
        taskset -c 1 redis-benchmark -l -t set -P 32 -c 20 -q >/dev/null 2>&1 &
        diagnose --port 6379 || true
    "#;
    assert_first(script, "cpu", "the CPU time of the server");
}

#[test]
fn a_server_with_one_thread() {
    let script = r#"
        serve
        load -P 64 -c 20
        diagnose --port 6379 || true
    "#;
    assert_first(script, "one-thread", "redis-server");
}

#[test]
fn a_client_that_needs_more_cpu_time_than_its_server() {
    let script = r#"
        serve
        for i in 1 2 3 4; do load -c 20; done
        diagnose --port 6379 || true
    "#;
    assert_first(script, "cpu", "the client on this host");
}

#[test]
fn a_cpu_quota() {
    let script = r#"
        group=/sys/fs/cgroup/cpu/saiga-planted-$$
        mkdir -p $group
        trap 'kill $(jobs -p) 2>/dev/null; wait; rmdir $group' EXIT
        echo 20000 >$group/cpu.cfs_quota_us
        serve
        echo $server >$group/cgroup.procs
        load -c 10
        diagnose --pid $server || true
    "#;
    assert_first(script, "cpu-quota", "quota");
}

#[test]
fn a_backlog_of_one() {
    let script = r#"
        server() {
            exec python3 -c '
import socket, time
listener = socket.create_server(("127.0.0.1", 7000), backlog=1)
while True:
    time.sleep(0.2)
    listener.accept()[0].close()
'
        }
        knock() {
            exec python3 -c '
import socket
while True:
    client = socket.socket()
    client.settimeout(0.05)
    try:
        client.connect(("127.0.0.1", 7000))
    except OSError:
        pass
'
        }
        server & server=$!
        knock &
        diagnose --pid $server || true
    "#;
    assert_first(script, "listen-backlog", "backlog");
}

#[test]
fn short_connections_at_the_limit_of_the_ports() {
    let script = r#"
        sysctl -qw net.ipv4.ip_local_port_range="40000 40499" net.ipv4.tcp_tw_reuse=0
        serve
        redis-benchmark -l -k 0 -t set -c 1 -q >/dev/null 2>&1 &
        diagnose --port 6379 || true
    "#;
    assert_first(script, "local-ports", "local ports to 127.0.0.1:6379");
}

/// Eight sessions change the same row, each in a transaction of 20 ms.
#[test]
fn a_hot_row() {
    let _turn = alone();
    let server = Server::start(Kind::MariaDb, Arm::Kernel, &[]);
    let table = "create table trial.hot (id int primary key, n int) engine = innodb; \
                 insert into trial.hot values (1, 0);";
    server.must(Arm::Kernel, table);
    let transaction = "begin; update trial.hot set n = n + 1; do sleep(0.02); commit;\n";
    let path = server.folder().join("hot.sql");
    std::fs::write(&path, transaction.repeat(20_000)).unwrap();
    let _clients: Vec<Peer> = (0..8).map(|_| server.batch(Arm::Kernel, &path)).collect();
    let saiga = Installation::bare();
    let port = server.port.to_string();
    let words = [
        "diagnose",
        "--engine=mariadb",
        "--port",
        &port,
        "--for=6s",
        "--json",
    ];
    let said = said(&mut saiga.saiga(&words));
    let verdict: Value = serde_json::from_str(&said.stdout).unwrap();
    assert_eq!(verdict["findings"][0]["rule"], "row-locks", "{verdict:#}");
}

/// On a healthy system with a light load, nothing is invented. Time that the hypervisor takes from
/// this machine is not invented, either.
#[test]
fn a_healthy_system_has_no_bottleneck() {
    let _turn = alone();
    let script = r#"
        serve
        (while sleep 0.01; do echo PING; done) | redis-cli >/dev/null &
        diagnose --port 6379 || true
    "#;
    for round in 0..20 {
        let verdict = verdict(script);
        let findings = verdict["findings"].as_array().unwrap();
        let invented = findings.iter().any(|finding| finding["rule"] != "steal");
        assert!(!invented, "round {round}: {verdict:#}");
    }
}
