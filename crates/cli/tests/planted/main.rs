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
use std::thread;

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

/// Runs a script in a network and a mount namespace of its own and returns the verdict. Prints the
/// first finding for `tools/confusion`.
fn verdict(script: &str) -> Value {
    let saiga = Installation::bare();
    let mut command = Command::new("unshare");
    command.args(["-nm", "bash", "-ec", &[COMMON, script].concat()]);
    command.env("SAIGA", saiga.path("bin/saiga"));
    command.env("DIR", saiga.path(""));
    command.current_dir(saiga.path(""));
    let said = said(&mut command);
    let verdict = serde_json::from_str(&said.stdout);
    shown(verdict.unwrap_or_else(|error| panic!("{error}: {said:?}")))
}

/// Prints the fault of this test and the first finding, and returns the verdict.
fn shown(verdict: Value) -> Value {
    let thread = thread::current();
    let fault = thread.name().unwrap_or_default();
    let first = verdict["findings"][0]["rule"].as_str().unwrap_or("nothing");
    println!("planted {fault}: {first}");
    verdict
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
        load -n 1000000000 -P 64 -c 20
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

#[test]
fn more_clients_than_the_limit() {
    let script = r#"
        serve env
        redis-cli config set maxclients 6 >/dev/null
        for i in 1 2 3; do redis-cli subscribe $i >/dev/null & done
        knock() {
            exec python3 -c '
import socket, time
while True:
    held = [socket.create_connection(("127.0.0.1", 6379)) for _ in range(4)]
    time.sleep(0.1)
'
        }
        diagnose --engine redis --port 6379 &
        diagnosing=$!
        until redis-cli client list | grep -q cmd=info; do kill -0 $diagnosing; done
        knock &
        wait $diagnosing || true
    "#;
    assert_first(script, "max-connections", "limit of connections");
}

/// The client is behind a device with an MTU of 576.
#[test]
fn a_small_mtu() {
    let script = r#"
        unshare -n sleep 600 & client=$!
        until [ "$(readlink /proc/$client/ns/net)" != "$(readlink /proc/self/ns/net)" ]; do
            kill -0 $client
        done
        ip link add near type veth peer name far
        ip link set far netns $client
        ip addr add 10.9.0.1/24 dev near
        ip link set near up mtu 576
        nsenter -t $client -n sh -c 'ip addr add 10.9.0.2/24 dev far; ip link set far up mtu 576'
        redis-server --port 6379 --bind 10.9.0.1 --protected-mode no --save "" --dir "$DIR" \
            >/dev/null &
        server=$!
        until redis-cli -h 10.9.0.1 ping 2>/dev/null | grep -q PONG; do kill -0 $server; done
        ask() {
            exec nsenter -t $client -n python3 -c '
import socket, time
connection = socket.create_connection(("10.9.0.1", 6379))
while True:
    connection.sendall(b"*1\r\n$4\r\nPING\r\n")
    connection.recv(100)
    time.sleep(0.02)
'
        }
        ask &
        diagnose --pid $server || true
    "#;
    assert_first(script, "small-segments", "small packets");
}

/// Twenty clients think for 50 ms after each request; they measure their own load.
#[test]
fn clients_that_think() {
    let script = r#"
        serve env
        python3 -c '
import socket, threading, time
times, begin = [], time.time()
def client():
    connection = socket.create_connection(("127.0.0.1", 6379))
    while time.time() < begin + 6:
        start = time.time()
        connection.sendall(b"*1\r\n$4\r\nPING\r\n")
        connection.recv(100)
        times.append((start - begin, time.time() - start))
        time.sleep(0.05)
threads = [threading.Thread(target=client) for _ in range(20)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
print("time,N,X,R_ms")
for second in range(6):
    own = [length for at, length in times if int(at) == second]
    print(f"{second},20,{len(own)},{sum(own) / len(own) * 1000}")
' >load.csv
        "$SAIGA" diagnose --json load.csv || true
    "#;
    assert_first(script, "load-generator", "");
}

/// Three servers share the keys, and one has nearly all of the load.
#[test]
fn a_hot_partition() {
    let script = r#"
        serve env
        for port in 6380 6381; do
            redis-server --port $port --save "" --dir "$DIR" >/dev/null &
            until redis-cli -p $port ping 2>/dev/null | grep -q PONG; do :; done
            (while sleep 0.05; do echo PING; done) | redis-cli -p $port >/dev/null &
        done
        load -n 1000000000 -P 64 -c 20
        diagnose --port 6379 || true
    "#;
    assert_first(script, "one-thread", "redis-server");
}

/// What a capture of 500 requests of Redis says after a change of its packets: `edit` gets the time
/// and the number of a packet, and returns the time, or nothing for a packet that is missing.
fn capture(edit: &str) -> String {
    let common = r#"
        serve env
        tcpdump -Z root -i lo -U -w whole.pcap port 6379 2>/dev/null & capture=$!
        until [ -s whole.pcap ]; do kill -0 $capture; done
        (for i in $(seq 500); do echo PING; sleep 0.01; done) | redis-cli >/dev/null
        kill -INT $capture; wait $capture || true
        python3 -c '
import struct
def edit(ns, number):
    EDIT
data = open("whole.pcap", "rb").read()
out, at, number = bytearray(data[:24]), 24, 0
while at < len(data):
    seconds, us, length, whole = struct.unpack("<IIII", data[at:at + 16])
    time = edit(seconds * 1000000 + us, number)
    if time is not None:
        out += struct.pack("<IIII", time // 1000000, time % 1000000, length, whole)
        out += data[at + 16:at + 16 + length]
    at, number = at + 16 + length, number + 1
open("edited.pcap", "wb").write(out)
'
        "$SAIGA" diagnose --json edited.pcap || true
    "#;
    common.replace("EDIT", edit)
}

#[test]
fn a_clock_that_was_set_back_during_a_capture() {
    let script = capture("return ns if number < 700 else ns - 5000000");
    assert_first(&script, "clock", "the clock");
}

/// Missing packets are said, and no bottleneck is made of them.
#[test]
fn a_capture_with_holes() {
    let _turn = alone();
    let verdict = verdict(&capture("return None if number % 50 == 49 else ns"));
    assert_eq!(verdict["findings"], serde_json::json!([]), "{verdict:#}");
    let gaps = verdict["gaps"].to_string();
    assert!(gaps.contains("lacks"), "{verdict:#}");
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
    let verdict = shown(serde_json::from_str(&said.stdout).unwrap());
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
