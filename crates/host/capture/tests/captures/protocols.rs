//! Requests and responses of each protocol, whole and in pieces.

use saiga_capture::{Kind, Options, Protocol, Server, read};

use crate::{
    only_server, sole,
    wire::{Connection, STEP_NS, Side, Wire},
};

const CLIENT: &str = "10.0.0.1:40000";
/// A port that hints at no protocol.
const SERVER: &str = "10.0.0.2:7000";

/// One step of a conversation.
pub(crate) type Step<'a> = (Side, &'a [u8]);

pub(crate) fn play(steps: &[Step<'_>]) -> Wire {
    let mut wire = Wire::new();
    let mut connection = wire.open(CLIENT, SERVER);
    steps
        .iter()
        .for_each(|(side, bytes)| wire.send(&mut connection, *side, bytes));
    wire.close(&mut connection, Side::Client);
    wire
}

pub(crate) fn answered(server: &Server, kind: Kind) -> u64 {
    server
        .requests
        .kinds
        .get(&kind)
        .map_or(0, |kinds| kinds.answered)
}

/// The same bytes, one segment for each byte.
fn in_bytes(steps: &[Step<'_>]) -> Wire {
    let single = steps
        .iter()
        .flat_map(|(side, bytes)| bytes.chunks(1).map(|byte| (*side, byte)));
    // Detection wants the first bytes at once, as every client sends them.
    let whole = steps.iter().take_while(|(side, _)| *side == steps[0].0);
    let greeting: Vec<_> = whole.copied().collect();
    let skipped: usize = greeting.iter().map(|(_, bytes)| bytes.len()).sum();
    let rest: Vec<_> = single.skip(skipped).collect();
    play(&[greeting, rest].concat())
}

/// Both forms of a conversation have these requests, answered and not, and the parser kept up.
fn assert_requests(name: &str, steps: &[Step<'_>], protocol: Protocol, expected: u64) -> Server {
    for wire in [in_bytes(steps), play(steps)] {
        let server = only_server(&wire);
        assert_eq!(
            server.protocols.keys().collect::<Vec<_>>(),
            [&protocol],
            "{name}"
        );
        assert_eq!(server.parsing.lost, 0, "{name}: {:?}", server.parsing);
        assert_eq!(
            server.requests.answered, expected,
            "{name}: {:?}",
            server.requests.kinds
        );
        assert_eq!(server.requests.unanswered, 0, "{name}");
    }
    only_server(&play(steps))
}

use Side::{Client, Server as Host};

#[test]
fn resp_counts_pipelined_commands_and_nested_replies() {
    let server = assert_requests(
        "RESP",
        &[
            (
                Client,
                b"*1\r\n$4\r\nPING\r\n*2\r\n$3\r\nGET\r\n$1\r\nk\r\n",
            ),
            (Host, b"+PONG\r\n$3\r\na\r\n\r\n"),
            (
                Client,
                b"*3\r\n$3\r\nset\r\n$1\r\nk\r\n$5\r\n*1\r\n$\r\nPING\r\n",
            ),
            (Host, b">2\r\n+invalidate\r\n*1\r\n$1\r\nk\r\n+OK\r\n"),
            (Host, b"+PONG\r\n"),
            (
                Client,
                b"*1\r\n$4\r\nEXEC\r\n*1\r\n$4\r\nEXEC\r\n*1\r\n$5\r\nHELLO\r\n",
            ),
            (Host, b"*2\r\n*2\r\n:1\r\n*0\r\n$-1\r\n*-1\r\n"),
            (
                Host,
                b"|1\r\n+ttl\r\n:5\r\n%2\r\n+a\r\n#t\r\n+b\r\n,1.5\r\n",
            ),
        ],
        Protocol::Resp,
        7,
    );
    assert_eq!(
        (answered(&server, Kind::Ping), answered(&server, Kind::Read)),
        (2, 1)
    );
    assert_eq!(answered(&server, Kind::Write), 1);
}

#[test]
fn first_and_last_byte_of_a_response() {
    let server = only_server(&play(&[
        (Client, b"*1\r\n$4\r\nKEYS\r\n"),
        (Host, b"*2\r\n$1\r\na\r\n"),
        (Host, b"$1\r\nb"),
        (Host, b"\r\n"),
    ]));
    let near = |ns: u64, expected: u64| ns.abs_diff(expected) <= expected / 50;
    assert!(near(server.requests.first_byte_ns.max(), STEP_NS));
    assert!(near(server.requests.last_byte_ns.max(), 3 * STEP_NS));
    assert_eq!(server.requests.total.as_nanos(), u128::from(3 * STEP_NS));
}

fn packet(sequence: u8, body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(body.len()).expect("a packet").to_le_bytes();
    [&length[..3], &[sequence], body].concat()
}

pub(crate) fn packets(bodies: &[&[u8]]) -> Vec<u8> {
    (1..)
        .zip(bodies)
        .flat_map(|(sequence, body)| packet(sequence, body))
        .collect()
}

const GREETING: &[u8] = b"\n8.0.36\0\x01\0\0\0abcdefgh\0";
pub(crate) const OK: &[u8] = &[0, 1, 0, 2, 0, 0, 0];
pub(crate) const COLUMN: &[u8] = b"\x03def\0\0\0\x01c";

/// A login, and then commands with their responses.
pub(crate) fn mysql(capabilities: u32, exchanges: &[(&[u8], Vec<u8>)]) -> Vec<(Side, Vec<u8>)> {
    let login = [&capabilities.to_le_bytes()[..], &[0; 28], b"root\0"].concat();
    let mut steps = vec![
        (Host, packet(0, GREETING)),
        (Client, packet(1, &login)),
        (Host, packet(2, b"\xfecaching_sha2_password\0")),
        (Client, packet(3, b"secret")),
        (Host, packet(4, OK)),
    ];
    for (command, response) in exchanges {
        steps.push((Client, packet(0, command)));
        steps.push((Host, response.clone()));
    }
    steps
}

pub(crate) fn borrowed(steps: &[(Side, Vec<u8>)]) -> Vec<Step<'_>> {
    steps
        .iter()
        .map(|(side, bytes)| (*side, &bytes[..]))
        .collect()
}

#[test]
fn mysql_responses_end_where_the_protocol_says() {
    const DEPRECATE_EOF: u32 = 1 << 24;
    const EOF: &[u8] = &[0xfe, 0, 0, 2, 0];
    const MORE: &[u8] = &[0xfe, 0, 0, 10, 0];
    const CURSOR: &[u8] = &[0xfe, 0, 0, 0x40, 0];
    const END: &[u8] = &[0xfe, 0, 0, 2, 0, 0, 0];
    const END_MORE: &[u8] = &[0xfe, 0, 0, 10, 0, 0, 0];
    const ERROR: &[u8] = b"\xff\x48\x04#42000no";
    let prepared = |columns: u8, parameters: u8| {
        [&[0, 1, 0, 0, 0, columns, 0, parameters, 0, 0, 0, 0][..]].concat()
    };
    let old: &[(&[u8], Vec<u8>)] = &[
        (
            b"\x03SELECT 1",
            packets(&[&[1], COLUMN, EOF, b"\x011", b"\xfbx", EOF]),
        ),
        (b"\x03 /* hint */ update t", packets(&[OK])),
        (b"\x03DELETE nonsense", packets(&[ERROR])),
        (
            b"\x03CALL two_results()",
            packets(&[&[1], COLUMN, EOF, b"\x011", MORE, OK]),
        ),
        (
            b"\x16SELECT ?",
            packets(&[&prepared(1, 1), COLUMN, EOF, COLUMN, EOF]),
        ),
        (b"\x16COMMIT", packets(&[&prepared(0, 0)])),
        (b"\x17\x01\0\0\0", packets(&[&[2], COLUMN, COLUMN, CURSOR])),
        (b"\x1c\x01\0\0\0", packets(&[b"\0\0row", b"\0\0row", EOF])),
        (b"\x0e", packets(&[OK])),
        (b"\x09", packets(&[b"Uptime: 5"])),
        (b"\x04t\0", packets(&[COLUMN, COLUMN, EOF])),
        (
            b"\x03SELECT error FROM rows",
            packets(&[&[1], COLUMN, EOF, b"\x011", ERROR]),
        ),
    ];
    let new: &[(&[u8], Vec<u8>)] = &[
        (
            b"\x03SELECT 1",
            packets(&[&[1], COLUMN, b"\x011", b"\x012", END]),
        ),
        (b"\x03SELECT nothing", packets(&[&[1], COLUMN, END])),
        (b"\x03CALL p()", packets(&[&[1], COLUMN, END_MORE, OK])),
        (
            b"\x16SELECT ?",
            packets(&[&prepared(2, 1), COLUMN, COLUMN, COLUMN]),
        ),
        // MariaDB: the client knows the columns already.
        (b"\x17\x01\0\0\0", packets(&[&[2, 0], b"\0\0row", END])),
        (b"\x1f", packets(&[OK])),
    ];
    for (name, capabilities, exchanges) in [("EOF", 0, old), ("OK", DEPRECATE_EOF, new)] {
        let steps = mysql(capabilities, exchanges);
        let count = exchanges.len() as u64;
        let server = assert_requests(name, &borrowed(&steps), Protocol::MySql, count);
        assert_eq!(
            answered(&server, Kind::Prepare),
            if name == "EOF" { 2 } else { 1 }
        );
        assert_eq!(server.parsing.unrequested, 0, "{name}");
        // Without the login the rules are found out from the packets.
        let server = only_server(&existing(&steps[5..]));
        assert_eq!(server.requests.answered, count, "{name} without login");
        assert_eq!(server.parsing.lost, 0, "{name} without login");
    }
}

/// The same connection in a capture that began later.
fn existing(steps: &[(Side, Vec<u8>)]) -> Wire {
    let mut wire = Wire::new();
    let mut connection = Connection::new(CLIENT, SERVER);
    steps
        .iter()
        .for_each(|(side, bytes)| wire.send(&mut connection, *side, bytes));
    wire
}

#[test]
fn mysql_commands_without_response_and_files_of_the_client() {
    let steps = [
        mysql(0, &[]),
        vec![
            (
                Client,
                [
                    packet(0, b"\x19\x01\0\0\0"),
                    packet(0, b"\x18\x01\0\0\0\0\0data"),
                ]
                .concat(),
            ),
            (
                Client,
                packet(0, b"\x03LOAD DATA LOCAL INFILE 'f' INTO TABLE t"),
            ),
            (Host, packet(1, b"\xfbf")),
            (
                Client,
                [packet(2, b"1,2"), packet(0, b"\x033,4"), packet(1, b"")].concat(),
            ),
            (Host, packet(2, OK)),
            (Client, packet(0, b"\x01")),
        ],
    ]
    .concat();
    let server = assert_requests("files", &borrowed(&steps), Protocol::MySql, 1);
    assert_eq!(answered(&server, Kind::Copy), 1);
}

#[test]
fn packets_of_16_mib_continue() {
    let steps = mysql(0, &[]);
    let mut wire = Wire::new();
    let mut connection = wire.open(CLIENT, SERVER);
    steps
        .iter()
        .for_each(|(side, bytes)| wire.send(&mut connection, *side, bytes));
    let body = [b"\x03INSERT ".as_slice(), &vec![b'x'; 0xff_ffff - 8]].concat();
    let whole = [packet(0, &body), packet(1, b"the rest")].concat();
    whole
        .chunks(60_000)
        .for_each(|part| wire.send(&mut connection, Client, part));
    wire.send(&mut connection, Host, &packet(2, OK));
    let server = only_server(&wire);
    assert_eq!(
        (server.requests.answered, answered(&server, Kind::Insert)),
        (1, 1)
    );
}

#[test]
fn encrypted_and_compressed_connections_are_counted_in_turns() {
    let tls = [0x16, 3, 1, 0, 2, 1, 0];
    let data = [0x17, 3, 3, 0, 2, 9, 9];
    let ssl = [&(1_u32 << 11).to_le_bytes()[..], &[0; 28]].concat();
    let compress = [&(1_u32 << 5).to_le_bytes()[..], &[0; 28], b"root\0"].concat();
    let (ssl, compress, greeting) = (packet(1, &ssl), packet(1, &compress), packet(0, GREETING));
    let postgres = [0, 0, 0, 8, 4, 0xd2, 0x16, 0x2f];
    let (ask, answer) = ((Client, &data[..]), (Host, &data[..]));
    let hello = (Client, &tls[..]);
    for (name, first) in [
        ("TLS", vec![hello, (Host, &tls)]),
        (
            "MySQL over TLS",
            vec![(Host, &greeting), (Client, &ssl), hello, (Host, &tls)],
        ),
        (
            "compression",
            vec![(Host, &greeting), (Client, &compress), (Host, &data)],
        ),
        (
            "PostgreSQL over TLS",
            vec![(Client, &postgres), (Host, b"S"), hello, (Host, &tls)],
        ),
    ] {
        let turns = first.iter().filter(|(side, _)| *side == Client).count() as u64;
        let steps = [first, vec![ask, answer, ask, answer]].concat();
        let server = only_server(&play(&steps));
        assert_eq!(
            server.protocols.keys().collect::<Vec<_>>(),
            [&Protocol::Turns],
            "{name}"
        );
        assert_eq!(
            (server.parsing.opaque, server.parsing.lost),
            (1, 0),
            "{name}"
        );
        // MySQL's client sends its hello without waiting; PostgreSQL's first answer is not counted.
        let turns = if name.contains("over TLS") {
            turns - 1
        } else {
            turns
        };
        assert_eq!(server.requests.answered, turns + 2, "{name}");
    }
}

fn message(tag: u8, body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(body.len() + 4)
        .expect("a message")
        .to_be_bytes();
    [&[tag][..], &length, body].concat()
}

fn messages(list: &[(u8, &[u8])]) -> Vec<u8> {
    list.iter()
        .flat_map(|(tag, body)| message(*tag, body))
        .collect()
}

const READY: (u8, &[u8]) = (b'Z', b"I");
const DONE: (u8, &[u8]) = (b'C', b"SELECT 1\0");

/// A refused request for encryption and a login.
fn postgres_login() -> Vec<(Side, Vec<u8>)> {
    let ssl = [0, 0, 0, 8, 4, 0xd2, 0x16, 0x2f];
    let startup = [&[0, 0, 0, 17, 0, 3, 0, 0][..], b"user\0me\0\0"].concat();
    let login = [
        (b'R', &[0; 4][..]),
        (b'S', b"a\0b\0"),
        (b'K', &[0; 8]),
        READY,
    ];
    vec![
        (Client, ssl.into()),
        (Host, b"N".into()),
        (Client, startup),
        (Host, message(b'R', &[0, 0, 0, 10])),
        (Client, message(b'p', b"SCRAM-SHA-256\0")),
        (Host, messages(&login)),
    ]
}

/// Parse, Bind, Describe, Execute, Sync.
fn batch() -> Vec<u8> {
    messages(&[
        (b'P', b"s1\0select $1\0\0\0"),
        (b'B', b"\0s1\0\0\0\0\0\0\0"),
        (b'D', b"P\0"),
        (b'E', b"\0\0\0\0\0"),
        (b'S', b""),
    ])
}

#[test]
fn postgres_requests_end_with_ready_for_query() {
    let execute = messages(&[(b'B', b"\0s1\0"), (b'E', b"\0\0\0\0\0"), (b'S', b"")]);
    let mut steps = postgres_login();
    steps.extend([
        (Client, message(b'Q', b"BEGIN; SELECT 1; COMMIT\0")),
        (
            Host,
            messages(&[DONE, (b'T', b"row"), (b'D', &[7; 300]), DONE, DONE, READY]),
        ),
        // A pipeline of three batches.
        (Client, [&batch()[..], &execute, &execute].concat()),
        (
            Host,
            messages(&[
                (b'1', b""),
                (b'2', b""),
                (b'T', b"x"),
                (b'D', b"x"),
                DONE,
                READY,
            ]),
        ),
        (
            Host,
            messages(&[
                (b'2', b""),
                DONE,
                READY,
                (b'2', b""),
                (b'E', b"no\0"),
                READY,
            ]),
        ),
        (Host, message(b'A', b"\0\0\0\x01channel\0\0")),
        (Client, message(b'X', b"")),
    ]);
    let server = assert_requests("queries", &borrowed(&steps), Protocol::Postgres, 4);
    assert_eq!(
        (
            answered(&server, Kind::Begin),
            answered(&server, Kind::Select)
        ),
        (1, 1)
    );
    assert_eq!(answered(&server, Kind::Execute), 2);
}

#[test]
fn postgres_copies_are_one_request() {
    let rows = messages(&[(b'd', b"1\t2\n"), (b'c', b"")]);
    let mut steps = postgres_login();
    steps.extend([
        (Client, message(b'Q', b"COPY t FROM STDIN\0")),
        (Host, message(b'G', &[0; 3])),
        (Client, rows.clone()),
        (Host, messages(&[DONE, READY])),
        // By the extended protocol, where the server ignores the first Sync.
        (Client, batch()),
        (Host, messages(&[(b'1', b""), (b'2', b""), (b'G', &[0; 3])])),
        (Client, [&rows[..], &message(b'S', b"")].concat()),
        (Host, messages(&[DONE, READY])),
    ]);
    let server = assert_requests("COPY", &borrowed(&steps), Protocol::Postgres, 2);
    assert_eq!(
        (
            answered(&server, Kind::Copy),
            answered(&server, Kind::Select)
        ),
        (1, 1)
    );
}

#[test]
fn http_bodies_have_all_their_lengths() {
    let steps: &[Step<'_>] = &[
        (
            Client,
            b"GET /a HTTP/1.1\r\nHost: h\r\n\r\nHEAD /b HTTP/1.1\r\nHost: h\r\n\r\n",
        ),
        (Host, b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"),
        (Host, b"HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n"),
        (
            Client,
            b"POST /c HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\n",
        ),
        (Client, b"Content-Length: 3\r\n\r\n"),
        (Host, b"HTTP/1.1 100 Continue\r\n\r\n"),
        (Client, b"abc"),
        (
            Host,
            b"HTTP/1.1 201 Created\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
        ),
        (
            Host,
            b"5;name=value\r\nhello\r\nA\r\n0123456789\r\n0\r\nTrailer: x\r\n\r\n",
        ),
        (
            Client,
            b"PUT /d HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nGET\r\n0\r\n\r\n",
        ),
        (Host, b"HTTP/1.1 204 No Content\r\n\r\n"),
        (Client, b"DELETE /e HTTP/1.1\r\n\r\n"),
        (
            Host,
            b"HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n\r\n",
        ),
        (Client, b"GET /f HTTP/1.1\r\n\r\n"),
        (Host, b"HTTP/1.0 200 OK\r\n\r\nuntil the connection ends"),
    ];
    let server = assert_requests("HTTP", steps, Protocol::Http, 6);
    assert_eq!(answered(&server, Kind::Get), 2);
    for kind in [Kind::Head, Kind::Post, Kind::Put, Kind::Delete] {
        assert_eq!(answered(&server, kind), 1, "{kind:?}");
    }
}

#[test]
fn an_upgraded_connection_goes_on_in_turns() {
    let server = only_server(&play(&[
        (Client, b"GET /chat HTTP/1.1\r\nUpgrade: websocket\r\n\r\n"),
        (Host, b"HTTP/1.1 101 Switching Protocols\r\n\r\n"),
        (Client, b"\x81\x05hello"),
        (Host, b"\x81\x05hello"),
    ]));
    assert_eq!((server.requests.answered, server.parsing.opaque), (2, 1));
}

#[test]
fn a_given_protocol_is_taken_where_bytes_say_nothing() {
    let wire = play(&[(Client, b"PING\r\nPING\r\n"), (Host, b"+PONG\r\n+PONG\r\n")]);
    let servers = [(7_000, Some(Protocol::Resp))].into();
    let options = Options {
        servers,
        ..Options::default()
    };
    let server = sole(read(&wire.pcap()[..], &options).expect("a capture"));
    assert_eq!(server.requests.answered, 2);
    assert_eq!(only_server(&wire).requests.answered, 1);
}
