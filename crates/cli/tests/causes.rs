//! Each cause that ends a channel on a real connection is counted and named by `saiga status`.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::process::Command;

use saiga_trials::{
    compile,
    parity::Arm,
    peer::Peer,
    port,
    witness::{self, await_some, await_true},
};
use serde_json::{Value, json};

mod support;
use support::{Installation, program, said};

/// Round trips between two checks whether the connection is upgraded.
const STEP: u32 = 30;

/// Two accelerated processes of `programs/tools/causes.c` that are connected.
struct Pair {
    server: End,
    client: End,
}

struct End {
    peer: Peer,
    fd: u64,
}

impl End {
    /// Sends a command without waiting for its answer.
    fn begin(&mut self, command: &str) {
        self.peer.tell(command);
    }

    fn answer(&mut self) -> String {
        self.peer.line().expect("an answer")
    }

    fn does(&mut self, command: &str) {
        self.begin(command);
        assert_eq!(self.answer(), "ok", "{command}");
    }
}

impl Pair {
    /// A connection before its first byte.
    fn new() -> Self {
        let tool = || compile::tool("causes");
        let mut server = Peer::start(tool(), &["listen"], Arm::Library);
        let port = server.expect("port");
        let mut client = Peer::start(tool(), &["connect", &port], Arm::Library);
        let fd = |peer: &mut Peer| peer.expect("fd").parse().unwrap();
        let (of_server, of_client) = (fd(&mut server), fd(&mut client));
        let end = |peer, fd| End { peer, fd };
        Self {
            server: end(server, of_server),
            client: end(client, of_client),
        }
    }

    /// A connection that uses its channel in both directions.
    fn upgraded(saiga: &Installation) -> Self {
        let mut pair = Self::new();
        await_true(
            || {
                pair.round(STEP);
                let shown = |end: &End| row(&status(saiga, end), end.fd)["state"].clone();
                let both = [&pair.server, &pair.client].map(shown);
                both == ["upgraded", "upgraded"]
            },
            || "the connection stays on TCP".to_owned(),
        );
        pair
    }

    fn round(&mut self, count: u32) {
        let command = format!("round {count}");
        self.server.begin(&command);
        self.client.does(&command);
        assert_eq!(self.server.answer(), "ok");
    }
}

fn status(saiga: &Installation, end: &End) -> Value {
    let out = said(&mut saiga.saiga(&["status", "--json", &end.peer.pid().to_string()]));
    assert_eq!(out.code, Some(0), "{out:?}");
    serde_json::from_str(&out.stdout).unwrap()
}

fn row(status: &Value, fd: u64) -> &Value {
    let sockets = status["sockets"].as_array().unwrap();
    let found = sockets.iter().find(|socket| socket["fd"] == fd);
    found.unwrap_or_else(|| panic!("no descriptor {fd}: {status}"))
}

/// The counts of a list of `status`, by reason.
fn counts(status: &Value, list: &str) -> Value {
    let rows = status[list].as_array().unwrap().iter();
    rows.map(|row| (row["reason"].as_str().unwrap(), row["count"].clone()))
        .collect()
}

/// The state of one end's connection, and its counters.
#[derive(Debug, PartialEq)]
struct Shown {
    state: Value,
    reason: Value,
    downgrades: Value,
    taken_back: Value,
    resets: Value,
    reset_for: Value,
}

impl Shown {
    fn of(saiga: &Installation, end: &End) -> Self {
        let status = status(saiga, end);
        let row = row(&status, end.fd);
        Self {
            state: row["state"].clone(),
            reason: row["reason"].clone(),
            downgrades: status["downgrades"].clone(),
            taken_back: counts(&status, "taken_back"),
            resets: status["resets"].clone(),
            reset_for: counts(&status, "reset_for"),
        }
    }

    fn taken_back(state: &str, reason: &str) -> Self {
        Self {
            state: json!(state),
            reason: json!(reason),
            downgrades: json!(1),
            taken_back: json!({ reason: 1 }),
            resets: json!(0),
            reset_for: json!({}),
        }
    }

    fn reset(reason: &str) -> Self {
        Self {
            state: json!("reset"),
            reason: json!(reason),
            downgrades: json!(0),
            taken_back: json!({}),
            resets: json!(1),
            reset_for: json!({ reason: 1 }),
        }
    }
}

#[test]
fn causes_of_downgrades_are_counted_and_named() {
    let saiga = Installation::bare();
    for (cause, reason) in [
        ("MSG_OOB", "out-of-band"),
        ("fdopen", "stdio"),
        ("dprintf", "stdio"),
        ("dup2", "stdio"),
        ("SCM_RIGHTS", "scm-rights"),
        ("seccomp", "sandbox"),
        ("execve", "exec"),
        ("posix_spawn", "exec"),
        ("adddup2", "exec"),
        ("SO_ZEROCOPY", "socket-option"),
        ("SO_OOBINLINE", "socket-option"),
        ("SO_TIMESTAMPING", "socket-option"),
        ("SO_RCVLOWAT", "socket-option"),
        ("TCP_ULP", "unsupported-call"),
        ("O_ASYNC", "socket-option"),
        ("FIOASYNC", "socket-option"),
        ("epoll", "epoll-unknown"),
        ("io_uring", "io-uring"),
    ] {
        let mut pair = Pair::upgraded(&saiga);
        pair.client.does(cause);
        let shown = Shown::of(&saiga, &pair.client);
        assert_eq!(shown, Shown::taken_back("downgraded", reason), "{cause}");
        let text = said(&mut saiga.saiga(&["status", &pair.client.peer.pid().to_string()]));
        assert!(text.stdout.contains("downgraded 1 times: "), "{text:?}");
        if !["MSG_OOB", "dprintf"].contains(&cause) {
            pair.round(STEP); // The application loses no byte.
            let shown = Shown::of(&saiga, &pair.client);
            assert_eq!(shown, Shown::taken_back("downgraded", reason), "{cause}");
            // The other end may have requested a channel again, without success.
            let server = status(&saiga, &pair.server);
            let taken_back = counts(&server, "taken_back");
            assert_eq!(taken_back, json!({ "peer-asked": 1 }), "{cause}");
            assert_eq!(row(&server, pair.server.fd)["state"], "tcp", "{cause}");
        }
    }
}

/// The peer sends the unread bytes again over TCP.
#[test]
fn exec_with_unread_bytes_downgrades_the_connection() {
    let saiga = Installation::bare();
    let mut pair = Pair::upgraded(&saiga);
    pair.server.does("send 1000");
    pair.client.does("execve");
    let shown = Shown::of(&saiga, &pair.client);
    assert_eq!(shown, Shown::taken_back("downgraded", "exec"));
    pair.server.does("send 1000");
    pair.client.does("receive 2000");
    pair.round(STEP);
}

/// After its FIN the peer cannot send bytes again: the stream would have a gap.
#[test]
fn exec_with_unread_bytes_before_a_fin_resets_the_connection() {
    let saiga = Installation::bare();
    let mut pair = Pair::upgraded(&saiga);
    pair.server.does("send 1000");
    pair.server.does("finish");
    pair.client.does("execve");
    assert_eq!(Shown::of(&saiga, &pair.client), Shown::reset("exec"));
    let text = said(&mut saiga.saiga(&["status", &pair.client.peer.pid().to_string()]));
    let expected = "reset 1 times: process replaced itself by exec with the descriptor open";
    assert!(text.stdout.contains(expected), "{text:?}");
}

#[test]
fn a_peer_that_is_killed_with_unread_bytes_resets_the_connection() {
    let saiga = Installation::bare();
    let Pair { server, mut client } = Pair::upgraded(&saiga);
    client.does("send 1000");
    server.peer.kill();
    client.begin("end");
    assert_eq!(client.answer(), "ECONNRESET");
    assert_eq!(Shown::of(&saiga, &client), Shown::reset("peer-gone"));
}

#[test]
fn bytes_beside_a_channel_reset_the_connection() {
    let saiga = Installation::bare();
    let mut pair = Pair::upgraded(&saiga);
    pair.server.does("outside");
    pair.client.begin("end");
    assert_eq!(pair.client.answer(), "ECONNRESET");
    let shown = Shown::of(&saiga, &pair.client);
    assert_eq!(shown, Shown::reset("moved-outside"));
}

/// Bytes on TCP that the peer has not read when the ring ends are out of order.
#[test]
fn bytes_that_overtook_a_ring_reset_the_connection() {
    let saiga = Installation::bare();
    let mut pair = Pair::upgraded(&saiga);
    pair.client.does("send 1000");
    pair.client.does("outside");
    pair.client.does("O_ASYNC");
    let shown = Shown::of(&saiga, &pair.client);
    assert_eq!(shown, Shown::reset("moved-outside"));
}

/// Without a reader the ring must grow, and no memory is left.
#[test]
fn a_ring_without_memory_downgrades_the_connection() {
    let saiga = Installation::bare();
    let mut pair = Pair::upgraded(&saiga);
    pair.client.does("memory");
    pair.client.does("send 20000");
    pair.server.does("receive 20000");
    let reason = await_some(
        || {
            pair.round(1);
            let taken_back = counts(&status(&saiga, &pair.client), "taken_back");
            (taken_back != json!({})).then_some(taken_back)
        },
        || "the connection stays where it is".to_owned(),
    );
    assert_eq!(reason, json!({ "no-memory": 1 }));
}

#[test]
fn a_call_that_no_channel_can_serve_keeps_a_connection_on_tcp() {
    let saiga = Installation::bare();
    let mut pair = Pair::new();
    pair.client.does("recvmmsg");
    pair.round(STEP);
    let status = status(&saiga, &pair.client);
    let row = row(&status, pair.client.fd);
    assert_eq!(row["state"], "never");
    assert_eq!(row["reason"], "unsupported-call");
    assert_eq!(
        counts(&status, "not_upgraded"),
        json!({ "unsupported-call": 1 })
    );
    assert_eq!(status["upgrades"], 0);
}

/// A ring made with `syscall(2)`, as by libuv 1.52 in Node.js 24: `status` names the setting to
/// change.
#[test]
fn a_ring_that_cannot_be_seen_keeps_all_connections_on_tcp() {
    let saiga = Installation::bare();
    let mut pair = Pair::new();
    pair.client.does("io_uring");
    pair.round(STEP);
    pair.round(STEP);
    let seen = status(&saiga, &pair.client);
    let row = row(&seen, pair.client.fd);
    assert_eq!(
        (&row["state"], &row["reason"]),
        (&json!("never"), &json!("io-uring"))
    );
    assert_eq!(seen["upgrades"], 0);
    let text = said(&mut saiga.saiga(&["status", &pair.client.peer.pid().to_string()]));
    assert!(text.stdout.contains("UV_USE_IO_URING=0"), "{text:?}");
}

/// The application closes descriptors of the library: doorbells still work, and the loss is
/// counted.
#[test]
fn lost_descriptors_of_the_library_are_replaced_and_counted() {
    let saiga = Installation::bare();
    let mut pair = Pair::upgraded(&saiga);
    pair.client.does("lost");
    let seen = await_some(
        || {
            pair.server.begin("receive 1"); // Usually asleep when the byte arrives.
            pair.client.does("send 1");
            assert_eq!(pair.server.answer(), "ok");
            let seen = status(&saiga, &pair.client);
            let lost = counts(&seen, "not_upgraded")["descriptor-lost"].as_u64();
            lost.map(|_| seen)
        },
        || "no bell was rung".to_owned(),
    );
    assert_eq!(row(&seen, pair.client.fd)["state"], "upgraded");
    assert_eq!(witness::upgrades_of(pair.server.peer.pid()), 1);
}

/// The addresses come from a table that is read once for all processes of a network namespace.
#[test]
fn processes_of_several_networks_are_listed_with_their_addresses() {
    let saiga = Installation::with_real_library();
    let listener = |arguments: &[&str]| {
        let mut command = Command::new("unshare");
        let words = [
            "run",
            "--require",
            "--",
            "redis-server",
            "--save",
            "",
            "--port",
        ];
        let inner = saiga.saiga(&[&words[..], &arguments[1..]].concat());
        command
            .args(&arguments[..1])
            .arg(inner.get_program())
            .args(inner.get_args());
        program::start(&mut command, "Ready to accept connections")
    };
    let (first, second) = (port::free(), port::free());
    let servers = [("--uts", first), ("--net", first), ("--uts", second)].map(|(kind, port)| {
        let server = listener(&[kind, &port.to_string()]);
        (server, format!("0.0.0.0:{port}"))
    });
    let out = said(&mut saiga.saiga(&["status", "--json"]));
    let list: Value = serde_json::from_str(&out.stdout).unwrap();
    for (server, address) in &servers {
        let processes = list.as_array().unwrap().iter();
        let mut found = processes.filter(|it| it["pid"] == server.pid());
        let sockets = found.next().unwrap()["sockets"].as_array().unwrap();
        let mut local = sockets.iter().filter(|it| it["state"] == "listening");
        assert!(
            local.any(|it| it["local"] == **address),
            "{address}: {list}"
        );
    }
}
