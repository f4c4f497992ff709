//! The response times of the same capture by tshark.
//!
//! For HTTP, tshark computes them itself (`http.time`). For the databases, its dissectors name the
//! messages, and a response time is the time from a request to the end of its response.

use std::{collections::HashMap, process::Command};

use saiga_capture::Server;
use saiga_trials::{mariadb, parity::Arm, peer::Peer, postgres};

use crate::tcpdump::{Tcpdump, server};

/// An HTTP server with bodies of up to 200 kB, and six clients, each with one connection. Prints
/// the port, waits for a line, and prints a line at the end.
const HTTP: &str = r#"
import http.client, http.server, sys, threading, time

class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        number = int(self.path[1:])
        time.sleep(number % 7 / 1000)
        body = b"x" * (number * 7919 % 200000)
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass

server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
server.daemon_threads = True
threading.Thread(target=server.serve_forever, daemon=True).start()
port = server.server_address[1]
print(port, flush=True)
sys.stdin.readline()

def ask(first):
    connection = http.client.HTTPConnection("127.0.0.1", port)
    for number in range(first, first + 60):
        connection.request("GET", f"/{number}")
        connection.getresponse().read()
    connection.close()

clients = [threading.Thread(target=ask, args=(60 * index,)) for index in range(6)]
[client.start() for client in clients]
[client.join() for client in clients]
print("done", flush=True)
"#;

/// Fields of the packets for which a display filter holds, one row for each packet.
fn fields(
    file: &[u8],
    filter: &str,
    port: u16,
    protocol: &str,
    names: &[&str],
) -> Vec<Vec<String>> {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("capture.pcap");
    std::fs::write(&path, file).expect("a file");
    let mut tshark = Command::new("tshark");
    tshark
        .arg("-r")
        .arg(&path)
        .args(["-Y", filter, "-T", "fields"]);
    tshark.args(["-d", &format!("tcp.port=={port},{protocol}")]);
    // Two CPUs put packets into the capture at the same time.
    tshark.args(["-o", "tcp.reassemble_out_of_order:TRUE"]);
    for name in names {
        tshark.args(["-e", name]);
    }
    let output = tshark
        .output()
        .expect("tshark is installed (tools/setup test)");
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).expect("text");
    let row = |line: &str| line.split('\t').map(str::to_owned).collect();
    text.lines().map(row).collect()
}

/// Nanoseconds in a decimal number of seconds.
fn nanoseconds(seconds: &str) -> u64 {
    let (whole, part) = seconds.split_once('.').unwrap_or((seconds, ""));
    let nanoseconds = format!("{part:0<9}")[..9].parse::<u64>();
    whole.parse::<u64>().expect(seconds) * 1_000_000_000 + nanoseconds.expect(seconds)
}

/// Two CPUs put packets into a capture at the same time, so the last packet of a response can have
/// an earlier time than the one before it.
const DISORDER_NS: u64 = 5_000;

/// Every response time must be the same, as far as the classes of the histogram and the order of
/// the packets tell.
#[track_caller]
fn assert_same_times(server: &Server, mut expected: Vec<u64>) {
    expected.sort_unstable();
    let times = &server.requests.last_byte_ns;
    let mut found = Vec::new();
    for class in times.iter_recorded() {
        let value = class.value_iterated_to();
        let low = times.lowest_equivalent(value).saturating_sub(DISORDER_NS);
        let high = times.highest_equivalent(value) + DISORDER_NS;
        found.extend((0..class.count_at_value()).map(|_| low..=high));
    }
    assert_eq!(found.len(), expected.len());
    for (found, expected) in found.iter().zip(&expected) {
        assert!(
            found.contains(expected),
            "{found:?} ns, tshark {expected} ns"
        );
    }
}

/// Times from the packets that begin a request to those that end its response. A row has the time,
/// the stream, and texts of which `is_request` and `is_end` know the meaning.
fn times(
    rows: &[Vec<String>],
    is_request: impl Fn(&[String]) -> bool,
    is_end: impl Fn(&[String]) -> bool,
) -> Vec<u64> {
    let mut asked: HashMap<&str, u64> = HashMap::new();
    let mut times = Vec::new();
    for row in rows {
        let (at, stream) = (nanoseconds(&row[0]), row[1].as_str());
        if is_request(&row[2..]) {
            asked.entry(stream).or_insert(at);
        } else if is_end(&row[2..])
            && let Some(start) = asked.remove(stream)
        {
            times.push(at - start);
        }
    }
    times
}

#[test]
fn http() {
    let mut command = Command::new("python3");
    command.args(["-c", HTTP]);
    let mut peer = Peer::spawn(command);
    let port: u16 = peer.line().expect("a port").parse().expect("a port");
    let tcpdump = Tcpdump::start(port);
    peer.tell("go\n");
    peer.expect("done");
    let file = tcpdump.finish_file();
    let rows = fields(&file, "http.time", port, "http", &["http.time"]);
    let expected: Vec<u64> = rows.iter().map(|row| nanoseconds(&row[0])).collect();
    assert_eq!(expected.len(), 360);
    assert_same_times(&server(&file, port), expected);
}

#[test]
fn mysql() {
    let mariadb = mariadb::Server::start(mariadb::Kind::MariaDb, Arm::Kernel, &[]);
    mariadb.prepare_sysbench(Arm::Kernel);
    let tcpdump = Tcpdump::start(mariadb.port);
    mariadb.sysbench(Arm::Kernel, "oltp_point_select", 4, 400);
    let file = tcpdump.finish_file();
    let port = mariadb.port.to_string();
    let names = [
        "frame.time_epoch",
        "tcp.stream",
        "mysql.command",
        "tcp.srcport",
    ];
    let rows = fields(&file, "mysql", mariadb.port, "mysql", &names);
    // COM_QUIT and COM_STMT_CLOSE have no response.
    let is_request = |row: &[String]| !row[0].is_empty() && row[0] != "1" && row[0] != "25";
    let expected = times(&rows, is_request, |row| row[1] == port);
    assert!(expected.len() >= 400, "{}", expected.len());
    assert_same_times(&server(&file, mariadb.port), expected);
}

#[test]
fn postgres() {
    let postgres = postgres::Server::start(Arm::Kernel, &[]);
    let script = postgres.folder().join("script.sql");
    std::fs::write(
        &script,
        "SELECT repeat('x', 300), generate_series(1, 400);\n",
    )
    .expect("a file");
    let script = script.to_str().expect("a path of text");
    let tcpdump = Tcpdump::start(postgres.port);
    let words = ["-n", "-c", "4", "-t", "50", "-f", script, "postgres"];
    postgres.must("pgbench", Arm::Kernel, &words);
    let file = tcpdump.finish_file();
    let names = ["frame.time_epoch", "tcp.stream", "pgsql.type"];
    let rows = fields(&file, "pgsql", postgres.port, "pgsql", &names);
    let is_request = |row: &[String]| row[0].contains("Simple query");
    let expected = times(&rows, is_request, |row| row[0].contains("Ready for query"));
    assert_eq!(expected.len(), 200);
    assert_same_times(&server(&file, postgres.port), expected);
}
