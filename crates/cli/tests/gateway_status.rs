//! `saiga gateway status`, `top` and `capture`, and the metrics, beside a client of a real server.
//! Needs root, /dev/net/tun, ip(8), nsenter(1), Redis, bash and tshark.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Stdio};

use saiga_trials::snapshot::ip;
use saiga_trials::witness::await_true;
use saiga_trials::{Signal, sys};
use serde_json::Value;

mod support;
#[path = "support/gateway.rs"]
mod world;
use support::program::Ended;
use support::{Installation, Said, said, text};
use world::{Wire, World, in_namespace, network};

const METRICS: &str = "127.0.0.1:9464";

fn metrics() -> String {
    format!("[metrics]\nlisten = \"{METRICS}\"\n")
}

/// A verb of `saiga gateway` for the gateway of this world.
fn verb(world: &World, words: &[&str]) -> Command {
    let mut command = world.saiga.saiga(&["gateway"]);
    command.args(words).arg("--config");
    command.arg(world.saiga.path("gateway.toml"));
    command
}

fn answer(world: &World, words: &[&str]) -> String {
    let Said {
        code,
        stdout,
        stderr,
    } = said(&mut verb(world, words));
    assert_eq!(code, Some(0), "{words:?}: {stderr}");
    stdout
}

/// A client that has had an answer of the server, and keeps its connection.
fn client(world: &World) -> Ended {
    let script = "exec 3<>/dev/tcp/10.9.0.1/6379; printf 'PING\\r\\n' >&3; head -n 1 <&3; exec cat";
    let mut command = world.program(&["bash", "-c", script]);
    let spawned = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
    let mut client = Ended(spawned.unwrap());
    let mut line = String::new();
    BufReader::new(client.0.stdout.as_mut().unwrap())
        .read_line(&mut line)
        .unwrap();
    assert_eq!(line, "+PONG\r\n");
    client
}

/// A capture that has begun.
fn capture(world: &World, file: &Path, filter: &[&str]) -> Ended {
    let words = [&["capture", "-w", text(file)][..], filter].concat();
    let mut command = verb(world, &words);
    let spawned = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let mut capture = Ended(spawned.unwrap());
    let mut line = String::new();
    BufReader::new(capture.0.stderr.as_mut().unwrap())
        .read_line(&mut line)
        .unwrap();
    assert!(line.contains("capturing to"), "{line}");
    capture
}

/// What a capture says at its end.
fn last_line(capture: &mut Ended) -> String {
    let mut line = String::new();
    let stdout = capture.0.stdout.as_mut().unwrap();
    stdout.read_to_string(&mut line).unwrap();
    assert_eq!(capture.0.wait().unwrap().code(), Some(0));
    line
}

/// The answer of the listener of the metrics.
fn scraped() -> String {
    let mut stream = TcpStream::connect(METRICS).unwrap();
    let request = "GET /metrics HTTP/1.1\r\nHost: gateway\r\n\r\n";
    stream.write_all(request.as_bytes()).unwrap();
    let mut all = String::new();
    stream.read_to_string(&mut all).unwrap();
    all
}

/// The open connection of the client in all views.
fn check_connection(world: &World) {
    let status = answer(world, &["status", "--json", "--connections"]);
    let status: Value = serde_json::from_str(&status).unwrap();
    let worker = &status["workers"][0];
    assert_eq!(worker["conversations"], 1, "{status:#}");
    assert_eq!(worker["connections"]["ESTABLISHED"], 1, "{status:#}");
    assert!(worker["tcp"]["InSegs"].as_u64() > Some(1), "{status:#}");
    for part in [
        "device_to_ring",
        "ring_to_server",
        "server_to_ring",
        "ring_to_device",
    ] {
        let count = worker["latency"][part]["count"].as_u64();
        assert!(count > Some(0), "{part}: {status:#}");
    }
    let device = &worker["devices"][0];
    assert_eq!(device["name"], world.device(), "{status:#}");
    assert!(device["received"]["frames"].as_u64() > Some(1));
    let [connection] = status["connections"].as_array().unwrap().as_slice() else {
        panic!("{status:#}");
    };
    assert_eq!(connection["local"], "10.9.0.1:6379");
    let remote = connection["remote"].as_str().unwrap();
    assert!(remote.starts_with("10.9.0.2:"), "{remote}");
    assert_eq!(connection["state"], "ESTABLISHED");
    assert_eq!(connection["anchor"]["is_accepted"], true);
    assert!(connection["tcp"]["cwnd_bytes"].as_u64() > Some(1000));
    let plain = answer(world, &["status", "--connections"]);
    assert!(plain.contains(remote), "{plain}");
    let top = answer(world, &["top", "-n", "1"]);
    assert!(top.starts_with("worker"), "{top}");
    let metrics = scraped();
    let line = r#"saiga_gateway_connections{worker="0",state="ESTABLISHED"} 1"#;
    assert!(metrics.lines().any(|one| one == line), "{metrics}");
}

/// The frames of a client, with what became of them. There is one capture at a time.
fn check_capture(world: &World) {
    let file = world.saiga.path("one.pcapng");
    let mut running = capture(world, &file, &["tcp", "port", "6379"]);
    let second = said(&mut verb(world, &["capture", "-w", text(&file)]));
    assert_eq!(second.code, Some(2), "{}", second.stdout);
    assert!(second.stderr.contains("capturing"), "{}", second.stderr);
    assert_eq!(world.client("redis-cli -h 10.9.0.1 ping"), "PONG\n");
    interrupt(&running);
    let line = last_line(&mut running);
    assert!(line.contains("one.pcapng: "), "{line}");
    let mode = fs::metadata(&file).unwrap().permissions().mode();
    assert_eq!(mode & 0o7777, 0o600);
    let fields = [
        "-e",
        "tcp.srcport",
        "-e",
        "tcp.dstport",
        "-e",
        "frame.comment",
    ];
    let mut tshark = Command::new("tshark");
    tshark.args(["-n", "-r", text(&file), "-T", "fields"]);
    let shown = said(tshark.args(fields));
    assert_eq!(shown.code, Some(0), "{}", shown.stderr);
    let received = |line: &&str| line.ends_with("\t6379\ttaken by the gateway");
    let sent = |line: &&str| line.starts_with("6379\t");
    let lines = || shown.stdout.lines();
    // SYN, acknowledgement, PING, and FIN; SYN, PONG, and FIN.
    assert!(lines().filter(received).count() >= 3, "{}", shown.stdout);
    assert!(lines().filter(sent).count() >= 2, "{}", shown.stdout);
    assert!(lines().all(|line| received(&line) || sent(&line)));
}

/// Ends a program as Ctrl-C does.
fn interrupt(program: &Ended) {
    sys::signal(program.pid(), Signal::INT).unwrap();
}

/// Each device has workers, addresses and clients of its own.
#[test]
fn two_devices_are_served() {
    in_namespace(|| {
        let world = World::with("[[device]]\ninterface = \"veth1\"\n");
        world.add_veth("veth1");
        let before = network();
        let _server = world.saiga.redis(true, &["0.0.0.0"], 6379, &[]);
        let gateway = world.gateway();
        for (server, client) in [("10.9.0.1", "10.9.0.2:"), ("10.10.0.1", "10.10.0.2:")] {
            let list = world.client(&format!("redis-cli -h {server} client list"));
            assert!(list.contains(&format!("addr={client}")), "{list}");
        }
        ip("address add 10.10.0.3/24 dev veth1");
        let is_served = || ip("rule").contains("from 10.10.0.3");
        await_true(is_served, || "the new address is not served".to_owned());
        world.client("redis-cli -h 10.10.0.3 ping");
        let status = answer(&world, &["status", "--json"]);
        let status: Value = serde_json::from_str(&status).unwrap();
        for (worker, device, opens) in [(0, "tap0", 1), (1, "veth1", 2)] {
            let worker = &status["workers"][worker];
            assert_eq!(worker["devices"][0]["name"], device, "{status:#}");
            assert_eq!(worker["tcp"]["PassiveOpens"], opens, "{status:#}");
        }
        ip("address del 10.10.0.3/24 dev veth1");
        gateway.stop();
        assert_eq!(network(), before);
    });
}

#[test]
fn a_gateway_shows_its_connections_and_frames() {
    for wire in [Wire::Tap, Wire::Xdp] {
        in_namespace(|| {
            let world = World::made(wire, &metrics());
            let _server = world.redis(false);
            let gateway = world.gateway();
            let client = client(&world);
            check_connection(&world);
            drop(client);
            check_capture(&world);
            let mut last = capture(&world, &world.saiga.path("two.pcapng"), &[]);
            gateway.stop();
            let line = last_line(&mut last);
            assert!(line.contains("the gateway has ended"), "{line}");
            assert!(!world.saiga.path("run/gateway.sock").exists());
            assert_eq!(network(), world.before);
        });
    }
}

#[test]
fn a_port_of_metrics_in_use_is_named_before_anything_is_changed() {
    in_namespace(|| {
        let world = World::with(&metrics());
        let _other = TcpListener::bind(METRICS).unwrap();
        let out = said(&mut verb(&world, &["up", "--inside"]));
        assert_eq!(out.code, Some(2), "{}", out.stdout);
        assert!(out.stderr.contains(METRICS), "{}", out.stderr);
        assert!(out.stderr.contains("in use"), "{}", out.stderr);
        assert_eq!(network(), world.before);
    });
}

#[test]
fn without_a_gateway_the_verbs_say_what_to_do() {
    let saiga = Installation::bare();
    let control = saiga.path("gateway.sock");
    for words in [
        &["status"][..],
        &["top", "-n", "1"],
        &["capture", "-w", "x.pcapng"],
    ] {
        let mut command = saiga.saiga(&["gateway"]);
        command.args(words).arg("--control").arg(&control);
        let out = said(command.current_dir(saiga.path("")));
        assert_eq!((out.code, out.stdout.as_str()), (Some(2), ""));
        assert!(out.stderr.contains("saiga gateway up"), "{}", out.stderr);
        assert_eq!(out.stderr.lines().count(), 1, "{}", out.stderr);
        assert!(!saiga.path("x.pcapng").exists());
    }
}
