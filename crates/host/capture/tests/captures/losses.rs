//! Bytes that the parsers lack: cut by a snap length, lost by the capture, or nonsense.

use saiga_capture::{Kind, Protocol};

use crate::{
    only_server,
    protocols::{COLUMN, OK, Step, answered, borrowed, mysql, packets, play},
    sole, traffic,
    wire::{
        Side::{Client, Server as Host},
        Wire,
    },
};

/// With a snap length, most of a long response is missing: it is counted in turns, and the parser
/// comes back for the next one.
#[test]
fn a_snap_length_loses_no_request() {
    let row = [&[250][..], &[b'r'; 250]].concat();
    let many: Vec<&[u8]> = std::iter::repeat_n(&row[..], 30).collect();
    let end: &[u8] = &[0xfe, 0, 0, 2, 0, 0, 0];
    let rows = packets(&[&[&[1][..], COLUMN], &many[..], &[end]].concat());
    let exchange: (&[u8], _) = (b"\x03SELECT c FROM t", rows);
    let short: (&[u8], _) = (b"\x03COMMIT", packets(&[OK]));
    let exchanges: Vec<_> = (0..20)
        .flat_map(|_| [exchange.clone(), short.clone()])
        .collect();
    let mut wire = play(&borrowed(&mysql(1 << 24, &exchanges)));
    wire.snap(384);
    let server = only_server(&wire);
    assert_eq!(
        (server.requests.answered, server.requests.unanswered),
        (40, 0)
    );
    assert_eq!((server.parsing.lost, server.parsing.given_up), (20, 0));
    assert_eq!(server.parsing.regained, 20);
    assert_eq!(
        (
            answered(&server, Kind::Select),
            answered(&server, Kind::Commit)
        ),
        (20, 20)
    );
    assert!(server.tcp.cut_bytes > 20 * 7_000);
}

#[test]
fn a_body_that_is_cut_does_no_harm() {
    let value = [&b"$3000\r\n"[..], &[b'v'; 3_000], b"\r\n"].concat();
    let get = b"*2\r\n$3\r\nGET\r\n$1\r\nk\r\n";
    let mut steps = Vec::new();
    for _ in 0..10 {
        steps.push((Client, &get[..]));
        steps.push((Host, &value[..2_000]));
        steps.push((Host, &value[2_000..]));
    }
    let mut wire = play(&steps);
    wire.snap(200);
    let server = only_server(&wire);
    assert_eq!((server.requests.answered, server.parsing.lost), (10, 0));
    assert_eq!(answered(&server, Kind::Read), 10);
}

#[test]
fn a_hole_is_left_behind_at_the_next_turn() {
    let mut wire = Wire::new();
    let mut connection = wire.open("10.0.0.1:40000", "10.0.0.2:6379");
    for turn in 0..10 {
        wire.send(&mut connection, Client, b"*1\r\n$4\r\nPING\r\n");
        wire.send(&mut connection, Host, b"+PONG\r\n");
        if turn == 4 {
            // The capture loses this reply.
            wire.records.pop();
        }
    }
    let server = sole(traffic(&wire.pcap()));
    assert_eq!((server.tcp.holes, server.parsing.lost), (1, 1));
    assert_eq!(
        (server.requests.answered, server.requests.unanswered),
        (10, 0)
    );
    assert_eq!(server.parsing.regained, 1);
}

#[test]
fn nonsense_is_given_up() {
    let mut steps: Vec<Step<'_>> = vec![(Client, b"*1\r\n$4\r\nPING\r\n"), (Host, b"+PONG\r\n")];
    for _ in 0..20 {
        steps.extend([(Client, &b"\x01\x02\x03"[..]), (Host, &b"\x04\x05"[..])]);
    }
    let server = only_server(&play(&steps));
    assert_eq!((server.parsing.lost, server.parsing.given_up), (8, 1));
    assert_eq!(server.requests.answered, 21);
    assert_eq!(server.protocols[&Protocol::Turns], 1);
}
