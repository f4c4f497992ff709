//! Real servers and clients on the loopback interface, captured by tcpdump: the capture counts
//! what the servers count.

use std::{
    io::{BufRead, BufReader, Read},
    net::{Ipv4Addr, UdpSocket},
    process::{Child, Command, Stdio},
    sync::mpsc,
    thread,
    time::Duration,
};

use saiga_capture::{Kind, Mark, Options, Protocol, Server, Traffic, read};
use saiga_trials::{mariadb, parity::Arm, postgres, redis};

/// A datagram with this payload is the last packet of a capture.
const END: &[u8] = b"the end of this capture";

/// The last packet is sent again after this time.
const AGAIN: Duration = Duration::from_secs(2);

/// tcpdump, which writes to a thread that reads until [`END`].
struct Tcpdump {
    process: Child,
    port: u16,
    traffic: mpsc::Receiver<Traffic>,
}

impl Tcpdump {
    /// Captures the packets of a port, from now on.
    ///
    /// In immediate mode, each packet would take 64 KiB of the buffer, and bursts would be lost.
    fn start(port: u16) -> Self {
        let mut process = Command::new("tcpdump")
            .args(["-i", "lo", "-Z", "root", "-U", "-B", "65536", "-w", "-"])
            .args(["port", &port.to_string()])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("tcpdump is installed (tools/setup test)");
        let errors = process.stderr.take().expect("a pipe");
        let mut lines = BufReader::new(errors).lines().map_while(Result::ok);
        let is_listening = lines.any(|line| line.contains("listening on"));
        assert!(is_listening, "tcpdump may capture on lo: it needs root");
        // The rest must not fill the pipe.
        thread::spawn(move || lines.for_each(drop));
        let output = process.stdout.take().expect("a pipe");
        let (sender, traffic) = mpsc::channel();
        thread::spawn(move || {
            let file = until_end(output);
            let traffic = read(&file[..], &Options::default()).expect("a capture");
            sender.send(traffic).expect("the test waits");
        });
        Self {
            process,
            port,
            traffic,
        }
    }

    /// Ends the capture when all packets before this call are read.
    fn finish(mut self) -> Server {
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("a socket");
        let traffic = loop {
            // Nobody listens there; the datagram is captured all the same, unless tcpdump has no
            // room for it.
            let sent = socket.send_to(END, (Ipv4Addr::LOCALHOST, self.port));
            assert_eq!(sent.expect("a datagram"), END.len());
            match self.traffic.recv_timeout(AGAIN) {
                Ok(traffic) => break traffic,
                Err(mpsc::RecvTimeoutError::Timeout) => {}
                Err(mpsc::RecvTimeoutError::Disconnected) => panic!("no capture"),
            }
        };
        self.process.kill().expect("tcpdump runs");
        self.process.wait().expect("tcpdump ends");
        assert!(traffic.marks.iter().all(is_disorder), "{:?}", traffic.marks);
        let servers = traffic.servers.into_iter();
        let mut of_port = servers.filter(|(address, _)| address.port() == self.port);
        let (_, server) = of_port.next().expect("a server");
        assert!(of_port.next().is_none(), "one address");
        server
    }
}

/// Two CPUs put packets into the capture at the same time.
fn is_disorder(mark: &Mark) -> bool {
    matches!(mark, Mark::ClockBackwards { largest, .. } if *largest < Duration::from_millis(100))
}

/// The output of tcpdump up to the last packet. It is read before it is analysed: a slow reader
/// would make tcpdump lose packets.
fn until_end(mut output: impl Read) -> Vec<u8> {
    let (mut file, mut part) = (Vec::new(), vec![0; 1 << 20]);
    while !file.ends_with(END) {
        let count = output.read(&mut part).expect("a pipe");
        assert!(count > 0, "tcpdump ended");
        file.extend_from_slice(&part[..count]);
    }
    file
}

fn answered(server: &Server, kind: Kind) -> u64 {
    server
        .requests
        .kinds
        .get(&kind)
        .map_or(0, |kinds| kinds.answered)
}

/// No request is lost, and windows and totals tell the same.
fn assert_consistent(server: &Server, protocol: Protocol) {
    assert_eq!(
        server.protocols.keys().collect::<Vec<_>>(),
        [&protocol],
        "{server:?}"
    );
    let parsing = server.parsing;
    assert_eq!(
        (parsing.lost, parsing.opaque, parsing.unrequested),
        (0, 0, 0)
    );
    assert_eq!(server.requests.unanswered, 0);
    let responses: u64 = server.windows.iter().map(|window| window.responses).sum();
    assert_eq!(responses, server.requests.answered);
    let integral: f64 = server
        .windows
        .iter()
        .map(|one| one.concurrency * one.length.as_secs_f64())
        .sum();
    let total = server.requests.total.as_secs_f64();
    assert!(
        (integral - total).abs() <= total / 1e6,
        "{integral} {total}"
    );
    assert_eq!(server.handshakes.established, server.handshakes.attempts);
}

#[test]
fn redis_counts_the_same_commands() {
    let redis = redis::Server::start(Arm::Kernel, "127.0.0.1", &[]);
    let commands = || {
        redis
            .info("stats", "total_commands_processed")
            .parse::<u64>()
    };
    let before = commands().expect("a number");
    let tcpdump = Tcpdump::start(redis.port);
    for words in [
        &[
            "-q",
            "-n",
            "3000",
            "-c",
            "5",
            "-P",
            "16",
            "-t",
            "set,get,incr,lrange_100",
        ][..],
        &[
            "-q",
            "-n",
            "300",
            "-c",
            "3",
            "-t",
            "ping,mset,hset",
            "-d",
            "2000",
            "-3",
        ],
    ] {
        let outcome = redis.benchmark(Arm::Kernel, words);
        assert!(outcome.is_success(), "{outcome:?}");
    }
    let after = commands().expect("a number");
    let server = tcpdump.finish();
    assert_consistent(&server, Protocol::Resp);
    // The first INFO is in the difference but not in the capture, with the second it is reversed.
    assert_eq!(server.requests.answered, after - before);
    assert!(answered(&server, Kind::Write) >= 3_000 + 3_000 + 300);
}

#[test]
fn mariadb_counts_the_same_statements() {
    let mariadb = mariadb::Server::start(mariadb::Kind::MariaDb, Arm::Kernel, &[]);
    mariadb.prepare_sysbench(Arm::Kernel);
    let names = ["Com_stmt_execute", "Com_stmt_prepare"];
    let before = names.map(|name| mariadb.count(name));
    let tcpdump = Tcpdump::start(mariadb.port);
    mariadb.sysbench(Arm::Kernel, "oltp_read_write", 4, 200);
    let texts =
        "INSERT INTO t VALUES (1), (2); SELECT * FROM t; UPDATE t SET a = 3; DELETE FROM t;";
    let create = "CREATE TABLE trial.t (a INT); USE trial;";
    mariadb.must(Arm::Kernel, &format!("{create} {}", texts.repeat(50)));
    let server = tcpdump.finish();
    let after = names.map(|name| mariadb.count(name));
    assert_consistent(&server, Protocol::MySql);
    assert_eq!(answered(&server, Kind::Execute), after[0] - before[0]);
    assert_eq!(answered(&server, Kind::Prepare), after[1] - before[1]);
    assert!(after[0] - before[0] >= 200 * 18, "{after:?}");
    for kind in [Kind::Insert, Kind::Update, Kind::Delete] {
        assert_eq!(answered(&server, kind), 50, "{kind:?}");
    }
}

#[test]
fn postgres_counts_the_same_queries() {
    let postgres = postgres::Server::start(Arm::Kernel, &[]);
    let script = postgres.folder().join("script.sql");
    std::fs::write(
        &script,
        "SELECT repeat('x', 300), generate_series(1, 20);\n",
    )
    .expect("a file");
    let script = script.to_str().expect("a path of text");
    for (mode, kind) in [
        ("simple", Kind::Select),
        ("extended", Kind::Select),
        ("prepared", Kind::Execute),
    ] {
        let tcpdump = Tcpdump::start(postgres.port);
        let words = [
            "-n", "-M", mode, "-c", "4", "-t", "100", "-f", script, "postgres",
        ];
        postgres.must("pgbench", Arm::Kernel, &words);
        let server = tcpdump.finish();
        assert_consistent(&server, Protocol::Postgres);
        assert_eq!(
            answered(&server, kind),
            400,
            "{mode}: {:?}",
            server.requests.kinds
        );
        // Each connection prepares the statement once.
        let prepared = if mode == "prepared" { 4 } else { 0 };
        assert_eq!(server.requests.answered, 400 + prepared, "{mode}");
        assert!(server.tcp.bytes_to_clients > 400 * 20 * 300);
    }
}
