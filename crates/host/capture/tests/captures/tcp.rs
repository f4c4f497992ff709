//! What sequence numbers tell: beginnings, endings, losses, and holes of the capture.

use std::time::Duration;

use saiga_capture::{Limits, Mark, Options, Protocol, Server, read};

use crate::{
    only_server, sole, traffic,
    wire::{self, ACK, Connection, FIN, PSH, RST, STEP_NS, SYN, Segment, Side, Wire},
};

const CLIENT: &str = "10.0.0.1:40000";
const SERVER: &str = "10.0.0.2:7000";
const MILLISECOND: u64 = 1_000_000;

fn near(ns: u64, expected: u64) -> bool {
    ns.abs_diff(expected) <= expected / 50
}

#[test]
fn a_connection_from_syn_to_fin() {
    let mut wire = Wire::new();
    let mut connection = wire.open(CLIENT, SERVER);
    wire.send(&mut connection, Side::Client, b"hello");
    wire.send(&mut connection, Side::Server, b"welcome");
    wire.close(&mut connection, Side::Server);
    let server = only_server(&wire);
    let handshakes = &server.handshakes;
    assert_eq!(
        (
            handshakes.attempts,
            handshakes.established,
            handshakes.existing
        ),
        (1, 1, 0)
    );
    assert!(near(handshakes.duration_ns.max(), 2 * STEP_NS));
    let closings = &server.closings;
    assert_eq!((closings.by_client, closings.by_server), (0, 1));
    assert!(near(closings.lifetime_ns.max(), 6 * STEP_NS));
    assert_eq!(
        (server.tcp.bytes_from_clients, server.tcp.bytes_to_clients),
        (5, 7)
    );
    assert_eq!(
        server.tcp.retransmissions + server.tcp.out_of_order + server.tcp.holes,
        0
    );
    assert_eq!(server.requests.answered, 1);
    assert_eq!(server.clients, 1);
}

#[test]
fn unanswered_and_refused_connections() {
    let mut wire = Wire::new();
    let silent = Connection::new("10.0.0.1:40001", SERVER);
    wire.flags(&silent, Side::Client, SYN);
    wire.wait(1_000 * MILLISECOND);
    wire.flags(&silent, Side::Client, SYN);
    wire.wait(2_000 * MILLISECOND);
    wire.flags(&silent, Side::Client, SYN);
    let refused = Connection::new("10.0.0.1:40002", SERVER);
    wire.flags(&refused, Side::Client, SYN);
    wire.flags(&refused, Side::Server, RST | ACK);
    let Server {
        handshakes,
        closings,
        windows,
        ..
    } = only_server(&wire);
    assert_eq!((handshakes.attempts, handshakes.established), (2, 0));
    assert_eq!((handshakes.unanswered, handshakes.refused), (1, 1));
    assert_eq!(closings.resets_by_server, 0);
    assert_eq!(handshakes.retransmissions, 2);
    assert!(near(
        handshakes.retransmission_gaps_ns.min(),
        1_000 * MILLISECOND
    ));
    assert!(near(
        handshakes.retransmission_gaps_ns.max(),
        3_000 * MILLISECOND
    ));
    let again: Vec<_> = windows
        .iter()
        .map(|window| window.syn_retransmissions)
        .collect();
    assert_eq!(again, [0, 1, 0, 1]);
}

#[test]
fn a_reset_ends_a_connection() {
    let mut wire = Wire::new();
    let mut connection = wire.open(CLIENT, SERVER);
    wire.send(&mut connection, Side::Client, b"hello");
    wire.flags(&connection, Side::Client, RST);
    let server = only_server(&wire);
    assert_eq!(
        (server.closings.resets_by_client, server.closings.by_client),
        (1, 0)
    );
    assert_eq!(
        (server.requests.answered, server.requests.unanswered),
        (0, 1)
    );
    assert_eq!(server.windows[0].resets, 1);
}

#[test]
fn a_new_syn_begins_another_connection() {
    let mut wire = Wire::new();
    for _ in 0..3 {
        let mut connection = wire.open(CLIENT, SERVER);
        wire.send(&mut connection, Side::Client, b"hello");
        wire.send(&mut connection, Side::Server, b"welcome");
        wire.close(&mut connection, Side::Client);
    }
    // The same addresses without an end of the one before.
    let mut connection = Connection::new(CLIENT, SERVER);
    connection.client_seq = 77_000;
    wire.flags(&connection, Side::Client, SYN);
    let server = only_server(&wire);
    assert_eq!(
        (server.handshakes.attempts, server.closings.by_client),
        (4, 3)
    );
    assert_eq!(
        (server.requests.answered, server.handshakes.unanswered),
        (3, 1)
    );
}

#[test]
fn a_retransmission_tells_how_long_it_took() {
    let mut wire = Wire::new();
    let mut connection = wire.open(CLIENT, SERVER);
    wire.send(&mut connection, Side::Client, b"hello");
    let (seq, ack) = (connection.server_seq, connection.client_seq);
    wire.send(&mut connection, Side::Server, b"welcome");
    wire.wait(200 * MILLISECOND);
    let again = Segment {
        seq,
        ack,
        flags: ACK | PSH,
        window: 500,
        bytes: b"welcome",
    };
    wire.segment(&connection, Side::Server, again);
    let server = only_server(&wire);
    assert_eq!(server.tcp.retransmissions, 1);
    assert!(near(
        server.tcp.retransmission_gaps_ns.max(),
        200 * MILLISECOND + STEP_NS
    ));
    assert_eq!(server.tcp.bytes_to_clients, 7);
}

#[test]
fn overtaken_segments_come_out_in_order() {
    for (late, out_of_order, retransmissions) in [(0, 1, 0), (50 * MILLISECOND, 0, 1)] {
        let mut wire = Wire::new();
        let mut connection = wire.open(CLIENT, "10.0.0.2:6379");
        wire.send(&mut connection, Side::Client, b"*1\r\n$4\r\nPING\r\n");
        let (seq, ack) = (connection.server_seq, connection.client_seq);
        let part = |offset: u32, bytes| Segment {
            seq: seq.wrapping_add(offset),
            ack,
            flags: ACK,
            window: 500,
            bytes,
        };
        wire.segment(&connection, Side::Server, part(3, b"NG\r\n"));
        wire.wait(late);
        wire.segment(&connection, Side::Server, part(0, b"+PO"));
        let server = only_server(&wire);
        assert_eq!(server.requests.answered, 1);
        assert_eq!(
            server.requests.total.as_nanos(),
            u128::from(2 * STEP_NS + late)
        );
        assert_eq!(server.tcp.out_of_order, out_of_order);
        assert_eq!(server.tcp.retransmissions, retransmissions);
        assert_eq!(server.parsing.lost, 0);
    }
}

#[test]
fn copies_of_packets_count_once() {
    let mut wire = Wire::new();
    let mut connection = wire.open(CLIENT, SERVER);
    wire.send(&mut connection, Side::Client, b"hello");
    wire.send(&mut connection, Side::Server, b"welcome");
    wire.records = wire
        .records
        .iter()
        .flat_map(|record| [record.clone(), record.clone()])
        .collect();
    let server = only_server(&wire);
    assert_eq!((server.tcp.duplicates, server.tcp.segments), (5, 5));
    assert_eq!(
        (
            server.tcp.retransmissions,
            server.handshakes.retransmissions
        ),
        (0, 0)
    );
    assert_eq!(server.requests.unanswered + server.requests.answered, 1);
}

#[test]
fn zero_windows_and_keep_alives() {
    let mut wire = Wire::new();
    let mut connection = wire.open(CLIENT, SERVER);
    wire.send(&mut connection, Side::Client, b"hello");
    let window = |connection: &Connection, window| Segment {
        seq: connection.client_seq,
        ack: connection.server_seq,
        flags: ACK,
        window,
        bytes: &[],
    };
    for size in [0, 0, 500, 0] {
        wire.segment(&connection, Side::Client, window(&connection, size));
    }
    let probe = Segment {
        seq: connection.client_seq - 1,
        bytes: b"o",
        ..window(&connection, 500)
    };
    wire.segment(&connection, Side::Client, probe);
    let server = only_server(&wire);
    assert_eq!(server.tcp.zero_windows_of_clients, 2);
    assert_eq!(server.tcp.zero_windows_of_server, 0);
    assert_eq!((server.tcp.keep_alives, server.tcp.retransmissions), (1, 0));
}

#[test]
fn acknowledged_bytes_that_were_not_captured_are_a_hole() {
    let mut wire = Wire::new();
    let mut connection = wire.open(CLIENT, SERVER);
    wire.send(&mut connection, Side::Client, b"first");
    wire.send(&mut connection, Side::Server, b"answer");
    // The capture misses this one.
    wire.send(&mut connection, Side::Client, b"second");
    wire.records.pop();
    wire.send(&mut connection, Side::Server, b"answer");
    wire.send(&mut connection, Side::Client, b"third");
    wire.send(&mut connection, Side::Server, b"answer");
    wire.close(&mut connection, Side::Client);
    let traffic = traffic(&wire.pcap());
    assert_eq!(traffic.marks, [Mark::Holes { holes: 1, bytes: 6 }]);
    let server = sole(traffic);
    assert_eq!(server.requests.answered, 3);
    assert_eq!(server.tcp.retransmissions, 0);
}

#[test]
fn a_capture_may_begin_within_connections() {
    let mut wire = Wire::new();
    let mut connection = Connection::new(CLIENT, "10.0.0.2:5433");
    wire.send(&mut connection, Side::Server, b"the end of an answer");
    for _ in 0..2 {
        wire.send(&mut connection, Side::Client, b"Q\0\0\0\x0dSELECT 1\0");
        wire.send(
            &mut connection,
            Side::Server,
            b"C\0\0\0\x0dSELECT 1\0Z\0\0\0\x05I",
        );
    }
    let server = only_server(&wire);
    assert_eq!(
        (server.handshakes.attempts, server.handshakes.existing),
        (0, 1)
    );
    assert_eq!(server.protocols[&Protocol::Postgres], 1);
    assert_eq!(server.requests.answered, 2);
}

#[test]
fn the_server_is_found_without_a_syn() {
    for (client, server, given) in [
        ("10.0.0.1:3000", "10.0.0.2:3306", None),
        ("10.0.0.1:2000", "10.0.0.2:9999", Some(9_999)),
        ("10.0.0.1:50000", "10.0.0.2:7000", None),
    ] {
        let mut wire = Wire::new();
        let mut connection = Connection::new(client, server);
        wire.send(&mut connection, Side::Server, b"12345678");
        let mut options = Options::default();
        options.servers.extend(given.map(|port| (port, None)));
        let traffic = read(&wire.pcap()[..], &options).expect("a capture");
        let servers: Vec<_> = traffic.servers.keys().map(ToString::to_string).collect();
        assert_eq!(servers, [server]);
    }
}

#[test]
fn only_the_given_servers_are_kept() {
    let mut wire = Wire::new();
    for server in ["10.0.0.2:7000", "10.0.0.2:7001"] {
        let mut connection = wire.open(CLIENT, server);
        wire.send(&mut connection, Side::Client, b"hello");
    }
    let servers = [(7_001, Some(Protocol::Turns))].into();
    let options = Options {
        servers,
        only_servers: true,
        ..Options::default()
    };
    let traffic = read(&wire.pcap()[..], &options).expect("a capture");
    let servers: Vec<_> = traffic.servers.keys().map(ToString::to_string).collect();
    assert_eq!(servers, ["10.0.0.2:7001"]);
}

#[test]
fn idle_connections_make_room() {
    let mut wire = Wire::new();
    for port in 0..100 {
        wire.open(&format!("10.0.0.1:{}", 40_000 + port), SERVER);
    }
    let limits = Limits {
        connections: 40,
        ..Limits::default()
    };
    let traffic = read(
        &wire.pcap()[..],
        &Options {
            limits,
            ..Options::default()
        },
    );
    let traffic = traffic.expect("a capture");
    let [Mark::ConnectionsEvicted { connections }] = traffic.marks[..] else {
        panic!("{:?}", traffic.marks);
    };
    assert!((60..=65).contains(&connections), "{connections}");
    assert_eq!(sole(traffic).handshakes.established, 100);
}

#[test]
fn fragments_and_cut_headers_are_counted() {
    let mut wire = Wire::new();
    let connection = Connection::new(CLIENT, SERVER);
    wire.flags(&connection, Side::Client, SYN);
    // More fragments follow.
    wire.records[0].frame[20] = 0x20;
    wire.flags(&connection, Side::Client, FIN);
    wire.records[1].frame.truncate(40);
    let marks = [
        Mark::CutHeaders { packets: 1 },
        Mark::Fragments { packets: 1 },
    ];
    assert_eq!(traffic(&wire.pcap()).marks, marks);
}

/// Two requests of two clients overlap: N is the integral, and N = X R over the whole time.
#[test]
fn windows_obey_littles_law() {
    let mut wire = Wire::new();
    let mut connections: Vec<_> = (0..2)
        .map(|port| wire.open(&format!("10.0.0.1:{}", 41_000 + port), SERVER))
        .collect();
    for turn in 0..50_usize {
        wire.now = wire::START_NS + 200 * MILLISECOND * turn as u64 + 100 * MILLISECOND;
        connections
            .iter_mut()
            .for_each(|one| wire.send(one, Side::Client, b"ask"));
        for one in &mut connections {
            wire.wait(60 * MILLISECOND);
            wire.send(one, Side::Server, b"answer");
        }
    }
    let server = only_server(&wire);
    assert_eq!(server.requests.answered, 100);
    assert_eq!(server.windows.len(), 11);
    let complete: Vec<_> = server
        .windows
        .iter()
        .filter(|window| window.complete)
        .collect();
    assert_eq!(complete.len(), 9);
    for window in complete {
        assert_eq!((window.arrivals, window.responses), (10, 10));
        assert!((window.throughput() - 10.0).abs() < 1e-9);
        let mean = window.response_mean.expect("responses").as_secs_f64();
        assert!(
            (window.concurrency - window.throughput() * mean).abs() < 1e-6,
            "{window:?}"
        );
        assert!(window.response_max > Some(Duration::from_millis(119)));
    }
    let integral: f64 = server.windows.iter().map(|window| window.concurrency).sum();
    assert!((integral - server.requests.total.as_secs_f64()).abs() < 1e-6);
}
