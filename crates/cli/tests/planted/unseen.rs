//! Faults planted without a look at the rules.
//!
//! Each script is the plainest form of a fault that administrators report. The rest of the load is
//! light: apart from the fault, nothing uses more than half a CPU.

use super::{alone, assert_first, shown};
use crate::support::{Installation, said};

use saiga_trials::mariadb::{Kind, Server, Session};
use saiga_trials::parity::Arm;
use saiga_trials::postgres;
use serde_json::Value;

/// `client PROGRAM` starts a Python program and waits until it prints a line, which it does once
/// its load is on. Words before the program are a prefix of the command. `redis` and `sql` are
/// modules that such a program can import: clients that send each request in one segment.
const CLIENT: &str = r#"
    client() {
        PYTHONPATH=$DIR "${@:1:$#-1}" python3 -uc "${@:$#}" >"$DIR/said" &
        client=$!
        until [ -s "$DIR/said" ]; do kill -0 $client; sleep 0.05; done
        rm "$DIR/said"
    }
    cat >"$DIR/redis.py" <<'END'
import socket

class Session:
    def __init__(self, host="127.0.0.1", port=6379):
        self.socket = socket.create_connection((host, port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.answers = self.socket.makefile("rb")

    def set(self, key, value):
        self.socket.sendall(b"*3\r\n$3\r\nSET\r\n$%d\r\n%s\r\n$%d\r\n%s\r\n"
                            % (len(key), key, len(value), value))
        assert self.answers.readline() == b"+OK\r\n"

    def get(self, key):
        self.socket.sendall(b"*2\r\n$3\r\nGET\r\n$%d\r\n%s\r\n" % (len(key), key))
        size = int(self.answers.readline()[1:])
        return self.answers.read(size + 2)[:-2]
END
    cat >"$DIR/sql.py" <<'END'
import socket, ssl, struct

context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
context.check_hostname = False
context.verify_mode = ssl.CERT_NONE

class Session:
    """A session of root without a password, as MySQL's protocol 4.1 describes it."""

    def __init__(self, source="127.0.0.1", tls=False):
        self.socket = socket.create_connection(("127.0.0.1", 3306), source_address=(source, 0))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.receive()
        capabilities = 0xA201 | (0x800 if tls else 0)
        head = struct.pack("<IIB23x", capabilities, 1 << 24, 33)
        if tls:
            self.send(1, head)
            self.socket = context.wrap_socket(self.socket)
        self.send(2 if tls else 1, head + b"root\0\0")
        self.expect_ok()

    def do(self, statement):
        self.send(0, b"\x03" + statement.encode())
        self.expect_ok()

    def close(self):
        self.send(0, b"\x01")
        self.socket.close()

    def send(self, number, payload):
        self.socket.sendall(struct.pack("<I", len(payload) | number << 24) + payload)

    def expect_ok(self):
        packet = self.receive()
        assert packet[0] == 0, packet

    def receive(self):
        return self.read(int.from_bytes(self.read(4)[:3], "little"))

    def read(self, size):
        data = b""
        while len(data) < size:
            more = self.socket.recv(size - len(data))
            assert more, "the server has closed the connection"
            data += more
        return data
END
"#;

/// `mariadb_server OPTION...` starts a private MariaDB on port 3306 with an empty database `trial`.
/// `statement SQL` executes statements there.
const MARIADB: &str = r#"
    statement() { mariadb --no-defaults -uroot -S "$DIR/socket" -e "$1"; }
    mariadb_server() {
        mariadb-install-db --no-defaults --user=root --datadir="$DIR/data" --skip-test-db \
            --auth-root-authentication-method=normal --innodb-log-file-size=16M >/dev/null
        mariadbd --no-defaults --user=root --datadir="$DIR/data" --tmpdir="$DIR" \
            --socket="$DIR/socket" --pid-file="$DIR/pid" --innodb-log-file-size=16M \
            --innodb-flush-log-at-trx-commit=2 --innodb-doublewrite=0 "$@" 2>"$DIR/log" &
        server=$!
        until statement "create database trial" 2>/dev/null; do kill -0 $server; sleep 0.1; done
    }
"#;

/// Two network namespaces, this one and that of process `other`, with the addresses 10.0.0.1 and
/// 10.0.0.2. A program carries each packet between their TUN devices, or drops it with the
/// probability $LOSS. The choice of the packets comes from a seed.
const LOSSY: &str = r#"
    unshare -n sleep infinity &
    other=$!
    until [ "$(readlink /proc/$other/ns/net)" != "$(readlink /proc/self/ns/net)" ]; do
        kill -0 $other
    done
    client '
import fcntl, os, random, select, struct

def device(name):
    tun = os.open("/dev/net/tun", os.O_RDWR)
    IFF_TUN, IFF_NO_PI, TUNSETIFF = 0x0001, 0x1000, 0x400454CA
    fcntl.ioctl(tun, TUNSETIFF, struct.pack("16sH22x", name, IFF_TUN | IFF_NO_PI))
    return tun

near, far = device(b"near"), device(b"far")
target = {near: far, far: near}
chance = random.Random(7)
print("ready")
while True:
    for tun in select.select([near, far], [], [])[0]:
        packet = os.read(tun, 65536)
        try:
            if chance.random() >= float(os.environ["LOSS"]):
                os.write(target[tun], packet)
        except OSError:
            pass  # The target is not up yet.
'
    ip link set far netns $other
    ip addr add 10.0.0.1 peer 10.0.0.2 dev near
    ip link set near up
    nsenter -n -t $other ip addr add 10.0.0.2 peer 10.0.0.1 dev far
    nsenter -n -t $other ip link set far up
    serve
    redis-cli config set protected-mode no >/dev/null
    client nsenter -n -t $other '
import threading, time
from redis import Session

def read(session):
    while True:
        session.get(b"key")
        time.sleep(0.01)

sessions = [Session("10.0.0.1") for _ in range(8)]
sessions[0].set(b"key", b"x" * 8000)
for session in sessions:
    threading.Thread(target=read, args=(session,)).start()
print("ready")
'
    diagnose --port 6379 || true
"#;

/// A pool of four connections in one client, for 32 workers. The statements need no CPU.
#[test]
fn a_pool_of_four_connections() {
    let script = r#"
        mariadb_server --skip-name-resolve
        client '
import queue, threading
from sql import Session

def work():
    while True:
        session = pool.get()
        session.do("do sleep(0.02)")
        pool.put(session)

pool = queue.Queue()
for _ in range(4):
    pool.put(Session())
for _ in range(32):
    threading.Thread(target=work).start()
print("ready")
'
        diagnose --engine mariadb --port 3306 || true
    "#;
    assert_first(&[CLIENT, MARIADB, script].concat(), "pool", "");
}

/// Nagle's algorithm holds the second half of each command until the first one is acknowledged.
#[test]
fn commands_in_two_segments_without_nodelay() {
    let script = r#"
        serve
        client '
import socket, threading

def work(session):
    while True:
        session.send(b"*1\r\n$4\r\n")
        session.send(b"PING\r\n")
        session.recv(100)

for _ in range(8):
    session = socket.create_connection(("127.0.0.1", 6379))
    threading.Thread(target=work, args=(session,)).start()
print("ready")
'
        diagnose --port 6379 || true
    "#;
    assert_first(&[CLIENT, script].concat(), "delayed-acknowledgement", "");
}

/// A proxy with one thread that takes three milliseconds for each request, recorded on both of its
/// sides with one client, then with twenty.
#[test]
fn a_slow_proxy_between_clients_and_server() {
    let script = r#"
        serve
        client '
import selectors, socket, time

selector = selectors.DefaultSelector()
listener = socket.create_server(("127.0.0.1", 7000))
selector.register(listener, selectors.EVENT_READ)
servers, clients = {}, {}
print("ready")
while True:
    for key, _ in selector.select():
        source = key.fileobj
        if source is listener:
            client = listener.accept()[0]
            server = socket.create_connection(("127.0.0.1", 6379))
            servers[client], clients[server] = server, client
            for connection in (client, server):
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                selector.register(connection, selectors.EVENT_READ)
            continue
        if source.fileno() < 0:
            continue  # Closed with the other side of it.
        target = servers.get(source) or clients[source]
        try:
            data = source.recv(65536)
            if source in servers:
                time.sleep(0.003)
            target.sendall(data)
        except OSError:
            data = b""
        if not data:
            for connection in (source, target):
                selector.unregister(connection)
                connection.close()
'
        record() {
            tcpdump -Z root -i lo -w "$DIR/$1.pcap" -s 384 --immediate-mode "port $2" 2>"$DIR/$1" &
            until grep -qs "listening on" "$DIR/$1"; do kill -0 $!; done
        }
        record front 7000 && front=$!
        record back 6379 && back=$!
        for clients in 1 20; do
            timeout 4 redis-benchmark -p 7000 -l -t get -c $clients -q >/dev/null 2>&1 || true
        done
        kill -INT $front $back
        wait $front $back
        "$SAIGA" diagnose --json --hop client="$DIR/front.pcap" \
            --hop client/server="$DIR/back.pcap" || true
    "#;
    assert_first(&[CLIENT, script].concat(), "hops", "client up to server");
}

#[test]
fn a_network_that_loses_one_packet_in_a_hundred() {
    let script = [CLIENT, "export LOSS=0.01", LOSSY].concat();
    assert_first(&script, "retransmission", "");
}

#[test]
fn a_network_that_loses_five_packets_in_a_hundred() {
    let script = [CLIENT, "export LOSS=0.05", LOSSY].concat();
    assert_first(&script, "retransmission", "");
}

/// One transaction of MariaDB keeps a row locked and does nothing; eight sessions wait for the row.
#[test]
fn a_row_locked_by_one_transaction_of_mariadb() {
    let _turn = alone();
    let server = Server::start(
        Kind::MariaDb,
        Arm::Kernel,
        &["--innodb-lock-wait-timeout=600"],
    );
    let table = "create table trial.locked (id int primary key, n int) engine = innodb; \
                 insert into trial.locked values (1, 0);";
    server.must(Arm::Kernel, table);
    let update = "update trial.locked set n = n + 1 where id = 1";
    let mut owner = server.session(Arm::Kernel);
    owner.ask("begin");
    owner.ask(update);
    let mut waiting: Vec<Session> = (0..8).map(|_| server.session(Arm::Kernel)).collect();
    for session in &mut waiting {
        session.send(update);
    }
    assert_first_of("mariadb", server.port, "row-locks");
}

/// The same in PostgreSQL.
#[test]
fn a_row_locked_by_one_transaction_of_postgres() {
    let _turn = alone();
    let server = postgres::Server::start(Arm::Kernel, &[]);
    server.query("create table locked (id int primary key, n int)");
    server.query("insert into locked values (1, 0)");
    let update = "update locked set n = n + 1 where id = 1;";
    let mut owner = server.client(Arm::Kernel);
    owner.ask("begin;");
    owner.ask(update);
    let mut waiting: Vec<_> = (0..8).map(|_| server.client(Arm::Kernel)).collect();
    for client in &mut waiting {
        client.send(update);
    }
    assert_first_of("postgres", server.port, "row-locks");
}

/// Diagnoses the server on this host at `port`, whose first finding must be from `rule`.
#[track_caller]
fn assert_first_of(engine: &str, port: u16, rule: &str) {
    let saiga = Installation::bare();
    let port = port.to_string();
    let words = [
        "diagnose", "--engine", engine, "--port", &port, "--for=6s", "--json",
    ];
    let said = said(&mut saiga.saiga(&words));
    let verdict = serde_json::from_str(&said.stdout);
    let verdict: Value = shown(verdict.unwrap_or_else(|error| panic!("{error}: {said:?}")));
    assert_eq!(verdict["findings"][0]["rule"], rule, "{verdict:#}");
}

/// A table of about 100 MB, of which 8 MB fit into memory, read at random by its primary key.
#[test]
fn a_buffer_pool_of_eight_megabytes() {
    let script = r#"
        mariadb_server --skip-name-resolve --innodb-buffer-pool-size=8M
        statement "
            use trial;
            create table pages (id int primary key, text char(250)) engine = innodb;
            insert into pages select seq, repeat('x', 250) from seq_1_to_360000;"
        client '
import random, threading
from sql import Session

def work(seed):
    session, chance = Session(), random.Random(seed)
    while True:
        rows = ",".join(str(chance.randrange(360000) + 1) for _ in range(50))
        session.do(f"do (select sum(length(text)) from trial.pages where id in ({rows}))")

for seed in range(2):
    threading.Thread(target=work, args=(seed,)).start()
print("ready")
'
        diagnose --engine mariadb --port 3306 || true
    "#;
    assert_first(&[CLIENT, MARIADB, script].concat(), "buffer-pool", "");
}

/// The replica is stopped while its master is written to at 2.5 MB per second.
#[test]
fn a_replica_that_has_stopped() {
    let script = r#"
        serve
        redis-cli config set repl-diskless-sync-delay 0 >/dev/null
        redis-server --port 6380 --save "" --dir "$DIR" --replicaof 127.0.0.1 6379 >/dev/null &
        replica=$!
        trap 'kill $(jobs -p) 2>/dev/null; kill -CONT $replica; wait' EXIT
        until redis-cli -p 6380 info replication 2>/dev/null | grep -q link_status:up; do
            kill -0 $replica
            sleep 0.1
        done
        kill -STOP $replica
        client '
import time
from redis import Session

session = Session()
print("ready")
for number in range(1000000):
    session.set(b"key:%d" % (number % 1000), b"x" * 10000)
    time.sleep(0.004)
'
        diagnose --engine redis --port 6379 || true
    "#;
    assert_first(&[CLIENT, script].concat(), "replica-lag", "");
}

/// MariaDB asks a DNS server for the name of each client, and gets an answer after 20 ms: there is
/// no such name. Each statement has a connection of its own, from an address of its own.
#[test]
fn a_name_lookup_for_each_connection() {
    let script = r#"
        echo "nameserver 127.0.0.1" >"$DIR/resolv.conf"
        mount --bind "$DIR/resolv.conf" /etc/resolv.conf
        client '
import socket, threading, time

def answer(query, client):
    time.sleep(0.02)
    server.sendto(query[:2] + b"\x81\x83" + query[4:], client)  # NXDOMAIN

server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
server.bind(("127.0.0.1", 53))
print("ready")
while True:
    threading.Thread(target=answer, args=server.recvfrom(512)).start()
'
        mariadb_server
        statement "create user root@'127.%'"
        client '
import threading
from sql import Session

def work(number):
    while True:
        for host in range(65536):
            session = Session(source=f"127.{number}.{host >> 8}.{host & 255}")
            session.do("do 1")
            session.close()

for number in range(1, 5):
    threading.Thread(target=work, args=(number,)).start()
print("ready")
'
        diagnose --engine mariadb --port 3306 || true
    "#;
    assert_first(&[CLIENT, MARIADB, script].concat(), "name-lookups", "");
}

/// Each statement has a connection of its own, with a TLS handshake. Two clients make about 30 of
/// them per second.
#[test]
fn a_tls_handshake_for_each_statement() {
    let script = r#"
        openssl req -x509 -newkey rsa:2048 -nodes -subj /CN=trial -days 1 \
            -keyout "$DIR/key.pem" -out "$DIR/certificate.pem" 2>/dev/null
        mariadb_server --skip-name-resolve --ssl-cert="$DIR/certificate.pem" \
            --ssl-key="$DIR/key.pem"
        client '
import threading, time
from sql import Session

def work():
    while True:
        session = Session(tls=True)
        session.do("do 1")
        session.close()
        time.sleep(0.06)

for _ in range(2):
    threading.Thread(target=work).start()
print("ready")
'
        diagnose --engine mariadb --port 3306 || true
    "#;
    assert_first(&[CLIENT, MARIADB, script].concat(), "tls-handshakes", "");
}

/// The append-only file is on a file system of 64 MiB and grows by 0.4 MB per second.
#[test]
fn an_append_only_file_that_fills_its_disk() {
    let script = r#"
        mkdir "$DIR/data"
        mount -t tmpfs -o size=64m tmpfs "$DIR/data"
        DIR=$DIR/data serve
        redis-cli config set appendonly yes >/dev/null
        client '
import time
from redis import Session

session = Session()
print("ready")
for number in range(1000000):
    session.set(b"key:%d" % (number % 100), b"x" * 4000)
    time.sleep(0.01)
'
        diagnose --engine redis --port 6379 || true
    "#;
    assert_first(&[CLIENT, script].concat(), "disk-space", "");
}
